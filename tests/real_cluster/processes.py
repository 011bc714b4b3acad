"""Processes that end with the test: started in their own sessions, monitored, and awaited by conditions.

Belongs here: starting, killing, ports, waiting. Does not belong here: anything specific to RocketMQ.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from rebalance_ledger.pipeline.processes import is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

# Below Linux's range for outgoing connections, which could otherwise take a port between probe and start.
_FIRST_PORT = 20_000
_LAST_PORT = 32_000
_LAST_WORDS_COUNT = 15
_BETWEEN_LOOKS_S = 0.2


class Processes:
    """All processes that one test has started."""

    def __init__(self) -> None:
        self._watchdog = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("watchdog.py")],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self.started: list[Started] = []

    def start(
        self,
        words: Sequence[str | Path],
        folder: Path,
        *,
        with_pipes: bool = False,
        environment: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> Started:
        """Start a program that runs in a folder and writes its output to files there.

        Args:
            words: The program and its arguments.
            folder: The folder, which is created.
            with_pipes: Whether its input and output are pipes; then only its errors are written to a file.
            environment: Its complete environment; None for that of this process.
            user: The user that it runs as, for a program that refuses to run as root.
        """
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / "output.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(word) for word in words],
                cwd=folder,
                stdin=subprocess.PIPE if with_pipes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if with_pipes else output,
                stderr=output,
                start_new_session=True,
                env=environment,
                user=user,
            )
        assert self._watchdog.stdin is not None
        created = psutil.Process(process.pid).create_time()
        self._watchdog.stdin.write(f"{process.pid} {created!r}\n".encode())
        self._watchdog.stdin.flush()
        started = Started(process, log)
        self.started.append(started)
        return started

    def close(self) -> None:
        """Kill the remaining processes, without a clean shutdown because nothing of them is needed."""
        for started in self.started:
            started.kill()
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.close()
        self._watchdog.wait()


class Started:
    """One process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """Kill it as a power failure would, even if it is frozen; do nothing if it has ended."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                # Unwritten input is irrelevant to a dead process.
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def listens_on(self, port: int) -> bool:
        """Return whether it accepts connections on a loopback port."""
        assert self.is_alive(), (
            f"process {self.pid} ended with {self.process.returncode}:\n{self.last_output()}"
        )
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def last_output(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_LAST_WORDS_COUNT:])


class FreePorts:
    """Ports on which nothing listens; none is returned twice."""

    def __init__(self) -> None:
        # Concurrent test processes start at different ports.
        self._next = _FIRST_PORT + os.getpid() * 97 % (_LAST_PORT - _FIRST_PORT)

    def block(self, size: int) -> int:
        """Return the first of a number of consecutive free ports."""
        while True:
            first = self._next
            self._next += size
            if self._next > _LAST_PORT:
                self._next = _FIRST_PORT
            elif all(_is_free(port) for port in range(first, first + size)):
                return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def descendants(pid: int, word: str = "") -> list[psutil.Process]:
    """Return the living descendants of a process, optionally only those whose command line contains a word."""
    return [each for each in psutil.Process(pid).children(recursive=True) if _has(each, word)]


def _has(process: psutil.Process, word: str) -> bool:
    try:
        return any(word in part for part in process.cmdline())
    except psutil.Error:
        return False  # it has just ended


def have_ended(processes: Iterable[psutil.Process]) -> str | None:
    """Return a description of the processes that still run, or None."""
    left = [process.pid for process in processes if is_alive(process)]
    return f"processes {left} still run" if left else None


def wait_until(
    condition: Callable[[], str | None], seconds: float, between_looks_s: float = _BETWEEN_LOOKS_S
) -> None:
    """Wait until a condition returns None.

    Args:
        condition: Returns a description of what is missing, or None.
        seconds: The timeout.
        between_looks_s: The polling interval, long enough not to slow down the awaited process.
    """
    deadline = time.monotonic() + seconds
    while (missing := condition()) is not None:
        assert time.monotonic() < deadline, f"after {seconds:.0f} s: {missing}"
        time.sleep(between_looks_s)
