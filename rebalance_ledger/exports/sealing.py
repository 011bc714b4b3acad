"""Sealing a directory of envelopes as an export, and verifying a sealed export.

Sealing is the last write to a directory. It first redacts values that may be secrets, and writes the manifest atomically. Belongs
here: the comparison of a directory with its manifest. Does not belong here: reading the directory (`survey`) and the manifest's format
(`manifest`).
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from rebalance_ledger.exports.export_files import open_regular, printable, reason_of
from rebalance_ledger.exports.file_facts import Expected
from rebalance_ledger.exports.manifest import (
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    ExportError,
    Redaction,
    load_manifest,
    problems_of_day,
)
from rebalance_ledger.exports.read_ahead import ATTEMPTS
from rebalance_ledger.exports.redacted_files import EXPORT_FILE_MODE, unclean_files, write_redacted
from rebalance_ledger.exports.redaction import POLICY_VERSION
from rebalance_ledger.exports.survey import MAX_PROBLEM_COUNT, TEMPORARY_PREFIX, Survey

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import date
    from pathlib import Path

    from rebalance_ledger.exports.manifest import Manifest, ManifestFile
    from rebalance_ledger.storage.location import Location

PARALLEL_EXPORT_BYTES: Final = 100_000_000
"""Size from which an export is checked by more processes than this one, which cost 0.1 CPU seconds each to start.

Measured with two of them: 0.22 CPU seconds alone and 0.4 in all for 32 MB, 0.6 and 0.7 for 65 MB, 3.5 and 3.1 to 3.6 for 486 MB.
"""

CHUNK_BYTES: Final = 8 * 1024 * 1024
"""Size of the lines that are one task; a longer line is checked by the process that reads."""

_MAX_PROCESS_COUNT: Final = 8
"""About so many are kept busy by the process that reads and hashes."""

_BYTES_OF_OPENING: Final = 10_000
"""Opening a file takes about as long as checking so many bytes."""


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
    survey = _read_unsealed(directory, cluster, ds)
    if not is_redacted and (unclean := files_with_secrets(directory, survey.paths, summary)):
        if survey.is_sealed:
            replaces_sha256 = _unseal(directory, summary, replace=replace)
        _redact(directory, unclean, summary)
        survey = _read_unsealed(directory, cluster, ds)
    redaction = Redaction(
        policy_version=POLICY_VERSION, value_counts=survey.value_counts, replaces_sha256=replaces_sha256
    )
    manifest, content = survey.manifest(redaction)
    if len(content) > MAX_MANIFEST_BYTES:
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


def _read_unsealed(directory: Path, cluster: str | None, ds: date | None) -> Survey:
    """Read a directory before sealing.

    Raises:
        ExportError: The directory is malformed.
    """
    survey = Survey(directory, Expected(cluster, ds))
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
            summary, [f"{error.filename or directory} cannot be read: {reason_of(error)}"]
        ) from error


def _redact(directory: Path, unclean: Collection[str], summary: str) -> None:
    """Redact files in place."""
    try:
        write_redacted(directory, unclean, directory)
    except OSError as error:
        raise ExportError(
            summary, [f"{error.filename or directory} cannot be redacted: {reason_of(error)}"]
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


def verify(
    directory: Location,
    *,
    cluster: str | None = None,
    ds: date | None = None,
    process_count: int | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> Manifest:
    """Read a sealed directory and compare its content with the manifest.

    The number of processes does not change what is found.

    Args:
        directory: The directory.
        cluster: Expected cluster, if any.
        ds: Expected UTC day, if any.
        process_count: Number of processes that check lines beside this one, which then reads and hashes; 0 to check them
            here. By default that depends on the size of the export and the cores that this process may use.
        chunk_bytes: Size of the lines that are given to a process at once.

    Raises:
        CheckEndedError: A process that checks lines has ended.
        ExportError: The manifest is missing or malformed, or the directory differs from the manifest or from the
            expected cluster and day.
    """
    manifest = load_manifest(directory)
    survey = Survey(directory, Expected(manifest.cluster, manifest.ds))
    if process_count is None:
        process_count = _process_count(manifest)
    if process_count:
        # Small exports are checked in less time than the import takes.
        from rebalance_ledger.exports.check_processes import CheckProcesses  # noqa: PLC0415

        with CheckProcesses(
            directory, survey.expected, process_count=process_count, chunk_bytes=chunk_bytes
        ) as processes:
            survey.read(processes)
    else:
        survey.read()
    problems = _differences(manifest, survey)
    problems[:0] = problems_of_day(manifest, cluster, ds)
    if problems:
        raise ExportError(f"{directory} is not a valid export", problems[:MAX_PROBLEM_COUNT])
    return manifest


def _process_count(manifest: Manifest) -> int:
    """Return the number of processes that are worth their start for an export of this size."""
    if sys.platform != "linux":
        return 0  # Other systems lack the calls by which memory is shared and cores are counted.
    file_count = sum(not file.holds_envelopes for file in manifest.files)
    size_bytes = manifest.size_bytes + file_count * _BYTES_OF_OPENING
    core_count = min(len(os.sched_getaffinity(0)), _MAX_PROCESS_COUNT)
    return core_count if core_count > 1 and size_bytes >= PARALLEL_EXPORT_BYTES else 0


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
        with open_regular(directory / sealed.path) as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            size_bytes = file.tell()
    except OSError as error:
        return f"{printable(sealed.path)} cannot be read: {reason_of(error)}"
    difference = _difference(sealed, replace(sealed, size_bytes=size_bytes, sha256=sha256))
    return difference and f"{printable(sealed.path)} {difference}"


def _write_atomically(path: Path, content: bytes) -> None:
    temporary = path.parent / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
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


def _sealed_differences(directory: Path, survey: Survey) -> list[str]:
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


def _differences(manifest: Manifest, survey: Survey) -> list[str]:
    """Return the differences between a directory and its manifest, with one sentence per changed file."""
    sealed = {file.path: file for file in manifest.files}
    changed: dict[str, str] = {}
    for path in sealed.keys() - set(survey.paths):
        changed[path] = f"is in {MANIFEST_NAME}, but not in the directory; copy the export again"
    for path, actual in survey.files.items():
        sentence = _difference(sealed.get(path), actual)
        if sentence is not None:
            changed[path] = sentence
    sentences = [f"{printable(path)} {sentence}" for path, sentence in sorted(changed.items())]
    sentences += [sentence for path, sentence in survey.problems if path not in changed]
    if not sentences and survey.capture_times() != (manifest.first_captured_at, manifest.last_captured_at):
        sentences.append(
            f"{MANIFEST_NAME}: the capture times are not those of the lines; seal the directory again"
        )
    if not sentences and survey.attempts_in_order() != manifest.attempts:
        sentences.append(
            f"{MANIFEST_NAME}: the attempts are not those of {ATTEMPTS.file_name}; seal the directory again"
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
