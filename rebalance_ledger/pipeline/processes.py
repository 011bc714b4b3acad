"""One run of this checkout at a time, and none of its processes left behind.

Belongs here: the lock that `make run` and `make airflow` share, and ending whole families of processes. Does not
belong here: what the processes do.
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import IO, TYPE_CHECKING

import psutil  # type: ignore[import-untyped]  # it ships no types; the lock has it through Airflow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_MARK = "LEDGER_RUN_OF"
_PATIENCE_SECONDS = 15.0


class RunningElsewhereError(Exception):
    """The lock is taken; the message is one sentence."""


def begin_run(root: Path) -> IO[str]:
    """Take the lock of the checkout at `root` and end what an earlier holder left behind when it was killed.

    The lock is needed because a scheduler beside `make run` would take up its tasks a second time, and because
    Delta tables on a local disk allow one writer. The leftovers have to go because their Spark would go on writing
    into the staging area; they are known by a variable that this call puts into the environment of all our children.

    Returns:
        The lock; it is free again when this is closed or the process ends.

    Raises:
        RunningElsewhereError: If another process holds it.
    """
    path = root / ".local" / "run.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise RunningElsewhereError(
            "A `make run` or `make airflow` of this checkout is under way: wait for it or end it, and try again."
        ) from None
    end_left_behind(root)
    os.environ[_MARK] = str(root)
    return lock


def end_left_behind(root: Path, sessions: Iterable[int] = ()) -> None:
    """End by force every other process that a run of the checkout at `root` has started, whatever its parent is now.

    Args:
        root: The checkout, by which the environment of its processes is known.
        sessions: Ids of sessions that end with all their processes and descendants. Airflow's workers set their process
            title, which overwrites the environment that others can read.
    """
    _kill([*_marked(str(root)), *_in_sessions(set(sessions))])


def end_children() -> None:
    """End at once all that this process has started, and what that has started."""
    _kill(psutil.Process().children(recursive=True))


def end_in_order(pids: Iterable[int]) -> None:
    """Ask processes to end, wait, then end by force what is left of them and of all that they started."""
    leaders = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    family = [*leaders, *(child for leader in leaders for child in leader.children(recursive=True))]
    for leader in leaders:
        leader.terminate()
    _kill(_still_alive_after(_PATIENCE_SECONDS, family))


def _marked(root: str) -> list[psutil.Process]:
    marked = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(_MARK) == root:
                marked.append(process)
        except psutil.Error:
            continue  # not ours to see, or gone already
    return marked


def _in_sessions(sessions: set[int]) -> list[psutil.Process]:
    members: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) in sessions:
                members += [process, *process.children(recursive=True)]
        except (psutil.Error, OSError):
            continue  # gone already
    return members


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    _still_alive_after(_PATIENCE_SECONDS, processes)


def _still_alive_after(seconds: float, processes: list[psutil.Process]) -> list[psutil.Process]:
    deadline = time.monotonic() + seconds
    alive = [process for process in processes if is_alive(process)]
    while alive and time.monotonic() < deadline:
        _, alive = psutil.wait_procs(alive, timeout=0.2)
        alive = [process for process in alive if is_alive(process)]
    return alive


def is_alive(process: psutil.Process) -> bool:
    """Return whether it still does anything: a container's first process may never collect the dead."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
