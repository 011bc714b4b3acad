"""What the check of an export finds out about its files, in whichever process it reads them.

Belongs here: facts of a single line, of lines that lie together, and of a file without lines. Does not belong here: facts that depend
on other lines or files, such as paths that are named twice (`survey`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.exports.contract import (
    KIND_BY_NAME,
    MAX_LINE_BYTES,
    Content,
    EnvelopeError,
    check_envelope,
)
from rebalance_ledger.exports.export_files import open_regular
from rebalance_ledger.exports.manifest import instant_text
from rebalance_ledger.exports.redacted_files import MARKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date, datetime
    from io import BufferedIOBase

    from rebalance_ledger.exports.contract import CheckedLine, IndexedFile, Kind
    from rebalance_ledger.storage.location import Location

_START_BYTES: Final = 4096
_PIECE_BYTES: Final = 1 << 20
_KIND_FIELD: Final = re.compile(rb'\s*\{[^\n]*?"kind"\s*:\s*"([a-z_]+)"')


@dataclass(slots=True)
class Expected:
    """What every line of an export must be.

    Attributes:
        cluster: Cluster; None if the first line decides.
        cluster_origin: Clause that says where the cluster is from.
        ds: UTC day of all captures; None if it is unknown.
        max_line_bytes: Maximum length of a line, including the line feed.
    """

    cluster: str | None
    ds: date | None
    cluster_origin: str = "this export is of"
    max_line_bytes: int = MAX_LINE_BYTES


@dataclass(frozen=True, slots=True)
class LineFacts:
    """Facts of lines that lie together in a file of envelopes, and none of which has a problem.

    Attributes:
        line_count: Number of lines.
        error_count: Number of lines with an error.
        value_count: Number of redacted values.
        first_captured_at: Earliest capture (UTC); None if no line has one.
        last_captured_at: Latest capture (UTC).
        indexed: Files that lines of an index name, each with the number of its line among these, from 1.
    """

    line_count: int
    error_count: int
    value_count: int
    first_captured_at: datetime | None
    last_captured_at: datetime | None
    indexed: tuple[tuple[int, IndexedFile], ...]


class FileFacts(NamedTuple):
    """Facts of a file outside of the contract's files of envelopes.

    Attributes:
        kind_at_start: Kind of the envelopes at its start; None if there are none.
        size_bytes: Size.
        sha256: SHA-256 of the content, in lower-case hexadecimal digits.
        value_count: Number of redacted values.
    """

    kind_at_start: Kind | None
    size_bytes: int
    sha256: str
    value_count: int


def bounded_lines(file: BufferedIOBase, max_line_bytes: int) -> Iterator[bytes]:
    """Yield lines with their line feeds; a line that is too long is truncated to one byte more than it may have."""
    while line := file.readline(max_line_bytes + 1):
        yield line


def check_line(kind: Kind, line: bytes, expected: Expected) -> tuple[CheckedLine | None, tuple[str, ...]]:
    """Return what an envelope says, None if the line is none, and a clause for each of its problems."""
    if len(line) > expected.max_line_bytes:
        return None, (f"longer than {expected.max_line_bytes} bytes; no source answers that much",)
    if not line.endswith(b"\n"):
        return None, ("does not end with a line feed, so it may be cut; write it again",)
    try:
        checked = check_envelope(line, kind.name)
    except EnvelopeError as error:
        return None, (error.reason,)
    problems: tuple[str, ...] = ()
    if expected.cluster is not None and checked.cluster != expected.cluster:
        problem = (
            f"cluster is {checked.cluster!r}, but {expected.cluster_origin} {expected.cluster!r}; "
            "an export holds one cluster"
        )
        problems = (problem,)
    # An event may be of the previous day.
    captured_at = checked.captured_at
    if kind.content is not Content.NOTE and expected.ds is not None and captured_at.date() != expected.ds:
        problem = f"captured_at is {instant_text(captured_at)}, which is not on {expected.ds} UTC; move it to its own day"
        problems = (*problems, problem)
    return checked, problems


def line_facts(kind: Kind, lines: Iterable[bytes], expected: Expected) -> LineFacts | None:
    """Return the facts of lines of a file of envelopes; None if one has a problem.

    `expected.cluster` must be known.
    """
    line_count = error_count = value_count = 0
    first: datetime | None = None
    last: datetime | None = None
    indexed: list[tuple[int, IndexedFile]] = []
    for line in lines:
        checked, problems = check_line(kind, line, expected)
        if checked is None or problems:
            return None
        line_count += 1
        error_count += checked.has_error
        value_count += line.count(MARKER)
        if kind.content is Content.NOTE:
            continue
        captured_at = checked.captured_at
        if first is None or captured_at < first:
            first = captured_at
        if last is None or captured_at > last:
            last = captured_at
        if checked.file is not None:
            indexed.append((line_count, checked.file))
    return LineFacts(line_count, error_count, value_count, first, last, tuple(indexed))


def file_facts(path: Location) -> FileFacts:
    """Read a file and return its facts.

    Raises:
        OSError: The file is not a regular one, or cannot be read.
    """
    digest = hashlib.sha256()
    value_count = 0
    end = b""
    with open_regular(path) as file:
        start = file.read(_START_BYTES)
        file.seek(0)
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
            value_count += (end + piece).count(MARKER)
            end = (end + piece)[1 - len(MARKER) :]
        return FileFacts(_kind_at_start(start), file.tell(), digest.hexdigest(), value_count)


def _kind_at_start(start: bytes) -> Kind | None:
    match = _KIND_FIELD.match(start)
    return None if match is None else KIND_BY_NAME.get(match[1].decode())
