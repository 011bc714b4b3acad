"""Sealing a directory of envelopes as an export, and verifying a sealed export.

An export is `<exports>/<cluster>/<ds>/` with a `manifest.json` that lists every file. What belongs here: walking, reading and
hashing such a directory, and the manifest. What does not: the format of a single line (`contract`), the content of payloads
(`payloads`).

Sealing is the last write to a directory. It first redacts values that may be secrets, and writes the manifest atomically.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

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
from rebalance_ledger.exports.redacted_files import EXPORT_FILE_MODE, MARKER, unclean_files, write_redacted
from rebalance_ledger.exports.redaction import POLICY_VERSION
from rebalance_ledger.storage.location import Location, ObjectPath
from rebalance_ledger.suggestion import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from io import BufferedReader

MANIFEST_NAME: Final = "manifest.json"

_Root = TypeVar("_Root", Path, ObjectPath, Location)

ATTACHMENT: Final = "attachment"
"""Kind, in a manifest, of a file outside the contract: sealed with the rest, but never read."""

MAX_PROBLEM_COUNT: Final = 20
"""Number of problems after which the check of a directory stops."""

_MAX_PROBLEM_COUNT_OF_FILE: Final = 5
_MAX_NEIGHBOURS: Final = 5
_MAX_MANIFEST_BYTES: Final = 256 * 1024 * 1024

# Partial manifests of interrupted seals; they are not part of an export.
_TEMPORARY_PREFIX: Final = ".manifest.json."


class ExportError(ValueError):
    """A directory is not an export, or cannot be sealed or written as one.

    Attributes:
        problems: One sentence each: file, line, problem and remedy.
    """

    def __init__(self, summary: str, problems: list[str]) -> None:
        super().__init__("\n".join([f"{summary}:", *(f"- {problem}" for problem in problems)]))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """The entry of one file in a manifest.

    Attributes:
        path: Path in the export, with `/` as separator.
        kind: Kind of the lines of a file of envelopes, kind of the index for an indexed file, otherwise `attachment`.
        line_count: Number of envelopes; None for a file without envelopes.
        error_count: Number of envelopes with an error; None for a file without envelopes.
        size_bytes: Size of the file.
        sha256: SHA-256 of the content, in lower-case hexadecimal digits.
    """

    path: str
    kind: str
    line_count: int | None
    error_count: int | None
    size_bytes: int
    sha256: str

    @property
    def holds_envelopes(self) -> bool:
        """Whether the file is one of the contract's files of envelopes."""
        return self.line_count is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """The entry of a manifest about redacted values.

    Attributes:
        policy_version: Version of the redaction rules.
        value_counts: File -> number of redacted values, only for files that have any.
        replaces_sha256: SHA-256 of the manifest of the sealed export that this one is the redacted copy of; None if the
            export was redacted before its first seal.
    """

    policy_version: int
    value_counts: Mapping[str, int]
    replaces_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureAttempt:
    """One attempt at a capture, and the quality of the export after it.

    Attributes:
        attempt: Number of the attempt, from 1.
        started_at: Start (UTC).
        ended_at: End (UTC).
        quality: `complete`, `degraded` or `failed`.
        asked_count: Number of questions in the export after the attempt, answered or failed.
        failed_count: Number of failed questions.
    """

    attempt: int
    started_at: datetime
    ended_at: datetime
    quality: str
    asked_count: int
    failed_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of an export.

    Attributes:
        contract_version: Version of the contract that the export conforms to.
        cluster: Cluster of every envelope.
        ds: UTC day of every capture.
        first_captured_at: Earliest capture (UTC).
        last_captured_at: Latest capture (UTC).
        files: Every file except the manifest, sorted by path.
        attempts: Attempts at the capture, in order; empty if the collector does not record them.
        sha256: SHA-256 of the manifest file, which identifies the export, in lower-case hexadecimal digits.
        redaction: Redacted values; None in an export of a release without redaction.
    """

    contract_version: int
    cluster: str
    ds: date
    first_captured_at: datetime
    last_captured_at: datetime
    files: tuple[ManifestFile, ...]
    sha256: str
    redaction: Redaction | None = None
    attempts: tuple[CaptureAttempt, ...] = ()

    @property
    def quality(self) -> str | None:
        """Quality of the capture after its last attempt; None if the collector does not record attempts."""
        return self.attempts[-1].quality if self.attempts else None

    @property
    def envelope_files(self) -> tuple[ManifestFile, ...]:
        """Files with envelopes, at most one per kind; a kind without a file is a missing source."""
        return tuple(file for file in self.files if file.holds_envelopes)

    @property
    def attachments(self) -> tuple[ManifestFile, ...]:
        """Files outside the contract, which are never read."""
        return tuple(file for file in self.files if file.kind == ATTACHMENT)


def export_directory(exports_root: _Root, cluster: str, ds: date) -> _Root:
    """Return the location of the export of a cluster and day, whether or not it exists.

    Raises:
        ExportError: The cluster's name cannot be a folder's name.
    """
    problem = cluster_name_problem(cluster)
    if problem is not None:
        raise ExportError("No such export", [f"the cluster's name {problem}; give the name of one cluster"])
    return exports_root / cluster / ds.isoformat()


def export_day(folder_name: str) -> date | None:
    """Return the day of an export's folder, as `export_directory` names it; None for any other name."""
    try:
        day = date.fromisoformat(folder_name)
    except ValueError:
        return None
    return day if day.isoformat() == folder_name else None


