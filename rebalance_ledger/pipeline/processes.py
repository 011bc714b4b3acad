"""Ensure that a checkout has one run at a time, and that all of its processes end.

Belongs here: the lock of `make run` and `make airflow`, and ending processes with their descendants. Does not belong here: what the
processes do.
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
    """Take the lock of the checkout at `root`, and end the remaining processes of an earlier holder that was killed.

    The lock is necessary because a scheduler would run the tasks of `make run` a second time, and because Delta tables on a local disk allow
    one writer. Remaining processes are ended because their Spark would continue to write to the staging area. They are found by a variable
    that this function adds to the environment of all child processes.

    Returns:
        The lock; it is released when this is closed or the process ends.

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
    """Kill every other process that a run of the checkout at `root` has started, even if its parent has ended.

    Args:
        root: The checkout, whose path is in the environment of its processes.
        sessions: Ids of sessions whose processes and descendants are killed too. Airflow's workers set their process title, which
            overwrites the environment that other processes can read.
    """
    _kill([*_marked(str(root)), *_in_sessions(set(sessions))])


def end_children() -> None:
    """Kill all descendants of this process."""
    _kill(psutil.Process().children(recursive=True))


def end_in_order(pids: Iterable[int]) -> None:
    """Terminate processes, wait, then kill the remaining ones and all of their descendants."""
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
            continue  # not permitted, or already ended
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
    """Return whether a process is running and not a zombie; the first process of a container may never reap zombies."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
