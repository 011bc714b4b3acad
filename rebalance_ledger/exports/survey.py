"""One reading of a whole directory of envelopes: every file, its hash and its lines.

Belongs here: walking such a directory, and what follows from its lines and files together. Does not belong here: a single line or file
(`file_facts`), reading ahead (`read_ahead`), and comparing the directory with its manifest (`sealing`).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rebalance_ledger.cluster_name import cluster_name_problem
from rebalance_ledger.exports.contract import (
    CONTRACT_VERSION,
    KIND_BY_FILE_NAME,
    KINDS,
    Content,
    parse_envelope,
)
from rebalance_ledger.exports.export_files import open_regular, printable, reason_of
from rebalance_ledger.exports.file_facts import bounded_lines, check_line, file_facts
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
)
from rebalance_ledger.exports.read_ahead import (
    ATTEMPTS,
    Chunk,
    End,
    LinesOfFile,
    LongLine,
    OtherFiles,
    Rest,
    pieces,
)
from rebalance_ledger.exports.redacted_files import MARKER
from rebalance_ledger.storage.location import Location, ObjectPath

if TYPE_CHECKING:
    from datetime import datetime
    from io import BufferedIOBase

    from rebalance_ledger.exports.check_processes import CheckProcesses
    from rebalance_ledger.exports.contract import IndexedFile, Kind
    from rebalance_ledger.exports.file_facts import Expected, FileFacts, LineFacts
    from rebalance_ledger.exports.read_ahead import Piece

MAX_PROBLEM_COUNT: Final = 20
"""Number of problems after which the check of a directory stops."""

TEMPORARY_PREFIX: Final = ".manifest.json."
"""Start of the names of partial manifests of interrupted seals; they are not part of an export."""

_MAX_PROBLEM_COUNT_OF_FILE: Final = 5
_INDEX_OF_FOLDER: Final = {folder: kind for kind in KINDS for folder in kind.folders}
_PIECES_OF_PROCESS: Final = 2
"""So many pieces for each process are read ahead of the one that is taken."""


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
        expected: What each line must be; the first line decides a cluster that is None, and a day that is None is a problem.
        problems: (path, sentence) pairs.
        paths: Every regular file except the manifest, sorted.
        files: Files that were read completely, by path.
        is_sealed: Whether a manifest exists.
        value_counts: File -> number of redacted values, only for files that have any.
        attempts: Attempts at the capture, by number.
    """

    directory: Location
    expected: Expected
    problems: list[tuple[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    files: dict[str, ManifestFile] = field(default_factory=dict)
    is_sealed: bool = False
    value_counts: dict[str, int] = field(default_factory=dict)
    attempts: dict[int, CaptureAttempt] = field(default_factory=dict)
    _first_captured_at: datetime | None = None
    _last_captured_at: datetime | None = None
    _indexed: dict[str, _Indexed] = field(default_factory=dict)

    def check_day_of_name(self, name: str) -> None:
        """Check the directory's name against the day, or take the day from it; check the cluster's name."""
        day_of_name = export_day(name)
        if self.expected.ds is None:
            self.expected.ds = day_of_name
            if day_of_name is None:
                self._problem(
                    name,
                    "is not a day such as 2026-11-16; rename the directory, or give the captures' UTC day",
                )
        elif day_of_name is not None and day_of_name != self.expected.ds:
            self._problem(
                name,
                f"is the directory's name, but the day given is {self.expected.ds}; one of them is wrong",
            )
        if self.expected.cluster is not None:
            problem = cluster_name_problem(self.expected.cluster)
            if problem is not None:
                self._problem(name, f"cannot be sealed for this cluster: its name {problem}")

    def read(self, processes: CheckProcesses | None = None) -> None:
        """Read all files; stop after too many problems.

        Args:
            processes: Processes that check what this one reads; None to check everything here. Both find the same.

        Raises:
            CheckEndedError: One of the processes has ended.
        """
        try:
            self._walk()
            if processes is None:
                self._read_here()
            else:
                self._read_beside(processes)
            self._check_presence()
        except _TooManyProblemsError:
            pass

    def _read_here(self) -> None:
        # Indexes must be read before the indexed files.
        for path in self.paths:
            if path in KIND_BY_FILE_NAME:
                self._read_rest(Rest(LinesOfFile(KIND_BY_FILE_NAME[path]), hashlib.sha256(), 0))
        for path in self.paths:
            if path not in KIND_BY_FILE_NAME:
                self._read_other(path)

    def _read_beside(self, processes: CheckProcesses) -> None:
        """Take the pieces of the export in order while later ones are being checked."""
        pending: deque[Piece] = deque()
        most = _PIECES_OF_PROCESS * processes.process_count
        for piece in pieces(self.paths, processes):
            pending.append(piece)
            while pending and (len(pending) > most or isinstance(piece, LongLine) or _is_done(pending[0])):
                self._take_piece(pending.popleft(), processes)
        while pending:
            self._take_piece(pending.popleft(), processes)

    def _take_piece(self, piece: Piece, processes: CheckProcesses) -> None:
        if isinstance(piece, OtherFiles):
            processes.wait_for(piece.ticket)
            for path, facts in zip(piece.paths, piece.ticket.result, strict=True):
                self._take_other(path, facts)
        elif piece.file.is_given_up:
            return
        elif isinstance(piece, Chunk):
            processes.wait_for(piece.ticket)
            if piece.ticket.result is None:
                self._read_lines(piece.file, io.BytesIO(piece.ticket.lines))
            else:
                self._take_facts(piece.file, piece.ticket.result)
        elif isinstance(piece, LongLine):
            self._read_line(piece.file, piece.line)
        elif isinstance(piece, Rest):
            self._read_rest(piece)
        else:
            self._take_end(piece)

    def sentences(self) -> list[str]:
        """Return the problems as sentences."""
        return [sentence for _, sentence in self.problems]

    def manifest(self, redaction: Redaction | None) -> tuple[Manifest, bytes]:
        """Return the manifest of a directory without problems, and the bytes of its file."""
        cluster, ds = self.expected.cluster, self.expected.ds
        if cluster is None or ds is None or not self._first_captured_at or not self._last_captured_at:
            raise AssertionError("a directory without problems has envelopes")
        files = tuple(self.files[path] for path in sorted(self.files))
        attempts = self.attempts_in_order()
        capture_times = (self._first_captured_at, self._last_captured_at)
        content = encode_manifest(cluster, ds, capture_times, files, attempts, redaction)
        manifest = Manifest(
            contract_version=CONTRACT_VERSION,
            cluster=cluster,
            ds=ds,
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
                with os.scandir(f"{self.directory}/{folder}") as entries:
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

    def _line_problem(self, file: LinesOfFile, line_number: int, clause: str) -> None:
        file.problem_count += 1
        self._problem(file.kind.file_name, f"line {line_number}: {clause}")

    def _read_rest(self, rest: Rest) -> None:
        """Read a file of envelopes, or what is left of it, one line after another."""
        file, digest, size_bytes = rest.file, rest.digest, rest.size_bytes
        path = file.kind.file_name
        try:
            with open_regular(self.directory / path) as opened:
                opened.seek(size_bytes)
                for line in bounded_lines(opened, self.expected.max_line_bytes):
                    size_bytes += len(line)
                    digest.update(line)
                    self._read_line(file, line)
                    if file.is_given_up:
                        return
        except OSError as error:
            self._problem(path, f"cannot be read: {reason_of(error)}")
            return
        self._take_end(End(file, digest.hexdigest(), size_bytes))

    def _read_lines(self, file: LinesOfFile, lines: BufferedIOBase) -> None:
        for line in bounded_lines(lines, self.expected.max_line_bytes):
            self._read_line(file, line)
            if file.is_given_up:
                return

    def _read_line(self, file: LinesOfFile, line: bytes) -> None:
        """Take a line; give its file up if there are too many problems, or if the line has no end."""
        file.line_count += 1
        file.value_count += line.count(MARKER)
        checked, clauses = check_line(file.kind, line, self.expected)
        if checked is not None:
            file.error_count += checked.has_error
            if self.expected.cluster is None:
                self.expected.cluster = checked.cluster
                self.expected.cluster_origin = f"{file.kind.file_name} line {file.line_count} is of"
        for clause in clauses:
            self._line_problem(file, file.line_count, clause)
        if checked is not None and file.kind.content is not Content.NOTE:
            self._take_capture_times(checked.captured_at, checked.captured_at)
            if checked.file is not None:
                self._index(file, file.line_count, checked.file)
            if file.kind is ATTEMPTS:
                self._read_attempt(file, line)
        file.is_given_up = (
            file.problem_count >= _MAX_PROBLEM_COUNT_OF_FILE or len(line) > self.expected.max_line_bytes
        )

    def _take_facts(self, file: LinesOfFile, facts: LineFacts) -> None:
        """Take lines that were checked; the only problem that they can have is a path that is named twice."""
        for line_number, indexed in facts.indexed:
            self._index(file, file.line_count + line_number, indexed)
            if file.problem_count >= _MAX_PROBLEM_COUNT_OF_FILE:
                file.is_given_up = True
                return
        file.line_count += facts.line_count
        file.error_count += facts.error_count
        file.value_count += facts.value_count
        if facts.first_captured_at is not None and facts.last_captured_at is not None:
            self._take_capture_times(facts.first_captured_at, facts.last_captured_at)

    def _take_capture_times(self, first: datetime, last: datetime) -> None:
        self._first_captured_at = min(self._first_captured_at or first, first)
        self._last_captured_at = max(self._last_captured_at or last, last)

    def _take_end(self, end: End) -> None:
        file, path = end.file, end.file.kind.file_name
        if file.kind.is_required and file.line_count == 0:
            self._problem(
                path, "is empty; a source that failed leaves lines with errors, so collect it again"
            )
        if file.value_count:
            self.value_counts[path] = file.value_count
        self.files[path] = ManifestFile(
            path=path,
            kind=file.kind.name,
            line_count=file.line_count,
            error_count=file.error_count,
            size_bytes=end.size_bytes,
            sha256=end.sha256,
        )

    def _read_attempt(self, file: LinesOfFile, line: bytes) -> None:
        envelope = parse_envelope(line, file.kind.name)
        try:
            document = json.loads(envelope.payload or "")
            attempt = attempt_of(document, envelope.attempt or 0)
        except (ValueError, RecursionError) as error:
            self._line_problem(
                file, file.line_count, f"does not describe an attempt ({error}); collect the day again"
            )
            return
        if attempt.attempt in self.attempts or attempt.attempt < 1:
            self._line_problem(
                file,
                file.line_count,
                f"attempt {attempt.attempt} is a duplicate, or is not counted from 1",
            )
        self.attempts[attempt.attempt] = attempt

    def attempts_in_order(self) -> tuple[CaptureAttempt, ...]:
        """Return the attempts, sorted by number."""
        return tuple(attempt for _, attempt in sorted(self.attempts.items()))

    def _index(self, file: LinesOfFile, line_number: int, indexed: IndexedFile) -> None:
        earlier = self._indexed.get(indexed.path)
        if earlier is not None:
            self._line_problem(file, line_number, f"{indexed.path!r} is already named by {earlier.where}")
        where = f"{file.kind.file_name} line {line_number}"
        self._indexed[indexed.path] = _Indexed(indexed, file.kind, where)

    def _read_other(self, path: str) -> None:
        try:
            facts: FileFacts | str = file_facts(self.directory / path)
        except OSError as error:
            facts = reason_of(error)
        self._take_other(path, facts)

    def _take_other(self, path: str, facts: FileFacts | str) -> None:
        """Take the facts of a file without envelopes, or the reason why it cannot be read."""
        if isinstance(facts, str):
            self._problem(path, f"cannot be read: {facts}")
            return
        indexed = self._indexed.get(path)
        index = _INDEX_OF_FOLDER.get(path.partition("/")[0])
        if indexed is not None:
            self._check_indexed(path, indexed, facts.size_bytes, facts.sha256)
        elif index is not None:
            if index.file_name in self.files:
                self._problem(path, f"is in no line of {index.file_name}; add its line, or remove it")
            else:
                self._problem(path, f"needs a line in {index.file_name}, which is not there")
        elif kind := facts.kind_at_start:
            self._problem(path, f"holds lines of kind {kind.name!r}; only {kind.file_name} is read for them")
        if facts.value_count:
            self.value_counts[path] = facts.value_count
        self.files[path] = ManifestFile(
            path=path,
            kind=ATTACHMENT if indexed is None else indexed.kind.name,
            line_count=None,
            error_count=None,
            size_bytes=facts.size_bytes,
            sha256=facts.sha256,
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


def _is_done(piece: Piece) -> bool:
    return not isinstance(piece, Chunk | OtherFiles) or piece.ticket.is_done


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
