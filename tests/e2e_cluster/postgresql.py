"""A PostgreSQL server on loopback, of the distribution's package, with a data folder that ends with the test."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from setup import system_packages
from tests.real_cluster.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real_cluster.processes import Processes, Started

_START_SECONDS = 60
_ACCOUNT = "postgres"  # of the package; the server will not run as root


class PostgreSql:
    """A server that comes and goes, and its one database.

    Attributes:
        address: Of the database `airflow` with its user, for SQLAlchemy.
    """

    def __init__(self, processes: Processes, folder: Path, port: int, password: str) -> None:
        self.address = f"postgresql+psycopg://airflow:{password}@127.0.0.1:{port}/airflow"
        self._processes = processes
        self._folder = folder
        self._port = port
        self._user = _ACCOUNT if os.geteuid() == 0 else None
        self._binaries = _binaries()
        secret = folder / "password"
        secret.write_text(password)
        if self._user:
            account = pwd.getpwnam(self._user)
            for path in (folder, secret):
                os.chown(path, account.pw_uid, account.pw_gid)
        initdb = [
            self._binaries / "initdb",
            f"--pgdata={folder / 'data'}",
            "--username=airflow",
            "--auth=scram-sha-256",
            f"--pwfile={secret}",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ]
        subprocess.run(initdb, check=True, user=self._user, cwd=folder, stdout=subprocess.DEVNULL)
        self._server = self._started()
        environment = {**os.environ, "PGPASSWORD": password}
        create = [
            self._binaries / "createdb",
            "--host=127.0.0.1",
            f"--port={port}",
            "--username=airflow",
            "--maintenance-db=postgres",
            "airflow",
        ]
        wait_until(lambda: _complaint(create, environment), _START_SECONDS)

    @contextmanager
    def gone(self) -> Iterator[None]:
        """It breaks off every connection at once, as in a crash, and is not there until the end of the block."""
        self._server.process.send_signal(signal.SIGQUIT)
        self._server.process.wait(_START_SECONDS)
        yield
        self._server = self._started()

    def end(self) -> None:
        self._server.kill()

    def _started(self) -> Started:
        data = self._folder / "data"
        port = str(self._port)
        server = self._processes.start(
            [
                self._binaries / "postgres",
                "-D",
                data,
                "-h",
                "127.0.0.1",
                "-p",
                port,
                "-k",
                self._folder,
                "-F",
            ],
            self._folder,
            user=self._user,
        )
        wait_until(
            lambda: None if server.listens_on(self._port) else "PostgreSQL does not listen", _START_SECONDS
        )
        return server


@contextmanager
def postgresql(processes: Processes, port: int, password: str) -> Iterator[PostgreSql]:
    """A server with an empty database `airflow` that its user `airflow` owns."""
    # Not below pytest's folder: that is for root alone.
    folder = Path(tempfile.mkdtemp(prefix="ledger-postgresql-"))
    try:
        server = PostgreSql(processes, folder, port, password)
        yield server
        server.end()
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
