"""Reading an export ahead of its check: each piece of it in order, with the task of the process that checks it.

Belongs here: cutting files of envelopes at line feeds, hashing them, and giving the pieces to workers. Does not belong here: what
follows from their results (`survey`), and the workers (`check_processes`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from rebalance_ledger.exports.contract import KIND_BY_FILE_NAME, KIND_BY_NAME
from rebalance_ledger.exports.export_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from hashlib import _Hash
    from io import BufferedReader

    from rebalance_ledger.exports.check_processes import CheckProcesses, Ticket, Worker
    from rebalance_ledger.exports.contract import Kind
    from rebalance_ledger.exports.file_facts import FileFacts, LineFacts

ATTEMPTS: Final = KIND_BY_NAME["capture_attempt"]
"""The kind of the attempts at a capture, which are few, and which the manifest repeats."""

_FILES_OF_TASK: Final = 32
"""So many offset files are read in about the time of a chunk of lines."""


@dataclass(slots=True)
class LinesOfFile:
    """What is known of a file of envelopes before its end.

    Attributes:
        kind: Kind of its lines.
        line_count: Number of lines that were checked.
        error_count: Number of those with an error.
        value_count: Number of redacted values in them.
        problem_count: Number of their problems.
        is_given_up: Whether the rest is not checked.
    """

    kind: Kind
    line_count: int = 0
    error_count: int = 0
    value_count: int = 0
    problem_count: int = 0
    is_given_up: bool = False


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines that a worker checks."""

    file: LinesOfFile
    ticket: Ticket[LineFacts | None]


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line that is longer than a chunk; one that is too long is truncated. Nothing is read ahead of it."""

    file: LinesOfFile
    line: bytes


@dataclass(frozen=True, slots=True)
class Rest:
    """The rest of a file, which is to be read one line after another: it is cut, cannot be read, or is of dependent lines.

    Attributes:
        file: The file.
        digest: SHA-256 of what is before.
        size_bytes: Size of what is before.
    """

    file: LinesOfFile
    digest: _Hash
    size_bytes: int


@dataclass(frozen=True, slots=True)
class End:
    """The end of a file of envelopes; its size is in bytes."""

    file: LinesOfFile
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class OtherFiles:
    """Files without envelopes that a worker reads."""

    paths: Sequence[str]
    ticket: Ticket[tuple[FileFacts | str, ...]]


Piece: TypeAlias = Chunk | LongLine | Rest | End | OtherFiles


def pieces(paths: Sequence[str], processes: CheckProcesses) -> Iterator[Piece]:
    """Yield an export piece by piece: files of envelopes first, each group in the order of the paths.

    Args:
        paths: Paths of all files, with `/` as separator.
        processes: The processes that check the pieces.

    Raises:
        CheckEndedError: One of them has ended.
    """
    for path in paths:
        if path in KIND_BY_FILE_NAME:
            yield from _pieces_of_file(LinesOfFile(KIND_BY_FILE_NAME[path]), processes)
    others = [path for path in paths if path not in KIND_BY_FILE_NAME]
    for start in range(0, len(others), _FILES_OF_TASK):
        some = others[start : start + _FILES_OF_TASK]
        yield OtherFiles(some, processes.read_files(some))


def _pieces_of_file(file: LinesOfFile, processes: CheckProcesses) -> Iterator[Piece]:
    digest = hashlib.sha256()
    size_bytes = 0
    if file.kind is ATTEMPTS:
        yield Rest(file, digest, size_bytes)
        return
    try:
        with open_regular(processes.directory / file.kind.file_name) as opened:
            incomplete = b""
            while not file.is_given_up:
                worker = processes.free_worker()
                filled_bytes = _fill(worker, incomplete, opened)
                line_bytes = worker.buffer.rfind(b"\n", 0, filled_bytes) + 1
                if filled_bytes == len(incomplete):
                    break
                if line_bytes:
                    ticket = processes.check_lines(worker, file.kind, line_bytes)
                    with memoryview(worker.buffer) as buffer:
                        digest.update(buffer[:line_bytes])
                    incomplete = worker.buffer[line_bytes:filled_bytes]
                    size_bytes += line_bytes
                    yield Chunk(file, ticket)
                elif filled_bytes < len(worker.buffer):
                    incomplete = worker.buffer[:filled_bytes]
                else:
                    line = _long_line(worker, opened, processes.expected.max_line_bytes)
                    digest.update(line)
                    size_bytes += len(line)
                    incomplete = b""
                    yield LongLine(file, line)
            if not incomplete:
                yield End(file, digest.hexdigest(), size_bytes)
                return
    except OSError:
        pass
    yield Rest(file, digest, size_bytes)


def _fill(worker: Worker, start: bytes, opened: BufferedReader) -> int:
    """Put bytes and what follows them in a file into a worker's buffer, and return how many bytes there are."""
    with memoryview(worker.buffer) as buffer, buffer[len(start) :] as free:
        buffer[: len(start)] = start
        return len(start) + opened.readinto(free)


def _long_line(worker: Worker, opened: BufferedReader, max_line_bytes: int) -> bytes:
    """Return the line that fills a worker's buffer, with its end; truncated to one byte more than a line may have."""
    start = worker.buffer[: max_line_bytes + 1]
    return start + opened.readline(max_line_bytes + 1 - len(start))
