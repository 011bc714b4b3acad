"""Redaction of the files of an export on disk.

Belongs here: streaming files, and updating the index lines of changed files. Does not belong here: the definition of a secret
(`redaction`), manifests (`manifest`), and replacing a sealed export (`redact_sealed`).
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Final

from rebalance_ledger.exports.contract import KIND_BY_FILE_NAME, KINDS, MAX_LINE_BYTES, Content
from rebalance_ledger.exports.redaction import (
    MAX_CHECKED_BYTES,
    REDACTED,
    redact_attachment,
    redact_broker_file,
    redact_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

EXPORT_FILE_MODE: Final = 0o640
"""File mode in an export: other users of the machine must not read names and addresses."""

MARKER: Final = REDACTED.encode()

_FOLDERS: Final = {folder: kind.name for kind in KINDS for folder in kind.folders}


def unclean_files(directory: Path, paths: Iterable[str]) -> dict[str, int]:
    """Return the files of an export with values that may be secrets, and the number of such values.

    Args:
        directory: The export; each line of its files of envelopes is an envelope.
        paths: Paths of its files, with `/` as separator.

    Raises:
        EnvelopeError: A line is not an envelope.
        OSError: A file cannot be read.
    """
    unclean: dict[str, int] = {}
    for path in sorted(paths):
        if path in KIND_BY_FILE_NAME:
            kind = KIND_BY_FILE_NAME[path].name
            count = sum(_new_markers(line, redact_line(kind, line)) for line in _lines(directory / path))
        elif (redact := _redactor(path)) is not None:
            content = _content(directory / path)
            count = _new_markers(content, redact(path, content))
        else:
            count = 0
        if count:
            unclean[path] = count
    return unclean


def write_redacted(directory: Path, unclean: Iterable[str], target: Path) -> None:
    """Write the redacted files of an export, and the index lines that refer to them, to another folder.

    Args:
        directory: The export.
        unclean: Paths that `unclean_files` returned.
        target: Target folder; if it is the export itself, each file is replaced atomically.

    Raises:
        EnvelopeError: A line is not an envelope.
        OSError: A file cannot be read or written.
    """
    envelope_files = set(unclean) & KIND_BY_FILE_NAME.keys()
    stored: dict[str, tuple[int, str]] = {}
    for path in sorted(set(unclean) - envelope_files):
        redact = _redactor(path)
        if redact is None:
            continue
        content = redact(path, _content(directory / path))
        _replace(target / path, [content])
        stored[path] = (len(content), hashlib.sha256(content).hexdigest())
        index = _index_of(path)
        if index is not None:
            envelope_files.add(index)
    for path in sorted(envelope_files):
        kind = KIND_BY_FILE_NAME[path]
        lines = (redact_line(kind.name, line) for line in _lines(directory / path))
        if kind.content is Content.FILE:
            lines = (_update_index_line(line, stored) for line in lines)
        _replace(target / path, lines)


def _new_markers(before: bytes, after: bytes) -> int:
    if before == after:
        return 0
    return max(1, after.count(MARKER) - before.count(MARKER))


def _redactor(path: str) -> Callable[[str, bytes], bytes] | None:
    kind = _FOLDERS.get(path.partition("/")[0])
    if kind is None:
        return redact_attachment
    # Offset files hold only names and numbers, and must stay byte for byte what a client would read.
    return redact_broker_file if kind == "broker_file" else None


def _index_of(path: str) -> str | None:
    folder = path.partition("/")[0]
    return next((kind.file_name for kind in KINDS if folder in kind.folders), None)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES + 1):
            yield line


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_CHECKED_BYTES + 1)


def _update_index_line(line: bytes, stored: Mapping[str, tuple[int, str]]) -> bytes:
    fields = json.loads(line)
    if "sha256" not in fields or fields.get("path") not in stored:
        return line
    fields["size"], fields["sha256"] = stored[fields["path"]]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"


def _replace(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file atomically; the pieces may be read from the file that it replaces."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name[:200]}.redacting")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, EXPORT_FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
