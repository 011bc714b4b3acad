"""A PostgreSQL server on loopback, from binaries on Maven Central, with folders that are removed after the test."""

from __future__ import annotations

import io
import os
import platform
import pwd
import shutil
import signal
import subprocess
import tarfile
import tempfile
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg.conninfo import make_conninfo

from setup import java
from setup.maven_jars import Pins
from tests.real_cluster.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real_cluster.processes import Processes, Started

_START_SECONDS = 60
_ACCOUNT = "nobody"  # the server refuses to run as root
_PINS: Final = Pins(Path(__file__).with_name("postgresql_jars.txt"))
_SETS: Final = {"x86_64": "amd64", "aarch64": "arm64v8"}
"""Processor -> the set in the pin file."""


class PostgreSql:
    """A server that can be stopped and restarted, with one database.

    Attributes:
        address: The address of the database `airflow` with its user, for SQLAlchemy.
    """

    def __init__(self, processes: Processes, folder: Path, port: int, password: str) -> None:
        self.address = f"postgresql+psycopg://airflow:{password}@127.0.0.1:{port}/airflow"
        self._processes = processes
        self._folder = folder
        self._port = port
        self._user = _ACCOUNT if os.geteuid() == 0 else None
        self._binaries = _unpacked(folder / "postgresql")
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
        wait_until(lambda: _refusal_to_create_database(port, password), _START_SECONDS)

    @contextmanager
    def gone(self) -> Iterator[None]:
        """Stop the server immediately, as in a crash that breaks every connection, until the end of the context."""
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
    """Yield a server with an empty database `airflow` that its user `airflow` owns."""
    # Not below pytest's folder, which only root can access.
    folder = Path(tempfile.mkdtemp(prefix="ledger-postgresql-"))
    try:
        server = PostgreSql(processes, folder, port, password)
        yield server
        server.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _refusal_to_create_database(port: int, password: str) -> str | None:
    """Create the database; return the server's error message while it is not ready."""
    server = make_conninfo(host="127.0.0.1", port=port, user="airflow", password=password, dbname="postgres")
    try:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("CREATE DATABASE airflow")
    except psycopg.OperationalError as error:
        return str(error)
    return None


def _unpacked(folder: Path) -> Path:
    """Unpack the server into a folder, and return the folder of its programs."""
    of_processor = _SETS[platform.machine()]
    _PINS.ensure(java.ensure(), of_processor)
    [jar] = _PINS.class_path(of_processor)
    with zipfile.ZipFile(jar) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".txz")]
        with tarfile.open(fileobj=io.BytesIO(archive.read(name))) as files:
            files.extractall(folder, filter="data")
    return folder / "bin"
