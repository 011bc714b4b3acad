"""One reading of a whole directory of envelopes: every file, its hash and its lines.

What belongs here: walking, reading and hashing such a directory, and what is wrong with it. What does not: the format of a
single line (`contract`), and comparing the directory with its manifest (`sealing`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rebalance_ledger.exports.contract import (
    CONTRACT_VERSION,
    KIND_BY_FILE_NAME,
    KIND_BY_NAME,
    KINDS,
    MAX_LINE_BYTES,
    Content,
    Envelope,
    EnvelopeError,
    IndexedFile,
    Kind,
    cluster_name_problem,
    parse_envelope,
)
from rebalance_ledger.exports.export_files import open_regular, printable, reason_of
from rebalance_ledger.exports.manifest import (
    ATTACHMENT,
    MANIFEST_NAME,
    CaptureAttempt,
    Manifest,
    ManifestFile,
    Redaction,
    attempt_of,
    encode_manifest,
    export_day,
    instant_text,
)
from rebalance_ledger.exports.redacted_files import MARKER
from rebalance_ledger.storage.location import Location, ObjectPath

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime
    from io import BufferedReader

MAX_PROBLEM_COUNT: Final = 20
"""Number of problems after which the check of a directory stops."""

TEMPORARY_PREFIX: Final = ".manifest.json."
"""Start of the names of partial manifests of interrupted seals; they are not part of an export."""

ATTEMPTS: Final = KIND_BY_NAME["capture_attempt"]
"""The kind of the attempts at a capture, which the manifest repeats."""

_MAX_PROBLEM_COUNT_OF_FILE: Final = 5
_START_BYTES: Final = 4096
_PIECE_BYTES: Final = 1 << 20
_KIND_FIELD: Final = re.compile(rb'\s*\{[^\n]*?"kind"\s*:\s*"([a-z_]+)"')


@dataclass(slots=True)
class _Indexed:
    """A line of an index: its file, and the position of the line."""

    file: IndexedFile
    kind: Kind
    where: str


@dataclass(slots=True)
class Survey:
    """One reading of a whole directory.

    Attributes:
        directory: The directory.
        cluster: Required cluster of all lines; by default that of the first line.
        ds: Required day of all captures; None if it is unknown, which is a problem.
        problems: (path, sentence) pairs.
        paths: Every regular file except the manifest, sorted.
        files: Files that were read completely, by path.
        is_sealed: Whether a manifest exists.
        value_counts: File -> number of redacted values, only for files that have any.
        attempts: Attempts at the capture, by number.
    """

    directory: Location
    cluster: str | None
    ds: date | None
    problems: list[tuple[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    files: dict[str, ManifestFile] = field(default_factory=dict)
    is_sealed: bool = False
    value_counts: dict[str, int] = field(default_factory=dict)
    attempts: dict[int, CaptureAttempt] = field(default_factory=dict)
    _first_captured_at: datetime | None = None
    _last_captured_at: datetime | None = None
    _indexed: dict[str, _Indexed] = field(default_factory=dict)
    _cluster_origin: str = "this export is of"

    def check_day_of_name(self, name: str) -> None:
        """Check the directory's name against the day, or take the day from it; check the cluster's name."""
        day_of_name = export_day(name)
        if self.ds is None:
            self.ds = day_of_name
            if day_of_name is None:
                self._problem(
                    name,
                    "is not a day such as 2026-11-16; rename the directory, or give the captures' UTC day",
                )
        elif day_of_name is not None and day_of_name != self.ds:
            self._problem(
                name, f"is the directory's name, but the day given is {self.ds}; one of them is wrong"
            )
        if self.cluster is not None:
            problem = cluster_name_problem(self.cluster)
            if problem is not None:
                self._problem(name, f"cannot be sealed for this cluster: its name {problem}")

    def read(self) -> None:
        """Read all files; stop after too many problems."""
        try:
            self._walk()
            # Indexes must be read before the indexed files.
            for path in self.paths:
                if path in KIND_BY_FILE_NAME:
                    self._read_envelopes(KIND_BY_FILE_NAME[path])
            for path in self.paths:
                if path not in KIND_BY_FILE_NAME:
                    self._read_other(path)
            self._check_presence()
        except _TooManyProblemsError:
            pass

    def sentences(self) -> list[str]:
        """Return the problems as sentences."""
        return [sentence for _, sentence in self.problems]

    def manifest(self, redaction: Redaction | None) -> tuple[Manifest, bytes]:
        """Return the manifest of a directory without problems, and the bytes of its file."""
        if (
            self.cluster is None
            or self.ds is None
            or not self._first_captured_at
            or not self._last_captured_at
        ):
            raise AssertionError("a directory without problems has envelopes")
        files = tuple(self.files[path] for path in sorted(self.files))
        attempts = self.attempts_in_order()
        capture_times = (self._first_captured_at, self._last_captured_at)
        content = encode_manifest(self.cluster, self.ds, capture_times, files, attempts, redaction)
        manifest = Manifest(
            contract_version=CONTRACT_VERSION,
            cluster=self.cluster,
            ds=self.ds,
            first_captured_at=self._first_captured_at,
            last_captured_at=self._last_captured_at,
            files=files,
            attempts=attempts,
            sha256=hashlib.sha256(content).hexdigest(),
            redaction=redaction,
        )
        return manifest, content

    def capture_times(self) -> tuple[datetime | None, datetime | None]:
        """Return the times of the first and the last capture."""
        return self._first_captured_at, self._last_captured_at

    def _problem(self, path: str, sentence: str) -> None:
        self.problems.append((path, f"{printable(path)} {sentence}"))
        if len(self.problems) >= MAX_PROBLEM_COUNT:
            raise _TooManyProblemsError

    def _walk(self) -> None:
        """List all regular files except the manifest, without following links."""
        if isinstance(self.directory, ObjectPath):
            self._take_objects(self.directory)
            return
        folders = [""]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(self.directory / folder) as entries:
                    folder_entries = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                self._problem(folder or str(self.directory), f"cannot be listed: {error.strerror}")
                continue
            for entry in folder_entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if not _is_unicode(path):
                    self._problem(path, "is not named in UTF-8; rename it")
                elif entry.is_symlink():
                    self._problem(path, "is a symbolic link; put the file itself there")
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif not entry.is_file(follow_symlinks=False):
                    self._problem(path, "is neither a file nor a folder; remove it")
                else:
                    self._take(path)
        self.paths.sort()

    def _take_objects(self, directory: ObjectPath) -> None:
        """List all objects except the manifest."""
        try:
            for path in directory.files():
                self._take(path)
        except OSError as error:
            self._problem(str(directory), f"cannot be listed: {reason_of(error)}")
        self.paths.sort()

    def _take(self, path: str) -> None:
        if path == MANIFEST_NAME:
            self.is_sealed = True
        elif not path.startswith(TEMPORARY_PREFIX):
            self.paths.append(path)

    def _read_envelopes(self, kind: Kind) -> None:
        digest = hashlib.sha256()
        line_count = error_count = size_bytes = value_count = 0
        last_problem_count = len(self.problems) + _MAX_PROBLEM_COUNT_OF_FILE
        path = kind.file_name
        try:
            with open_regular(self.directory / path) as file:
                for line in _bounded_lines(file):
                    line_count += 1
                    size_bytes += len(line)
                    digest.update(line)
                    value_count += line.count(MARKER)
                    envelope = self._read_line(kind, line_count, line)
                    if envelope is not None:
                        error_count += envelope.error is not None
                    if len(self.problems) >= last_problem_count or len(line) > MAX_LINE_BYTES:
                        return
        except OSError as error:
            self._problem(path, f"cannot be read: {reason_of(error)}")
            return
        if kind.is_required and line_count == 0:
            self._problem(
                path, "is empty; a source that failed leaves lines with errors, so collect it again"
            )
        if value_count:
            self.value_counts[path] = value_count
        self.files[path] = ManifestFile(
            path=path,
            kind=kind.name,
            line_count=line_count,
            error_count=error_count,
            size_bytes=size_bytes,
            sha256=digest.hexdigest(),
        )

    def _read_line(self, kind: Kind, line_number: int, line: bytes) -> Envelope | None:
        where = f"line {line_number}"
        if len(line) > MAX_LINE_BYTES:
            self._problem(
                kind.file_name, f"{where}: longer than {MAX_LINE_BYTES} bytes; no source answers that much"
            )
            return None
        if not line.endswith(b"\n"):
            self._problem(
                kind.file_name, f"{where}: does not end with a line feed, so it may be cut; write it again"
            )
            return None
        try:
            envelope = parse_envelope(line, kind.name)
        except EnvelopeError as error:
            self._problem(kind.file_name, f"{where}: {error.reason}")
            return None
        self._check_belonging(kind, where, envelope)
        return envelope

    def _check_belonging(self, kind: Kind, where: str, envelope: Envelope) -> None:
        """Check that a line is of the same cluster and day as the others."""
        if self.cluster is None:
            self.cluster = envelope.cluster
            self._cluster_origin = f"{kind.file_name} {where} is of"
        elif envelope.cluster != self.cluster:
            self._problem(
                kind.file_name,
                f"{where}: cluster is {envelope.cluster!r}, but {self._cluster_origin} {self.cluster!r}; "
                "an export holds one cluster",
            )
        if kind.content is Content.NOTE:
            return  # An event may be of the previous day.
        captured_at = envelope.captured_at
        if self.ds is not None and captured_at.date() != self.ds:
            self._problem(
                kind.file_name,
                f"{where}: captured_at is {instant_text(captured_at)}, which is not on {self.ds} UTC; move it to its own day",
            )
        self._first_captured_at = min(self._first_captured_at or captured_at, captured_at)
        self._last_captured_at = max(self._last_captured_at or captured_at, captured_at)
        if envelope.file is not None:
            self._index(kind, where, envelope.file)
        if kind.name == ATTEMPTS.name:
            self._read_attempt(where, envelope)

    def _read_attempt(self, where: str, envelope: Envelope) -> None:
        try:
            document = json.loads(envelope.payload or "")
            attempt = attempt_of(document, envelope.attempt or 0)
        except (ValueError, RecursionError) as error:
            self._problem(
                ATTEMPTS.file_name, f"{where}: does not describe an attempt ({error}); collect the day again"
            )
            return
        if attempt.attempt in self.attempts or attempt.attempt < 1:
            self._problem(
                ATTEMPTS.file_name,
                f"{where}: attempt {attempt.attempt} is there twice, or is not counted from 1",
            )
        self.attempts[attempt.attempt] = attempt

    def attempts_in_order(self) -> tuple[CaptureAttempt, ...]:
        """Return the attempts, sorted by number."""
        return tuple(attempt for _, attempt in sorted(self.attempts.items()))

    def _index(self, kind: Kind, where: str, file: IndexedFile) -> None:
        earlier = self._indexed.get(file.path)
        if earlier is not None:
            self._problem(kind.file_name, f"{where}: {file.path!r} is already named by {earlier.where}")
        self._indexed[file.path] = _Indexed(file, kind, f"{kind.file_name} {where}")

    def _read_other(self, path: str) -> None:
        indexed = self._indexed.get(path)
        index = next((kind for kind in KINDS if path.partition("/")[0] in kind.folders), None)
        try:
            with open_regular(self.directory / path) as file:
                start = file.read(_START_BYTES)
                file.seek(0)
                sha256, value_count = _digest(file)
                size_bytes = file.tell()
        except OSError as error:
            self._problem(path, f"cannot be read: {reason_of(error)}")
            return
        if indexed is not None:
            self._check_indexed(path, indexed, size_bytes, sha256)
        elif index is not None:
            if index.file_name in self.files:
                self._problem(path, f"is in no line of {index.file_name}; add its line, or remove it")
            else:
                self._problem(path, f"needs a line in {index.file_name}, which is not there")
        elif kind := _kind_that_starts(start):
            self._problem(path, f"holds lines of kind {kind.name!r}; only {kind.file_name} is read for them")
        if value_count:
            self.value_counts[path] = value_count
        self.files[path] = ManifestFile(
            path=path,
            kind=ATTACHMENT if indexed is None else indexed.kind.name,
            line_count=None,
            error_count=None,
            size_bytes=size_bytes,
            sha256=sha256,
        )

    def _check_indexed(self, path: str, indexed: _Indexed, size_bytes: int, sha256: str) -> None:
        if size_bytes != indexed.file.size_bytes:
            self._problem(path, f"has {size_bytes} bytes, but {indexed.where} says {indexed.file.size_bytes}")
        elif sha256 != indexed.file.sha256:
            self._problem(path, f"has SHA-256 {sha256}, but {indexed.where} says {indexed.file.sha256}")

    def _check_presence(self) -> None:
        paths = set(self.paths)
        for kind in KINDS:
            if kind.is_required and kind.file_name not in paths:
                self._problem(kind.file_name, "is missing; no export is complete without it")
        for path, indexed in sorted(self._indexed.items()):
            if path not in paths:
                self._problem(
                    path, f"is named by {indexed.where}, but is not there; collect it, or remove the line"
                )


class _TooManyProblemsError(Exception):
    """Ends the reading after too many problems."""


def _kind_that_starts(start: bytes) -> Kind | None:
    """Return the kind of the envelopes at the start of a file outside the contract; None if there are none."""
    match = _KIND_FIELD.match(start)
    return None if match is None else KIND_BY_NAME.get(match[1].decode())


def _digest(file: BufferedReader) -> tuple[str, int]:
    """Return a file's SHA-256 and the number of its redacted values."""
    digest = hashlib.sha256()
    value_count = 0
    end = b""
    while piece := file.read(_PIECE_BYTES):
        digest.update(piece)
        value_count += (end + piece).count(MARKER)
        end = (end + piece)[1 - len(MARKER) :]
    return digest.hexdigest(), value_count


def _bounded_lines(file: BufferedReader) -> Iterator[bytes]:
    """Yield lines with their line feeds; a line that is too long is truncated."""
    while line := file.readline(MAX_LINE_BYTES + 1):
        yield line


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