def seal(
    directory: Path,
    *,
    cluster: str | None = None,
    ds: date | None = None,
    replace: bool = False,
    is_redacted: bool = False,
    replaces_sha256: str | None = None,
) -> Manifest:
    """Check a collected directory and write its manifest; write nothing if the check fails.

    Values that may be secrets are redacted first; the manifest counts them.

    Every line of every file of the contract is parsed, and every file is hashed; memory grows with the number of files, not
    with their size. Payloads are not parsed, because even a malformed answer of a broker is evidence. The manifest is a
    function of the files, so sealing is idempotent.

    Args:
        directory: The directory.
        cluster: Required cluster of all lines; by default that of the first line.
        ds: Required UTC day of all captures; by default the directory's name.
        replace: Whether an existing manifest with other content may be replaced.
        is_redacted: Whether the caller has redacted every file, so that no search for secrets is needed.
        replaces_sha256: SHA-256 of the manifest of the sealed export that this one is the redacted copy of.

    Raises:
        ExportError: The directory is malformed, was sealed with other content, or cannot be written.
    """
    summary = f"{directory} is not sealed"
    if not directory.is_dir():
        raise ExportError(
            summary, [f"{directory} is not a directory; give the directory of one cluster and day"]
        )
    survey = _survey(directory, cluster, ds)
    if not is_redacted and (unclean := files_with_secrets(directory, survey.paths, summary)):
        if survey.is_sealed:
            replaces_sha256 = _unseal(directory, summary, replace=replace)
        _redact(directory, unclean, summary)
        survey = _survey(directory, cluster, ds)
    redaction = Redaction(
        policy_version=POLICY_VERSION, value_counts=survey.value_counts, replaces_sha256=replaces_sha256
    )
    manifest, content = survey.manifest(redaction)
    if len(content) > _MAX_MANIFEST_BYTES:
        raise ExportError(
            summary, [f"{len(manifest.files)} files are more than one manifest can hold; leave some out"]
        )
    path = directory / MANIFEST_NAME
    if survey.is_sealed:
        differences = _sealed_differences(directory, survey)
        if not differences:
            return load_manifest(directory)
        if not replace:
            problem = (
                f"{MANIFEST_NAME} is already there and says otherwise; a sealed export does not change, so collect "
                "into another directory, or replace the manifest if you know that no run has read it"
            )
            raise ExportError(summary, [problem, *differences][:MAX_PROBLEM_COUNT])
    try:
        _write_atomically(path, content)
    except OSError as error:
        raise ExportError(summary, [f"{MANIFEST_NAME} cannot be written: {error.strerror}"]) from error
    return manifest


