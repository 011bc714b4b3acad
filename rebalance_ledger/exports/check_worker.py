"""A process that checks parts of an export for another one.

It takes tasks from the process that started it, one at a time, and ends with it: when that process is gone, so is the other end
of the connection.

Belongs here: the tasks, and the loop of such a process. Does not belong here: starting it (`check_processes`), and what is checked
(`file_facts`). Its imports are those of every process that is started.
"""

from __future__ import annotations

import mmap
import signal
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from rebalance_ledger.exports.contract import KIND_BY_NAME
from rebalance_ledger.exports.export_files import reason_of
from rebalance_ledger.exports.file_facts import file_facts, line_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rebalance_ledger.exports.file_facts import Expected, FileFacts, LineFacts
    from rebalance_ledger.storage.location import Location


@dataclass(frozen=True, slots=True)
class LinesTask:
    """Check the lines in the shared buffer.

    Attributes:
        kind_name: Name of their kind.
        size_bytes: Size of the lines; the last byte is a line feed.
        expected: What each line must be.
    """

    kind_name: str
    size_bytes: int
    expected: Expected

    def run(self, buffer: mmap.mmap) -> LineFacts | None:
        """Return the lines' facts; None if a line has a problem."""
        return line_facts(KIND_BY_NAME[self.kind_name], _lines(buffer, self.size_bytes), self.expected)


@dataclass(frozen=True, slots=True)
class FilesTask:
    """Read files without envelopes.

    Attributes:
        directory: The export.
        paths: Paths in it, with `/` as separator.
    """

    directory: Location
    paths: tuple[str, ...]

    def run(self, _: mmap.mmap) -> tuple[FileFacts | str, ...]:
        """Return the facts of each file; for one that cannot be read, the reason."""
        return tuple(self._facts(path) for path in self.paths)

    def _facts(self, path: str) -> FileFacts | str:
        try:
            return file_facts(self.directory / path)
        except OSError as error:
            return reason_of(error)


def serve(connection_descriptor: int, buffer_descriptor: int) -> None:
    """Run tasks and send back their results until the other end of the connection is closed."""
    # The process that is interrupted ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with (
        Connection(connection_descriptor) as connection,
        mmap.mmap(buffer_descriptor, 0) as buffer,
        suppress(EOFError, ConnectionError),
    ):
        while True:
            task: LinesTask | FilesTask = connection.recv()
            connection.send(task.run(buffer))


def _lines(buffer: mmap.mmap, size_bytes: int) -> Iterator[bytes]:
    buffer.seek(0)
    while buffer.tell() < size_bytes:
        yield buffer.readline()
