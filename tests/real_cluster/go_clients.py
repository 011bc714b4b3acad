"""Consumers of the real Go client, built from Go's module registry by a pinned Go toolchain from PyPI.

Belongs here: the toolchain, the build, one process of consumers. Does not belong here: the groups that a test starts.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from setup.python_environment import UV_HOME
from setup.steps import LOCAL, Step, content_key, perform, run_logged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .processes import Processes

RELEASE: Final = "2.1.2"
"""The release of `rocketmq-client-go` in `go/go.mod`."""

_SOURCES: Final = Path(__file__).with_name("go")
_TOOLCHAIN: Final = LOCAL / "go"
_PROGRAM: Final = LOCAL / "go-clients" / "goclients"
_IF_THE_NETWORK_FAILED: Final = "If the network failed, run it again."


class GoConsumers:
    """Push consumers in one Go process, which ends with `processes`.

    Args:
        processes: The set of processes that it is started in.
        folder: The folder for its output.
        members: The consumers, in the format of `go/main.go`.
    """

    def __init__(self, processes: Processes, folder: Path, members: Iterable[Mapping[str, Any]]) -> None:
        perform(_toolchain())
        perform(_build())
        words = [str(_PROGRAM), json.dumps(list(members))]
        self._started = processes.start(words, folder, with_pipes=True)
        assert self._line() == "started"

    def consumed(self) -> list[tuple[str, str, str, str, int]]:
        """Return (group, instance, topic, broker address, queue id) of the messages consumed since the last call."""
        pipe = self._started.process.stdin
        assert pipe is not None
        pipe.write(b"\n")
        pipe.flush()
        return [tuple(read) for read in json.loads(self._line())]

    def _line(self) -> str:
        pipe = self._started.process.stdout
        assert pipe is not None
        line = pipe.readline().decode().strip()
        assert line, f"the consumers in Go have ended:\n{self._started.last_output()}"
        return line


def _toolchain() -> Step:
    pins = _SOURCES / "requirements.txt"
    uv = str(UV_HOME / "bin" / "uv")
    cache = os.environ.get("UV_CACHE_DIR") or str(LOCAL / "cache" / "uv")

    def run() -> None:
        shutil.rmtree(_TOOLCHAIN, ignore_errors=True)
        for words in (
            ["venv", "--quiet", "--python", str(UV_HOME / "bin" / "python"), str(_TOOLCHAIN)],
            ["pip", "sync", "--require-hashes", "--python", str(_TOOLCHAIN / "bin" / "python"), str(pins)],
        ):
            run_logged(
                [uv, "--no-progress", *words],
                log="go",
                on_failure=_IF_THE_NETWORK_FAILED,
                env={"UV_CACHE_DIR": cache},
            )

    return Step("go", "Go, pinned by hash, for tests", content_key(pins, str(LOCAL)), run)


def _build() -> Step:
    sources = [_SOURCES / name for name in ("go.mod", "go.sum", "main.go", "requirements.txt")]
    cache = LOCAL / "cache" / "go"

    def run() -> None:
        _PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        run_logged(
            [_TOOLCHAIN / "bin" / "go", "build", "-C", str(_SOURCES), "-o", str(_PROGRAM), "."],
            log="go-clients",
            on_failure=_IF_THE_NETWORK_FAILED,
            env={
                "CGO_ENABLED": "0",
                "GOTOOLCHAIN": "local",
                "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false",
                "GOPATH": str(cache / "path"),
                "GOCACHE": str(cache / "build"),
            },
        )

    return Step(
        "go-clients", "consumers of RocketMQ's Go client, for tests", content_key(*sources, str(LOCAL)), run
    )