UNCLEAN_EXPORT: Final = "the sealed export holds values that may be secrets; redact them with `ledger exports redact`, which seals it again"
"""Problem and remedy for a sealed export of a release without redaction."""


def _survey(directory: Path, cluster: str | None, ds: date | None) -> _Survey:
    """Read a directory before sealing.

    Raises:
        ExportError: The directory is malformed.
    """
    survey = _Survey(directory, cluster=cluster, ds=ds)
    survey.check_day_of_name(directory.resolve().name)
    if not survey.problems:
        survey.read()
    if survey.problems:
        raise ExportError(f"{directory} is not sealed", survey.sentences())
    return survey


def files_with_secrets(directory: Path, paths: list[str], summary: str) -> dict[str, int]:
    """Return the files of an export with values that may be secrets, and the number of such values.

    Raises:
        ExportError: A file cannot be read; the message begins with `summary`.
    """
    try:
        return unclean_files(directory, paths)
    except OSError as error:
        raise ExportError(
            summary, [f"{error.filename or directory} cannot be read: {_reason(error)}"]
        ) from error


def _redact(directory: Path, unclean: Collection[str], summary: str) -> None:
    """Redact files in place."""
    try:
        write_redacted(directory, unclean, directory)
    except OSError as error:
        raise ExportError(
            summary, [f"{error.filename or directory} cannot be redacted: {_reason(error)}"]
        ) from error


def _unseal(directory: Path, summary: str, *, replace: bool) -> str:
    """Remove the manifest, so that readers reject the export while its files change, and return its SHA-256.

    Raises:
        ExportError: `replace` is false.
    """
    if not replace:
        raise ExportError(summary, [UNCLEAN_EXPORT])
    path = directory / MANIFEST_NAME
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    path.unlink()
    return sha256


def verify(directory: Location, *, cluster: str | None = None, ds: date | None = None) -> Manifest:
    """Read a sealed directory and compare its content with the manifest.

    Args:
        directory: The directory.
        cluster: Expected cluster, if any.
        ds: Expected UTC day, if any.

    Raises:
        ExportError: The manifest is missing or malformed, or the directory differs from the manifest or from the
            expected cluster and day.
    """
    manifest = load_manifest(directory)
    survey = _Survey(directory, cluster=manifest.cluster, ds=manifest.ds)
    survey.read()
    problems = _differences(manifest, survey)
    problems[:0] = _problems_of_day(manifest, cluster, ds)
    if problems:
        raise ExportError(f"{directory} is not a valid export", problems[:MAX_PROBLEM_COUNT])
    return manifest


def check_unchanged(directory: Location, manifest: Manifest) -> None:
    """Compare the bytes of an export with the manifest that was read from it, after the export was used.

    Lines are not parsed again: bytes with the same SHA-256 have the same lines.

    Raises:
        ExportError: The manifest or a file is another one, is missing, or cannot be read.
    """
    if load_manifest(directory).sha256 != manifest.sha256:
        problem = f"{directory} is not the export that this computation began with; run the day again"
        raise ExportError("The export was landed again while it was read", [problem])
    # Hashing leaves the interpreter's lock.
    with ThreadPoolExecutor() as pool:
        problems = list(filter(None, pool.map(partial(_change, directory), manifest.files)))
    if problems:
        raise ExportError(f"{directory} has changed while it was read", problems[:MAX_PROBLEM_COUNT])


def _change(directory: Location, sealed: ManifestFile) -> str | None:
    """Return a sentence if the bytes of a file are not those in the manifest."""
    try:
        with _open_regular(directory / sealed.path) as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            size_bytes = file.tell()
    except OSError as error:
        return f"{_printable(sealed.path)} cannot be read: {_reason(error)}"
    difference = _difference(sealed, replace(sealed, size_bytes=size_bytes, sha256=sha256))
    return difference and f"{_printable(sealed.path)} {difference}"


