"""Writing one export: into a hidden folder first, then renamed to `<exports>/<cluster>/<ds>` when complete and sealed.

Belongs here: files, locks, renames, and the validation of lines. Does not belong here: the calls to a cluster.

    <exports>/<cluster>/.<ds>.partial/lock       locked (flock) while the writer runs
    <exports>/<cluster>/.<ds>.partial/export/    becomes <exports>/<cluster>/<ds>

A replaced export is exchanged with the new one atomically, and then removed with the partial folder. If the file system does
not support the exchange, the old export is first renamed to `.<ds>.replaced`; after an interruption the next writer moves it
back.

The kernel releases the lock when its process dies, so a partial folder without a lock is abandoned, and the next writer of
the cluster removes it.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Final

from rebalance_ledger.exports.contract import (
    KIND_BY_FILE_NAME,
    KIND_BY_NAME,
    KINDS,
    MAX_LINE_BYTES,
    Content,
    EnvelopeError,
    parse_envelope,
)
from rebalance_ledger.exports.manifest import (
    MANIFEST_NAME,
    ExportError,
    Manifest,
    export_directory,
    load_manifest,
)
from rebalance_ledger.exports.redacted_files import EXPORT_FILE_MODE
from rebalance_ledger.exports.redaction import (
    MAX_CHECKED_BYTES,
    REDACTED,
    redact_attachment,
    redact_broker_file,
    redact_line,
    redact_payload,
    redact_text,
)
from rebalance_ledger.exports.sealing import seal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Self

_PARTIAL: Final = re.compile(r"\.[0-9]{4}-[0-9]{2}-[0-9]{2}\.partial")
_DISCARDED: Final = re.compile(r"\.[0-9]{4}-[0-9]{2}-[0-9]{2}\.[0-9a-f]{16}\.discarded")
_REPLACED: Final = re.compile(r"\.([0-9]{4}-[0-9]{2}-[0-9]{2})\.replaced")
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_COPY_BYTES: Final = 1 << 20
_PLACEHOLDER_HASH: Final = "0" * 64
_MIN_SECRET_LENGTH: Final = 4
_MAX_INDIVIDUAL_SYNC_COUNT: Final = 100
"""Up to this number of files each is synced individually, which takes milliseconds per file; more need one `os.sync`."""


class ExportWriter:
    """A writer for one export; thread-safe.

    A context manager: the end of its block seals and renames the export, an exception removes it. Lines go directly to disk
    and are not held in memory. Every line is validated against the contract when it is written, so an invalid line raises in
    the call that writes it. Secrets are redacted before anything is written.

    Attributes:
        directory: Directory of the finished export.
        manifest: Manifest of the finished export; None before.
    """

    def __init__(
        self,
        exports: Path,
        cluster: str,
        ds: date,
        *,
        replaces: Manifest | None = None,
        known_secrets: Iterable[str] = (),
    ) -> None:
        """Create a writer; nothing is written before the block is entered.

        Args:
            exports: Folder of all clusters; created if it does not exist.
            cluster: Name of the cluster.
            ds: UTC day of all captures.
            replaces: Manifest of the existing export to replace; None if no export may exist.
            known_secrets: Texts to redact in messages and events, such as the collector's own secret key; texts of fewer
                than four characters are ignored.

        Raises:
            ExportError: The cluster's name cannot be a folder's name.
        """
        self._replaces = replaces
        self._is_abandoned = False
        self._known_secrets = tuple(secret for secret in known_secrets if len(secret) >= _MIN_SECRET_LENGTH)
        self.directory = export_directory(exports, cluster, ds)
        self.manifest: Manifest | None = None
        self._cluster = cluster
        self._ds = ds
        self._partial = self.directory.parent / f".{ds.isoformat()}.partial"
        self._new_export = self._partial / "export"
        self._lock_descriptor: int | None = None
        self._files: dict[str, BinaryIO] = {}
        self._stored_count = 0
        self._is_whole = True
        self._writing = threading.Lock()

    def __enter__(self) -> Self:
        """Lock the day, and remove leftovers of the cluster's interrupted writers.

        Raises:
            ExportError: The export already exists or is being written, or its folder cannot be created.
        """
        try:
            self.directory.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(self.directory.parent)
            self._refuse_existing()
            self._lock_descriptor = _acquire(self._partial)
            self._refuse_existing()  # Another writer may have finished before the lock was acquired.
            shutil.rmtree(self._new_export, ignore_errors=True)  # Leftover of a process that has died.
            self._new_export.mkdir()
        except OSError as error:
            self._discard()
            raise self._failure(error) from error
        except _LockedError:
            problem = f"{self._partial} is being written by another process; wait for its end, or end it"
            raise ExportError(f"{self.directory} is not written", [problem]) from None
        except ExportError:
            self._discard()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Seal the export and rename it, or remove it if the block failed.

        Raises:
            ExportError: The export cannot be sealed or written; it is removed.
        """
        try:
            with self._writing:
                self._close_files(is_kept=kind is None)
            if kind is None and not self._is_abandoned:
                self._finish()
        except OSError as failure:
            raise self._failure(failure) from failure
        finally:
            self._discard()

    def abandon(self) -> None:
        """Make the end of the block discard the new export, as an exception does; an existing export is not affected."""
        self._is_abandoned = True

    def payload(self, kind: str, captured_at: datetime, payload: str, **request: str | int) -> None:
        """Write the answer of a source.

        Args:
            kind: Name of a kind of the contract.
            captured_at: Time of the answer; an aware datetime on the export's day.
            payload: The unchanged text; values that may be secrets are redacted here.
            request: Fields that identify the request: `nameserver`, `broker`, `broker_addr`, `topic`, …

        Raises:
            EnvelopeError: The line does not conform to the contract.
            ExportError: The capture is not of the export's day, or the line cannot be written.
            KeyError: The kind does not exist.
        """
        self._add(kind, captured_at, {**request, "payload": redact_payload(kind, payload)})

    def error(
        self, kind: str, captured_at: datetime, error_type: str, message: str, **request: str | int
    ) -> None:
        """Write the failure of a source.

        Args:
            kind: Name of a kind of the contract.
            captured_at: Time of the failure; an aware datetime on the export's day.
            error_type: Java class of the exception, or the collector's own error type.
            message: Message of the exception; may be empty.
            request: As for `payload`.

        Raises:
            EnvelopeError: The line does not conform to the contract.
            ExportError: The capture is not of the export's day, or the line cannot be written.
            KeyError: The kind does not exist.
        """
        self._add(
            kind, captured_at, {**request, "error": {"type": error_type, "message": self._redacted(message)}}
        )

    def event(self, at: datetime, text: str) -> None:
        """Write an event for users.

        Args:
            at: Time of the event; an aware datetime of any day.
            text: The sentence.

        Raises:
            EnvelopeError: The text is empty.
            ExportError: The line cannot be written.
        """
        self._append("event", {"at": _instant_text(at), "event": self._redacted(text)})

    def file(
        self,
        kind: str,
        captured_at: datetime,
        path: str,
        content: bytes | Path,
        mtime: datetime,
        **request: str | int,
    ) -> None:
        """Write a file of a host and its index line: offset files byte for byte, others without secrets.

        Args:
            kind: `offset_file` or `broker_file`.
            captured_at: Time of reading the file; an aware datetime on the export's day.
            path: Path in the export, such as `broker_files/broker-a/topics.json`.
            content: The content, or a file with the content.
            mtime: Time of the last write on its host; an aware datetime of any day.
            request: As for `payload`.

        Raises:
            EnvelopeError: The line or the path does not conform to the contract, or the path already exists.
            ExportError: The capture is not of the export's day, or the file cannot be written.
            KeyError: The kind does not exist.
        """
        fields: dict[str, object] = {**request, "path": path, "size": 0, "mtime": _instant_text(mtime)}
        fields["sha256"] = _PLACEHOLDER_HASH
        captured = {"captured_at": _instant_text(captured_at)}
        if KIND_BY_NAME[kind].content is not Content.FILE:
            raise EnvelopeError(f"a line of kind {kind!r} names no file")
        _line(kind, self._cluster, captured | fields)
        if kind == "broker_file":
            with self._whole_or_broken():
                content = redact_broker_file(path, _bytes_of(content))
        fields["size"], fields["sha256"] = self._store(path, content)
        self._add(kind, captured_at, fields)

    def copy(self, kind: str, line: bytes, earlier: Path, attempt: int) -> None:
        """Copy a line of the day's earlier export, with its file if it has one.

        Args:
            kind: Kind of the line.
            line: The line.
            earlier: Directory of the earlier export.
            attempt: Number of the line's attempt, used if the line has none.

        Raises:
            EnvelopeError: The line does not conform to the contract, or its file already exists.
            ExportError: The line or the file cannot be written.
        """
        envelope = parse_envelope(line, kind)
        # A release without redaction may have written the earlier export.
        document: dict[str, object] = json.loads(redact_line(kind, line))
        fields = {name: value for name, value in document.items() if name not in {"kind", "cluster"}}
        if KIND_BY_NAME[kind].content is not Content.NOTE:
            fields.setdefault("attempt", attempt)
        if envelope.file is not None:
            content: bytes | Path = earlier / envelope.file.path
            if kind == "broker_file":
                with self._whole_or_broken():
                    content = redact_broker_file(envelope.file.path, _bytes_of(content))
            fields["size"], fields["sha256"] = self._store(envelope.file.path, content)
        self._append(kind, fields)

    def attach(self, name: str, content: bytes | Path) -> None:
        """Add a file outside the contract, without secrets; it is sealed with the rest but never read.

        Args:
            name: Path in the export, with `/` as separator, outside the paths of the contract.
            content: The content, or a file with the content.

        Raises:
            EnvelopeError: The name is not a path in the export, is reserved by the contract, or already exists.
            ExportError: The file cannot be written.
        """
        parts = PurePosixPath(name).parts
        is_normal = bool(parts) and "/".join(parts) == name and ".." not in parts and "\0" not in name
        if not is_normal:
            raise EnvelopeError(
                f"{name!r} must lead to a file inside the export, without '.' or '..' on the way"
            )
        folders = {folder for kind in KINDS for folder in kind.folders}
        if name in KIND_BY_FILE_NAME or name.startswith(MANIFEST_NAME) or parts[0] in folders:
            raise EnvelopeError(f"{name!r} is a place of the contract's own files; attach under another name")
        with self._whole_or_broken():
            content = redact_attachment(name, _bytes_of(content))
        self._store(name, content)

    def _redacted(self, text: str) -> str:
        for secret in self._known_secrets:
            text = text.replace(secret, REDACTED)
        return redact_text(text)

    def _add(self, kind: str, captured_at: datetime, fields: dict[str, object]) -> None:
        captured_text = _instant_text(captured_at)
        if captured_at.astimezone(UTC).date() != self._ds:
            problem = (
                f"a source of kind {kind!r} was captured at {captured_text}, which is not on {self._ds} UTC; "
                "start early enough to end on the same day"
            )
            raise ExportError(f"{self.directory} is not written", [problem])
        self._append(kind, {"captured_at": captured_text, **fields})

    def _append(self, kind: str, fields: dict[str, object]) -> None:
        line = _line(kind, self._cluster, fields)
        with self._writing:
            self._check_open()
            file_name = KIND_BY_NAME[kind].file_name
            with self._whole_or_broken():
                if file_name not in self._files:
                    self._files[file_name] = _create(self._new_export / file_name)
                self._files[file_name].write(line)

    def _store(self, path: str, content: bytes | Path) -> tuple[int, str]:
        """Copy a file into the export and return its size in bytes and its SHA-256."""
        with self._writing:
            self._check_open()
            self._stored_count += 1
        target = self._new_export / path
        digest = hashlib.sha256()
        with (
            self._whole_or_broken(),
            io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as source,
        ):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                file = _create(target)
            except FileExistsError:
                raise EnvelopeError(f"{path!r} is already there; a file is written once") from None
            with file:
                while piece := source.read(_COPY_BYTES):
                    digest.update(piece)
                    file.write(piece)
                return file.tell(), digest.hexdigest()

    @contextmanager
    def _whole_or_broken(self) -> Iterator[None]:
        """Record a write failure, because the disk may hold a partial line, so the export must not be sealed."""
        try:
            yield
        except OSError as error:
            self._is_whole = False
            raise self._failure(error) from error

    def _check_open(self) -> None:
        if self._lock_descriptor is None:
            raise RuntimeError("an ExportWriter can only be written to inside its `with` block")

    def _refuse_existing(self) -> None:
        if self._replaces is not None:
            if load_manifest(self.directory).sha256 == self._replaces.sha256:
                return
            problem = "another process has replaced the export that was there; collect again if it is still degraded"
            raise ExportError(f"{self.directory} is not written", [problem])
        if not os.path.lexists(self.directory):
            return
        if (self.directory / MANIFEST_NAME).exists():
            problem = f"{self.directory} is already an export, and an export does not change; take another day or folder"
        else:
            problem = (
                f"{self.directory} is there without a seal; seal it with `ledger exports seal`, or remove it"
            )
        raise ExportError(f"{self.directory} is not written", [problem])

    def _close_files(self, *, is_kept: bool) -> None:
        files, self._files = self._files, {}
        if not is_kept:
            for file in files.values():
                # Flushing may fail; the file is removed anyway.
                with suppress(OSError):
                    file.close()
            return
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()

    def _finish(self) -> None:
        if not self._is_whole:
            raise ExportError(
                f"{self.directory} is not written",
                ["a line or file could not be written; see the first failure"],
            )
        manifest = seal(self._new_export, cluster=self._cluster, ds=self._ds, is_redacted=True)
        if self._stored_count > _MAX_INDIVIDUAL_SYNC_COUNT:
            os.sync()  # One call for all files. It reports no failure; the calls below do, and have nothing left to write.
        sync_tree(self._new_export)
        self._refuse_existing()
        if self._replaces is None:
            self._new_export.rename(self.directory)
        else:
            _exchange(self._new_export, self.directory)
        sync(self.directory.parent)
        self.manifest = manifest

    def _discard(self) -> None:
        """Remove the partial folder, then release its lock, so that no other writer treats the folder as abandoned."""
        if self._lock_descriptor is None:
            return
        with self._writing:
            lock_descriptor, self._lock_descriptor = self._lock_descriptor, None
        _remove(self._partial)
        os.close(lock_descriptor)

    def _failure(self, error: OSError) -> ExportError:
        place = error.filename or self._partial
        return ExportError(f"{self.directory} is not written", [f"{place}: {error.strerror or error}"])


