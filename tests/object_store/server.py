"""Starts the S3 server, whose packages, pinned by hash, are in a separate environment."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import ProxyHandler, Request, build_opener

from setup.python_environment import UV_HOME
from setup.steps import LOCAL, Step, content_key, perform, run_logged
from tests.real_cluster.processes import FreePorts, Processes, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

_PINS = Path(__file__).with_name("requirements.txt")
_SERVER = Path(__file__).with_name("serve.py")
_ENVIRONMENT = LOCAL / "s3-server"
_START_SECONDS = 120


@contextmanager
def object_store(folder: Path, bucket: str, *ignored_headers: str) -> Iterator[dict[str, str]]:
    """Yield the variables by which every engine finds a server with one empty bucket.

    Args:
        folder: The folder for the server's files.
        bucket: The bucket's name.
        ignored_headers: Conditions that this store does not support.
    """
    perform(_step())
    port = FreePorts().block(1)
    address = f"http://127.0.0.1:{port}"
    processes = Processes()
    try:
        python = _ENVIRONMENT / "bin" / "python"
        server = processes.start([python, _SERVER, str(port), *ignored_headers], folder / "s3-server")
        wait_until(lambda: None if server.listens_on(port) else server.last_output(), _START_SECONDS)
        made = Request(f"{address}/{bucket}", method="PUT")  # noqa: S310  # http on loopback
        build_opener(ProxyHandler({})).open(made, timeout=60).close()
        yield on_loopback(address, "of-the-test", "of-the-test")
    finally:
        processes.close()


def on_loopback(address: str, access_key_id: str, secret_access_key: str) -> dict[str, str]:
    """Return the variables by which every engine finds a store on loopback, without a proxy."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": access_key_id,
        "AWS_SECRET_ACCESS_KEY": secret_access_key,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


def _step() -> Step:
    uv = str(UV_HOME / "bin" / "uv")
    keys = ("UV_CACHE_DIR", str(LOCAL / "cache" / "uv"))

    def run() -> None:
        shutil.rmtree(_ENVIRONMENT, ignore_errors=True)
        for words in (
            ["venv", "--quiet", "--python", str(UV_HOME / "bin" / "python"), str(_ENVIRONMENT)],
            ["pip", "sync", "--require-hashes", "--python", str(_ENVIRONMENT / "bin" / "python"), str(_PINS)],
        ):
            run_logged(
                [uv, "--no-progress", *words],
                log="s3-server",
                on_failure="If the network failed, run it again.",
                env={keys[0]: os.environ.get(keys[0]) or keys[1]},
            )

    return Step("s3-server", "a server that speaks S3, for tests", content_key(_PINS, str(LOCAL)), run)