def _problems_of_day(manifest: Manifest, cluster: str | None, ds: date | None) -> list[str]:
    problems = []
    if cluster is not None and cluster != manifest.cluster:
        problems.append(f"{MANIFEST_NAME}: cluster is {manifest.cluster!r}, but {cluster!r} is wanted")
    if ds is not None and ds != manifest.ds:
        problems.append(f"{MANIFEST_NAME}: ds is {manifest.ds}, but {ds} is wanted")
    return problems


def load_manifest(directory: Location, *, cluster: str | None = None, ds: date | None = None) -> Manifest:
    """Read only the manifest, without verifying the files.

    Args:
        directory: The directory.
        cluster: Expected cluster, if any.
        ds: Expected UTC day, if any.

    Raises:
        ExportError: The manifest is missing or malformed, its contract version is unknown, or it is of another cluster or day.
    """
    summary = f"{directory} is not an export"
    try:
        if not directory.is_dir():
            problem = "there is no such directory; collect the cluster on that day, or copy its export"
            raise ExportError(summary, [problem + _siblings_clause(directory)])
        with _open_regular(directory / MANIFEST_NAME) as file:
            content = file.read(_MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        problem = f"there is no {MANIFEST_NAME}; collect the day, then seal it with `ledger exports seal`"
        raise ExportError(summary, [problem]) from None
    except OSError as error:
        raise ExportError(summary, [f"{MANIFEST_NAME} cannot be read: {_reason(error)}"]) from error
    try:
        manifest = _decode_manifest(content)
    except _ManifestError as error:
        problem = f"{MANIFEST_NAME}: {error}; verify the files' origin and seal them again"
        raise ExportError(summary, [problem]) from error
    problems = _problems_of_day(manifest, cluster, ds)
    if problems:
        raise ExportError(f"{directory} is not the export of that day", problems)
    return manifest


def _siblings_clause(directory: Location) -> str:
    """Return the existing siblings of a missing `<exports>/<cluster>/<ds>` on disk, as a clause: clusters, or days of the cluster."""
    if not isinstance(directory, Path):
        return ""
    of_cluster = directory.parent.is_dir()
    folder = directory.parent if of_cluster else directory.parent.parent
    if not folder.is_dir():
        return ""
    names = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    suggestion = "" if of_cluster else did_you_mean(directory.parent.name, names, most=1, cutoff=0.6)
    hint = f"; {suggestion}" if suggestion else ""
    sibling_text = ", ".join(names[-_MAX_NEIGHBOURS:]) or "none"
    return f" ({'newest days' if of_cluster else 'clusters'} in {folder}: {sibling_text}){hint}"


@dataclass(slots=True)
class _Indexed:
    """A line of an index: its file, and the position of the line."""

    file: IndexedFile
    kind: Kind
    where: str


@dataclass(slots=True)
class _Survey:
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
        day_of_name = _day(name)
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
        content = _encode_manifest(self.cluster, self.ds, capture_times, files, attempts, redaction)
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
        self.problems.append((path, f"{_printable(path)} {sentence}"))
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
            self._problem(str(directory), f"cannot be listed: {_reason(error)}")
        self.paths.sort()

    def _take(self, path: str) -> None:
        if path == MANIFEST_NAME:
            self.is_sealed = True
        elif not path.startswith(_TEMPORARY_PREFIX):
            self.paths.append(path)

    def _read_envelopes(self, kind: Kind) -> None:
        digest = hashlib.sha256()
        line_count = error_count = size_bytes = value_count = 0
        last_problem_count = len(self.problems) + _MAX_PROBLEM_COUNT_OF_FILE
        path = kind.file_name
        try:
            with _open_regular(self.directory / path) as file:
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
            self._problem(path, f"cannot be read: {_reason(error)}")
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
                f"{where}: captured_at is {_instant_text(captured_at)}, which is not on {self.ds} UTC; move it to its own day",
            )
        self._first_captured_at = min(self._first_captured_at or captured_at, captured_at)
        self._last_captured_at = max(self._last_captured_at or captured_at, captured_at)
        if envelope.file is not None:
            self._index(kind, where, envelope.file)
        if kind.name == _ATTEMPTS.name:
            self._read_attempt(where, envelope)

    def _read_attempt(self, where: str, envelope: Envelope) -> None:
        try:
            document = json.loads(envelope.payload or "")
            attempt = _attempt(_Fields(document), envelope.attempt or 0)
        except (ValueError, RecursionError) as error:
            self._problem(
                _ATTEMPTS.file_name, f"{where}: does not describe an attempt ({error}); collect the day again"
            )
            return
        if attempt.attempt in self.attempts or attempt.attempt < 1:
            self._problem(
                _ATTEMPTS.file_name,
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
            with _open_regular(self.directory / path) as file:
                start = file.read(_START_BYTES)
                file.seek(0)
                sha256, value_count = _digest(file)
                size_bytes = file.tell()
        except OSError as error:
            self._problem(path, f"cannot be read: {_reason(error)}")
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


_ATTEMPTS: Final = KIND_BY_NAME["capture_attempt"]
QUALITIES: Final = ("complete", "degraded", "failed")
"""Values of `quality`, the best first."""

_START_BYTES: Final = 4096
_PIECE_BYTES: Final = 1 << 20
_KIND_FIELD: Final = re.compile(rb'\s*\{[^\n]*?"kind"\s*:\s*"([a-z_]+)"')


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


def _open_regular(path: Location) -> BufferedReader:
    """Open an object or a regular file; refuse links, pipes and devices, even if swapped after the listing."""
    if isinstance(path, ObjectPath):
        return path.open()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "not a regular file")
    return os.fdopen(descriptor, "rb")


