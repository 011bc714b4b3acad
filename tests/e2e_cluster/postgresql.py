"""A PostgreSQL server on loopback, of the distribution's package, with a data folder that ends with the test."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from setup import system_packages
from tests.real_cluster.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real_cluster.processes import Processes

_START_SECONDS = 60
_ACCOUNT = "postgres"  # of the package; the server will not run as root


@contextmanager
def postgresql(processes: Processes, port: int, password: str) -> Iterator[str]:
    """A server with an empty database `airflow` that its user `airflow` owns; gives its address for SQLAlchemy."""
    binaries = _binaries()
    user = _ACCOUNT if os.geteuid() == 0 else None
    # Not below pytest's folder: that is for root alone.
    folder = Path(tempfile.mkdtemp(prefix="ledger-postgresql-"))
    try:
        secret = folder / "password"
        secret.write_text(password)
        if user:
            account = pwd.getpwnam(user)
            for path in (folder, secret):
                os.chown(path, account.pw_uid, account.pw_gid)
        data = folder / "data"
        initdb = [
            binaries / "initdb",
            f"--pgdata={data}",
            "--username=airflow",
            "--auth=scram-sha-256",
            f"--pwfile={secret}",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ]
        subprocess.run(initdb, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)
        server = processes.start(
            [binaries / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", folder, "-F"],
            folder,
            user=user,
        )
        wait_until(lambda: None if server.listens_on(port) else "PostgreSQL does not listen", _START_SECONDS)
        environment = {**os.environ, "PGPASSWORD": password}
        create = [
            binaries / "createdb",
            "--host=127.0.0.1",
            f"--port={port}",
            "--username=airflow",
            "--maintenance-db=postgres",
            "airflow",
        ]
        wait_until(lambda: _complaint(create, environment), _START_SECONDS)
        yield f"postgresql+psycopg://airflow:{password}@127.0.0.1:{port}/airflow"
        server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _complaint(command: list[Path | str], environment: dict[str, str]) -> str | None:
    answer = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    return answer.stderr.strip() if answer.returncode else None


def _binaries() -> Path:
    """The folder of the newest server's programs; the distribution's package is installed if there is none."""
    if not _installed():
        system_packages.install(
            "postgresql", why="Airflow's metadata is in PostgreSQL here, and there is none."
        )
    return _installed()[-1]


def _installed() -> list[Path]:
    return sorted(path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb"))
