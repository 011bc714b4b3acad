"""Processes that end with the test: started in their own sessions, monitored, and awaited by conditions.

Belongs here: starting and killing, ports, waiting. Does not belong here: anything that knows RocketMQ.
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

# Below what Linux hands out to outgoing connections, which could otherwise take a port between probe and start.
_FIRST_PORT = 20_000
_LAST_PORT = 32_000
_LAST_WORDS_COUNT = 15
_BETWEEN_LOOKS_S = 0.2


class Processes:
    """Everything that one test has started."""

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
        """Start a program with its output in files in a folder, which is also where it works.

        Args:
            words: The program and its arguments.
            folder: It is made.
            with_pipes: Whether its input and output are pipes for us; then only its errors go to a file.
            environment: All of its environment; ours if it is left out.
            user: Whom it runs as, for a program that will not run as root.
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
        """Kill what is left. Nothing of it is wanted any more, so nobody waits for an orderly end."""
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
        """End it at once, as a power cut would; also if it is frozen or has ended."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                # What could not be written any more is of no use to a process that is dead.
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def listens_on(self, port: int) -> bool:
        """Return whether it accepts connections on a port of loopback."""
        assert self.is_alive(), (
            f"process {self.pid} ended with {self.process.returncode}:\n{self.last_words()}"
        )
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_LAST_WORDS_COUNT:])


class FreePorts:
    """Ports that nobody listens on; none is given twice."""

    def __init__(self) -> None:
        # Tests that run at the same time begin at different places.
        self._next = _FIRST_PORT + os.getpid() * 97 % (_LAST_PORT - _FIRST_PORT)

    def block(self, size: int) -> int:
        """Return the first of so many free ports in a row."""
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
    """Return the living processes that a process has started, with theirs; only those whose command line has a word, if one is given."""
    return [each for each in psutil.Process(pid).children(recursive=True) if _has(each, word)]


def _has(process: psutil.Process, word: str) -> bool:
    try:
        return any(word in part for part in process.cmdline())
    except psutil.Error:
        return False  # it has just ended


def have_ended(processes: Iterable[psutil.Process]) -> str | None:
    """Return which of them still run, or None."""
    left = [process.pid for process in processes if is_alive(process)]
    return f"processes {left} still run" if left else None


def wait_until(
    condition: Callable[[], str | None], seconds: float, between_looks_s: float = _BETWEEN_LOOKS_S
) -> None:
    """Wait until a condition says nothing.

    Args:
        condition: What is still missing, or None.
        seconds: How long to wait at most.
        between_looks_s: So that looking does not slow down what it waits for.
    """
    deadline = time.monotonic() + seconds
    while (missing := condition()) is not None:
        assert time.monotonic() < deadline, f"after {seconds:.0f} s: {missing}"
        time.sleep(between_looks_s)