def _write_atomically(path: Path, content: bytes) -> None:
    temporary = path.parent / f"{_TEMPORARY_PREFIX}{secrets.token_hex(8)}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, EXPORT_FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _sealed_differences(directory: Path, survey: _Survey) -> list[str]:
    """Return the differences between the existing manifest and the one to be written.

    The redaction entry is not compared, because a release without redaction may have sealed a clean directory.
    """
    try:
        sealed = load_manifest(directory)
    except ExportError as error:
        return error.problems
    differences = _differences(sealed, survey)
    if not differences and sealed.sha256 != survey.manifest(sealed.redaction)[0].sha256:
        differences.append(f"{MANIFEST_NAME} says the same in other bytes, or is of another cluster or day")
    return differences


def _differences(manifest: Manifest, survey: _Survey) -> list[str]:
    """Return the differences between a directory and its manifest, with one sentence per changed file."""
    sealed = {file.path: file for file in manifest.files}
    changed: dict[str, str] = {}
    for path in sealed.keys() - set(survey.paths):
        changed[path] = f"is in {MANIFEST_NAME}, but not in the directory; copy the export again"
    for path, actual in survey.files.items():
        sentence = _difference(sealed.get(path), actual)
        if sentence is not None:
            changed[path] = sentence
    sentences = [f"{_printable(path)} {sentence}" for path, sentence in sorted(changed.items())]
    sentences += [sentence for path, sentence in survey.problems if path not in changed]
    if not sentences and survey.capture_times() != (manifest.first_captured_at, manifest.last_captured_at):
        sentences.append(
            f"{MANIFEST_NAME}: the capture times are not those of the lines; seal the directory again"
        )
    if not sentences and survey.attempts_in_order() != manifest.attempts:
        sentences.append(
            f"{MANIFEST_NAME}: the attempts are not those of {_ATTEMPTS.file_name}; seal the directory again"
        )
    return sentences