@contextmanager
def partial_folder(directory: Path) -> Iterator[Path]:
    """Lock and yield an empty partial folder for a new version of an export; remove it at the end of the block.

    The lock excludes writers of the same export. Leftovers of the cluster's interrupted writers are removed.

    Args:
        directory: Directory of the export, existing or not.

    Raises:
        ExportError: Another process has the lock.
        OSError: The folder cannot be created.
    """
    _remove_leftovers(directory.parent)
    partial = directory.parent / f".{directory.name}.partial"
    try:
        lock_descriptor = _acquire(partial)
    except _LockedError:
        problem = f"{partial} is being written by another process; wait for its end, or end it"
        raise ExportError(f"{directory} is not written", [problem]) from None
    try:
        shutil.rmtree(partial / "export", ignore_errors=True)
        (partial / "export").mkdir()
        yield partial / "export"
    finally:
        _remove(partial)
        os.close(lock_descriptor)


def _create(path: Path) -> BinaryIO:
    """Create a file of an export that other users cannot read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, EXPORT_FILE_MODE), "wb")


def _bytes_of(content: bytes | Path) -> bytes:
    """Return a file's content, truncated to one byte more than can be searched for secrets."""
    if isinstance(content, bytes):
        return content
    with content.open("rb") as file:
        return file.read(MAX_CHECKED_BYTES + 1)


