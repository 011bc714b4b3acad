"""Run Airflow's scheduler and pages on this machine until Ctrl-C: `make airflow`.

Belongs here: starting Airflow's processes in order, printing their address, and ending all of them. Does not belong here: settings of
Airflow (`conf/environment.sh`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from rebalance_ledger.pipeline.processes import (
    RunningElsewhereError,
    begin_run,
    end_in_order,
    end_left_behind,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType


class _ApiServer(NamedTuple):
    """A process of Airflow's API server with one of its apps: pages and REST API, or the execution API of tasks."""

    name: str
    app: str
    health_path: str


# Two processes, because the API server writes its audit log on its event loop. With SQLite this write waits while a task's request holds the
# write lock; in one process that request needs the event loop to end, so both wait for the 60 seconds of `metadata_database.CONNECT_ARGS`.
_API_SERVERS: Final = (
    _ApiServer("api-server", "core", "/api/v2/monitor/health"),
    _ApiServer("execution-api", "execution", "/execution/health"),
)
# Tasks report to the execution API: they are started when it answers, so that no attempt is lost.
_AFTER_API_SERVERS: Final = {
    # The pages read the log files themselves; the log servers would listen on every interface.
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "triggerer": ("triggerer", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
}
_START_SECONDS = 180.0


class StoppedError(Exception):
    """The process was asked to end, by Ctrl-C or SIGTERM."""


def main() -> int:
    """Start Airflow, wait, and end all processes.

    Returns:
        0 after Ctrl-C or SIGTERM; 1 if a component ended by itself; 2 if it cannot start here.
    """
    root = Path(os.environ["LEDGER_ROOT"])
    port = int(os.environ["AIRFLOW_PORT"])
    try:
        lock = begin_run(root)
    except RunningElsewhereError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with lock:
        if _is_taken(port):
            sys.stderr.write(f"Port {port} is in use; choose another: make airflow AIRFLOW_PORT={port + 1}\n")
            return 2
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stop)
        return _serve(root, port)


def _serve(root: Path, port: int) -> int:
    logs = root / ".local" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        execution_port = free_port()
        os.environ["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] = (
            f"http://127.0.0.1:{execution_port}/execution/"
        )
        ports = dict(zip(_API_SERVERS, (port, execution_port), strict=True))
        _start_all(
            {
                server.name: ("api-server", "--apps", server.app, "--port", str(number))
                for server, number in ports.items()
            },
            logs,
            running,
        )
        for server, number in ports.items():
            _wait_until_healthy(
                f"http://127.0.0.1:{number}{server.health_path}", running[server.name], running
            )
        if _ended(running) is None:
            _start_all(_AFTER_API_SERVERS, logs, running)
            _say(f"Airflow is at http://127.0.0.1:{port}/dags/cluster_ledger (Ctrl-C ends it).")
        while True:
            ended = _ended(running)
            if ended:
                sys.stderr.write(f"Airflow's {ended} ended by itself; see {logs / f'airflow-{ended}.log'}\n")
                return 1
            _wait(running["scheduler"], seconds=1)
    except StoppedError:
        _say("Ending Airflow …")
        return 0
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave some of them running
        end_in_order(process.pid for process in running.values() if process.poll() is None)
        # The children of a killed component are still running: workers, and the build of a task.
        end_left_behind(root, sessions=[process.pid for process in running.values()])
        _say("Airflow has ended.")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _start_all(
    components: Mapping[str, Sequence[str]], logs: Path, running: dict[str, subprocess.Popen[bytes]]
) -> None:
    for name, arguments in components.items():
        with (logs / f"airflow-{name}.log").open("wb") as log:
            running[name] = _start(arguments, log)


def _start(arguments: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    # In a session of its own, so that Ctrl-C only reaches this process, which ends the others in order.
    return subprocess.Popen(  # noqa: S603  # an argument list, never a shell
        ["airflow", *arguments],  # noqa: S607  # .venv/bin comes first on the PATH
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def _stop(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise StoppedError


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def free_port() -> int:
    """Return a port of loopback that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _ended(running: dict[str, subprocess.Popen[bytes]]) -> str | None:
    return next((name for name, process in running.items() if process.poll() is not None), None)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)


def _wait_until_healthy(
    address: str, server: subprocess.Popen[bytes], running: dict[str, subprocess.Popen[bytes]]
) -> None:
    """Return when a server answers, or when a component has ended (which the caller reports)."""
    opener = build_opener(ProxyHandler({}))  # loopback is nobody's proxy's business
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and _ended(running) is None:
        try:
            opener.open(address, timeout=5).close()
        except (URLError, OSError):
            _wait(server, seconds=0.5)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
