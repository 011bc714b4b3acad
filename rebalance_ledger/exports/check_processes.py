"""The processes that check an export beside this one, and the memory that they share with it.

This process reads and hashes a file's bytes once and puts them where a worker sees them, so that what is checked is what is
hashed, and an object store is asked once. Workers are plain programs with a socket, not those of `multiprocessing`: these would
import the main module of a Spark driver again, and outlive a parent that is killed.

Belongs here: starting, feeding and ending workers. Does not belong here: their tasks (`check_worker`), and which part of an export is
a task (`read_ahead`).
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from rebalance_ledger.exports.check_worker import FilesTask, LinesTask

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from rebalance_ledger.exports.contract import Kind
    from rebalance_ledger.exports.file_facts import Expected, FileFacts, LineFacts
    from rebalance_ledger.storage.location import Location

_Result = TypeVar("_Result")

_PROGRAM: Final = (
    "import sys; from rebalance_ledger.exports.check_worker import serve; serve(*map(int, sys.argv[1:]))"
)
_MAX_END_SECONDS: Final = 10


class CheckEndedError(RuntimeError):
    """A process that checks an export could not be started, or ended before its work did; `str()` is one sentence."""


class Ticket(Generic[_Result]):
    """A task that a worker has or had.

    Attributes:
        is_done: Whether there is a result.
        lines: The lines of the task, if it found a problem in them; otherwise empty.
    """

    def __init__(self, line_bytes: int) -> None:
        self.is_done = False
        self.lines = b""
        self._line_bytes = line_bytes
        self._results: list[_Result] = []

    @property
    def result(self) -> _Result:
        """What the task returned, once it is done."""
        return self._results[0]

    def end(self, result: _Result, buffer: mmap.mmap) -> None:
        """Take the result, and the lines before others are written over them."""
        self._results.append(result)
        if result is None:
            self.lines = buffer[: self._line_bytes]
        self.is_done = True


class Worker:
    """A process, its connection, and memory that both processes see.

    Attributes:
        buffer: The memory; it is written only while the worker has no task.
        ticket: The task that the worker has, if any.
    """

    def __init__(self, chunk_bytes: int) -> None:
        self.ticket: Ticket[Any] | None = None
        descriptor = os.memfd_create("lines of an export")
        try:
            os.ftruncate(descriptor, chunk_bytes)
            self.buffer = mmap.mmap(descriptor, chunk_bytes)
            self.connection, other_end = Pipe()
            with other_end:
                inherited = (other_end.fileno(), descriptor)
                self._process = subprocess.Popen(  # noqa: S603  # our own program
                    [sys.executable, "-c", _PROGRAM, *map(str, inherited)],
                    stdin=subprocess.DEVNULL,
                    pass_fds=inherited,
                    env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
        finally:
            os.close(descriptor)

    def send(self, task: LinesTask | FilesTask, ticket: Ticket[Any]) -> None:
        """Give the worker a task.

        Raises:
            CheckEndedError: The worker has ended.
        """
        try:
            self.connection.send(task)
        except OSError:
            raise self._ended() from None
        self.ticket = ticket

    def receive(self) -> None:
        """Wait for the result of the worker's task.

        Raises:
            CheckEndedError: The worker has ended.
        """
        try:
            result = self.connection.recv()
        except (EOFError, OSError):
            raise self._ended() from None
        if self.ticket is not None:
            self.ticket.end(result, self.buffer)
        self.ticket = None

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        self.connection.close()
        self.buffer.close()

    def _ended(self) -> CheckEndedError:
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_MAX_END_SECONDS)
        cause = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with {code}"
        return CheckEndedError(
            f"A process that checked a part of the export {cause} before it was done, so nothing is known of the export. "
            "Look for a process that ran out of memory, then run the same command again."
        )


class CheckProcesses:
    """Up to so many workers, which are started when there is work for them.

    Attributes:
        directory: The export.
        expected: What each line must be; the cluster is known.
        process_count: Maximum number of workers.
    """

    def __init__(
        self, directory: Location, expected: Expected, *, process_count: int, chunk_bytes: int
    ) -> None:
        self.directory = directory
        self.expected = expected
        self.process_count = process_count
        self._chunk_bytes = chunk_bytes
        self._workers: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.end()

    def free_worker(self) -> Worker:
        """Return a worker without a task; start one, or wait.

        Raises:
            CheckEndedError: A worker has ended, or cannot be started.
        """
        while True:
            for worker in self._workers:
                if worker.ticket is None:
                    return worker
            if len(self._workers) < self.process_count:
                return self._started()
            self._receive()

    def check_lines(self, worker: Worker, kind: Kind, size_bytes: int) -> Ticket[LineFacts | None]:
        """Let a worker check the lines at the start of its buffer.

        Args:
            worker: A worker without a task.
            kind: Kind of the lines.
            size_bytes: Size of the lines, of which the last byte is a line feed.

        Raises:
            CheckEndedError: The worker has ended.
        """
        ticket: Ticket[LineFacts | None] = Ticket(size_bytes)
        worker.send(LinesTask(kind.name, size_bytes, self.expected), ticket)
        return ticket

    def read_files(self, paths: Sequence[str]) -> Ticket[tuple[FileFacts | str, ...]]:
        """Let a worker read files without envelopes; the result has a reason for each that cannot be read.

        Raises:
            CheckEndedError: A worker has ended, or cannot be started.
        """
        ticket: Ticket[tuple[FileFacts | str, ...]] = Ticket(0)
        self.free_worker().send(FilesTask(self.directory, tuple(paths)), ticket)
        return ticket

    def wait_for(self, ticket: Ticket[Any]) -> None:
        """Wait until a task is done.

        Raises:
            CheckEndedError: A worker has ended.
        """
        while not ticket.is_done:
            self._receive()

    def _started(self) -> Worker:
        try:
            worker = Worker(self._chunk_bytes)
        except OSError as error:
            raise CheckEndedError(
                f"A process that checks a part of the export cannot be started: {error.strerror}."
            ) from error
        self._workers.append(worker)
        return worker

    def _receive(self) -> None:
        """Take the results of the workers that are done, at least one."""
        busy = {worker.connection: worker for worker in self._workers if worker.ticket is not None}
        for connection in wait(list(busy)):
            busy[connection].receive()  # type: ignore[index]  # only connections are waited for