def _line(kind: str, cluster: str, fields: dict[str, object]) -> bytes:
    """Return a line of a kind's file, validated against the contract."""
    document = {"kind": kind, "cluster": cluster, **fields}
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    try:
        line = text.encode() + b"\n"
    except UnicodeEncodeError:
        # Unpaired surrogates have no UTF-8 form. Escaped, the contract decides whether the field may have them.
        line = json.dumps(document, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise EnvelopeError(f"a line of {len(line)} bytes is longer than {MAX_LINE_BYTES}")
    parse_envelope(line, kind)
    return line


def _instant_text(instant: datetime) -> str:
    if instant.tzinfo is None:
        raise EnvelopeError(f"{instant.isoformat()} has no time zone; give an instant in UTC")
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


class _LockedError(Exception):
    """Another process has the lock of a partial folder."""


def _acquire(partial: Path) -> int:
    """Create a partial folder and lock it; the lock lasts while the returned descriptor is open.

    Raises:
        _LockedError: Another process has the lock.
    """
    while True:
        # `exist_ok` would check the path again, and another process may remove it in between.
        with suppress(FileExistsError):
            partial.mkdir()
        try:
            lock_descriptor = _open_lock(partial, "lock")
        except FileNotFoundError:
            if partial.is_symlink():
                raise  # A dangling link.
            continue  # Another process removed it.
        if _try_lock(lock_descriptor, fcntl.LOCK_EX):
            if _is_same_file(partial / "lock", lock_descriptor):
                return lock_descriptor
        elif not _try_lock(lock_descriptor, fcntl.LOCK_SH):
            os.close(lock_descriptor)
            raise _LockedError
        # A process that removes abandoned folders has the lock, or the folder was removed: retry.
        os.close(lock_descriptor)


def _try_lock(lock_descriptor: int, mode: int) -> bool:
    """Try to lock without waiting: writers need an exclusive lock, processes that remove abandoned folders a shared one."""
    try:
        fcntl.flock(lock_descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same_file(path: Path, descriptor: int) -> bool:
    """Return whether a path still refers to the opened file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove_leftovers(cluster_folder: Path) -> None:
    """Remove or restore the leftovers of a cluster's interrupted writers."""
    with os.scandir(cluster_folder) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for name in names:
        path = cluster_folder / name
        if match := _REPLACED.fullmatch(name):
            _restore(path, match[1])
        elif _DISCARDED.fullmatch(name):
            shutil.rmtree(path, ignore_errors=True)
        elif _PARTIAL.fullmatch(name):
            with suppress(FileNotFoundError):  # Another process removed it.
                lock_descriptor = _open_lock(path, "lock")
                try:
                    if _try_lock(lock_descriptor, fcntl.LOCK_SH):
                        _remove_abandoned(path, lock_descriptor)
                finally:
                    os.close(lock_descriptor)


def _remove_abandoned(partial: Path, lock_descriptor: int) -> None:
    """Remove a partial folder under a shared lock, unless another process does.

    Of two processes with the shared lock, the slower one could remove the folder of a new writer with the same name. So a
    second, exclusive lock admits only one.
    """
    removal_descriptor = _open_lock(partial, "removing")
    try:
        if _try_lock(removal_descriptor, fcntl.LOCK_EX) and _is_same_file(partial / "lock", lock_descriptor):
            _remove(partial)
    finally:
        os.close(removal_descriptor)


def _open_lock(partial: Path, name: str) -> int:
    return os.open(partial / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)


def _remove(partial: Path) -> None:
    """Rename and then remove a locked partial folder; the rename frees its name for a new writer."""
    discarded = partial.with_name(f"{partial.name.removesuffix('.partial')}.{secrets.token_hex(8)}.discarded")
    with suppress(OSError):
        partial.rename(discarded)
        shutil.rmtree(discarded, ignore_errors=True)


def _exchange(new: Path, old: Path) -> None:
    """Exchange a new export with the existing one."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None and not rename(_AT_FDCWD, bytes(new), _AT_FDCWD, bytes(old), _RENAME_EXCHANGE):
        return
    replaced = old.with_name(f".{old.name}.replaced")
    shutil.rmtree(replaced, ignore_errors=True)
    old.rename(replaced)
    new.rename(old)
    shutil.rmtree(replaced, ignore_errors=True)


def _restore(replaced: Path, day: str) -> None:
    """Move a replaced export back after an interruption, or remove it if the new one is in its place."""
    if os.path.lexists(replaced.with_name(day)):
        shutil.rmtree(replaced, ignore_errors=True)
    else:
        with suppress(FileNotFoundError):
            replaced.rename(replaced.with_name(day))


def sync_tree(directory: Path) -> None:
    """Sync a folder and its content to disk."""
    for folder, _, names in os.walk(directory):
        for name in names:
            sync(f"{folder}/{name}")
        sync(folder)


def sync(path: str | Path) -> None:
    """Sync a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