def _difference(sealed: ManifestFile | None, actual: ManifestFile) -> str | None:
    if sealed is None:
        return f"is not in {MANIFEST_NAME}; a sealed export does not change, so remove it"
    if sealed.size_bytes != actual.size_bytes:
        return f"has {actual.size_bytes} bytes, but {sealed.size_bytes} were sealed; copy the export again"
    if sealed.sha256 != actual.sha256:
        return "has other bytes than were sealed (SHA-256 differs); copy the export again"
    if sealed != actual:
        return (
            f"is described wrongly in {MANIFEST_NAME} (kind, line or error count); seal the directory again"
        )
    return None


def _reason(error: OSError) -> str:
    """Return the message of an operating system or an object store, on one line."""
    return error.strerror or " ".join(str(error).split())


class _ManifestError(ValueError):
    """The content of a manifest file is invalid; the message is a clause without the file's name."""


def _encode_manifest(
    cluster: str,
    ds: date,
    capture_times: tuple[datetime, datetime],
    files: tuple[ManifestFile, ...],
    attempts: tuple[CaptureAttempt, ...],
    redaction: Redaction | None,
) -> bytes:
    # Manifests without attempts must keep their bytes, so the fields are absent.
    capture: dict[str, object] = {}
    if attempts:
        capture["quality"] = attempts[-1].quality
        capture["attempts"] = [
            {
                "attempt": attempt.attempt,
                "started_at": _instant_text(attempt.started_at),
                "ended_at": _instant_text(attempt.ended_at),
                "quality": attempt.quality,
                "asked_count": attempt.asked_count,
                "failed_count": attempt.failed_count,
            }
            for attempt in attempts
        ]
    document: dict[str, object] = {
        "contract_version": CONTRACT_VERSION,
        "cluster": cluster,
        "ds": ds.isoformat(),
        "first_captured_at": _instant_text(capture_times[0]),
        "last_captured_at": _instant_text(capture_times[1]),
        **capture,
        "files": [
            {
                "path": file.path,
                "kind": file.kind,
                "line_count": file.line_count,
                "error_count": file.error_count,
                "size_bytes": file.size_bytes,
                "sha256": file.sha256,
            }
            for file in files
        ],
    }
    if redaction is not None:
        document["redaction"] = {
            "policy_version": redaction.policy_version,
            "value_counts": dict(sorted(redaction.value_counts.items())),
            **({} if redaction.replaces_sha256 is None else {"replaces_sha256": redaction.replaces_sha256}),
        }
    return (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()


def _decode_manifest(content: bytes) -> Manifest:
    if len(content) > _MAX_MANIFEST_BYTES:
        raise _ManifestError(f"longer than {_MAX_MANIFEST_BYTES} bytes")
    try:
        document: object = json.loads(content.decode(), object_pairs_hook=_without_repeated_names)
    except _ManifestError:
        raise
    except (ValueError, RecursionError):
        raise _ManifestError("not JSON; it may be cut") from None
    fields = _Fields(document)
    version = fields.integer("contract_version")
    if version not in _DECODERS:
        versions = ", ".join(str(versions) for versions in _DECODERS)
        raise _ManifestError(
            f"contract version {version} is not known to this release, which reads {versions}; read the export with a "
            "release that knows it, or collect it with a collector of this one"
        )
    return _DECODERS[version](fields, hashlib.sha256(content).hexdigest())


def _without_repeated_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse repeated names, because JSON parsers differ in which value they take."""
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        raise _ManifestError(f"{_printable(next(n for n in names if names.count(n) > 1))} is there twice")
    return document


def _decode_manifest_v1(fields: _Fields, sha256: str) -> Manifest:
    ds = _day(fields.text("ds"))
    if ds is None:
        raise _ManifestError("'ds' is not a day")
    cluster = fields.text("cluster")
    problem = cluster_name_problem(cluster)
    if problem is not None:
        raise _ManifestError(f"the cluster's name {problem}")
    files = tuple(
        ManifestFile(
            path=file.text("path"),
            kind=file.text("kind"),
            line_count=file.integer_or_none("line_count"),
            error_count=file.integer_or_none("error_count"),
            size_bytes=file.integer("size_bytes"),
            sha256=file.text("sha256"),
        )
        for file in fields.objects("files")
    )
    repeated_paths = [path for path, count in Counter(file.path for file in files).items() if count > 1]
    if repeated_paths:
        raise _ManifestError(f"'files' names {_printable(repeated_paths[0])} twice")
    return Manifest(
        contract_version=1,
        cluster=cluster,
        ds=ds,
        first_captured_at=fields.instant("first_captured_at"),
        last_captured_at=fields.instant("last_captured_at"),
        files=files,
        attempts=tuple(
            _attempt(attempt, attempt.integer("attempt")) for attempt in fields.objects_or_none("attempts")
        ),
        sha256=sha256,
        redaction=_decode_redaction(fields.object_or_none("redaction")),
    )


def _decode_redaction(fields: _Fields | None) -> Redaction | None:
    if fields is None:
        return None
    counts = fields.object_or_none("value_counts")
    return Redaction(
        policy_version=fields.integer("policy_version"),
        value_counts={} if counts is None else counts.integers(),
        replaces_sha256=fields.text_or_none("replaces_sha256"),
    )


def _attempt(fields: _Fields, number: int) -> CaptureAttempt:
    quality = fields.text("quality")
    if quality not in QUALITIES:
        raise _ManifestError(f"'quality' is not one of {', '.join(QUALITIES)}")
    return CaptureAttempt(
        attempt=number,
        started_at=fields.instant("started_at"),
        ended_at=fields.instant("ended_at"),
        quality=quality,
        asked_count=fields.integer("asked_count"),
        failed_count=fields.integer("failed_count"),
    )


class _Fields:
    """Typed access to the fields of one object of a manifest."""

    def __init__(self, document: object) -> None:
        if not isinstance(document, dict):
            raise _ManifestError("an object is expected where there is none")
        self._document: dict[str, object] = document

    def text(self, name: str) -> str:
        value = self._document.get(name)
        if not isinstance(value, str):
            raise _ManifestError(f"{name!r} is not text")
        return value

    def integer(self, name: str) -> int:
        value = self._document.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
            raise _ManifestError(f"{name!r} is not a whole number, 0 or more")
        return value

    def integer_or_none(self, name: str) -> int | None:
        return None if self._document.get(name) is None else self.integer(name)

    def instant(self, name: str) -> datetime:
        text = self.text(name)
        try:
            instant = datetime.strptime(text, _INSTANT_FORMAT).replace(tzinfo=UTC)
        except ValueError:
            raise _ManifestError(f"{name!r} is not an instant such as 2026-11-16T01:58:38.273000Z") from None
        return instant

    def text_or_none(self, name: str) -> str | None:
        return None if self._document.get(name) is None else self.text(name)

    def integers(self) -> dict[str, int]:
        return {name: self.integer(name) for name in self._document}

    def object_or_none(self, name: str) -> _Fields | None:
        value = self._document.get(name)
        return None if value is None else _Fields(value)

    def objects_or_none(self, name: str) -> list[_Fields]:
        return [] if self._document.get(name) is None else self.objects(name)

    def objects(self, name: str) -> list[_Fields]:
        value = self._document.get(name)
        if not isinstance(value, list):
            raise _ManifestError(f"{name!r} is not a list")
        return [_Fields(element) for element in value]


_DECODERS: Final[dict[int, Callable[[_Fields, str], Manifest]]] = {1: _decode_manifest_v1}
"""Decoder of each contract version. A version must remain supported as long as its exports are retained."""

_INSTANT_FORMAT: Final = "%Y-%m-%dT%H:%M:%S.%fZ"
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _instant_text(instant: datetime) -> str:
    return instant.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def _printable(path: str) -> str:
    """Return a path for a message: on one line, and without control characters."""
    return path if path.isprintable() else repr(path)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
