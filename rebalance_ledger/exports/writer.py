"""Writing one export: a hidden folder while it grows, `<exports>/<cluster>/<ds>` when it is whole and sealed.

What belongs here: files, locks, renames, and that no line gets in which the contract does not know. What does not: whom to
ask, and how.

    <exports>/<cluster>/.<ds>.partial/lock       held (flock) for as long as the writer lives
    <exports>/<cluster>/.<ds>.partial/export/    what becomes <exports>/<cluster>/<ds>

An export that is replaced changes places with the new one in one step of the file system, and is removed with the partial.
Where the file system has no such step, the old one is moved to `.<ds>.replaced` for a moment; a writer that was killed then
has it moved back by the next one.

The kernel drops the lock of a process that dies, however it dies: a partial whose lock is free belongs to nobody, and the
next writer of the cluster removes it.
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
    seal,
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
_HASH_TO_COME: Final = "0" * 64
_SHORTEST_SECRET: Final = 4
_FEW_FILES: Final = 100
"""Up to here each file is synced by itself; it takes milliseconds, of which a million files would need too many."""


class ExportWriter:
    """One export in the making; any thread may write to it.

    A context manager: the end of its block seals the export and gives it its name, an exception removes it. Nothing is
    kept in memory, lines go to the disk as they come. Every line is judged by the contract when it is written, so a call
    that could not be sealed fails where it is made. Secrets are redacted before anything is written.

    Attributes:
        directory: Where the export lies when it is done.
        manifest: Its manifest; None until then.
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
        """Name the export; nothing is written before the block is entered.

        Args:
            exports: The folder of all clusters; made if it is not there.
            cluster: Name of the cluster.
            ds: The UTC day on which every source is asked.
            replaces: The manifest of the export that lies there and is to be replaced; None if none may be there.
            known_secrets: Texts that no message or event may quote, such as the collector's own secret key; one of less
                than four characters is no secret.

        Raises:
            ExportError: The cluster's name cannot be a folder's name.
        """
        self._replaces = replaces
        self._is_abandoned = False
        self._known_secrets = tuple(secret for secret in known_secrets if len(secret) >= _SHORTEST_SECRET)
        self.directory = export_directory(exports, cluster, ds)
        self.manifest: Manifest | None = None
        self._cluster = cluster
        self._ds = ds
        self._partial = self.directory.parent / f".{ds.isoformat()}.partial"
        self._growing = self._partial / "export"
        self._held: int | None = None
        self._files: dict[str, BinaryIO] = {}
        self._stored_count = 0
        self._is_whole = True
        self._writing = threading.Lock()

    def __enter__(self) -> Self:
        """Take the day, and remove what dead writers of the cluster have left.

        Raises:
            ExportError: The export is already there, or being written, or its folder cannot be made.
        """
        try:
            self.directory.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(self.directory.parent)
            self._refuse_existing()
            self._held = _take(self._partial)
            self._refuse_existing()  # It may have come while the lock was free.
            shutil.rmtree(self._growing, ignore_errors=True)  # The process that had it before has ended.
            self._growing.mkdir()
        except OSError as error:
            self._discard()
            raise self._failure(error) from error
        except _TakenError:
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
            ExportError: The export cannot be sealed or written; then it is removed.
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
        """Let the end of the block remove what was written, as an exception does: an export that lies there stays."""
        self._is_abandoned = True

    def payload(self, kind: str, captured_at: datetime, payload: str, **asked: str | int) -> None:
        """Write what a source answered.

        Args:
            kind: Name of a kind of the contract.
            captured_at: When the answer came; an aware datetime on the export's day.
            payload: The text exactly as it came; values that may be secrets are redacted here.
            asked: The fields that say what was asked: `nameserver`, `broker`, `broker_addr`, `topic`, …

        Raises:
            EnvelopeError: The contract does not know such a line.
            ExportError: The capture is not of the export's day, or the line cannot be written.
            KeyError: There is no such kind.
        """
        self._add(kind, captured_at, {**asked, "payload": redact_payload(kind, payload)})

    def error(
        self, kind: str, captured_at: datetime, error_type: str, message: str, **asked: str | int
    ) -> None:
        """Write that a source was asked and failed.

        Args:
            kind: Name of a kind of the contract.
            captured_at: When it failed; an aware datetime on the export's day.
            error_type: The exception's Java class, or the collector's name for its own failure.
            message: What it said; may be empty.
            asked: As for `payload`.

        Raises:
            EnvelopeError: The contract does not know such a line.
            ExportError: The capture is not of the export's day, or the line cannot be written.
            KeyError: There is no such kind.
        """
        self._add(
            kind, captured_at, {**asked, "error": {"type": error_type, "message": self._redacted(message)}}
        )

    def event(self, at: datetime, text: str) -> None:
        """Write a sentence for people.

        Args:
            at: When it happened; an aware datetime of any day.
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
        **asked: str | int,
    ) -> None:
        """Write a file of a host and its line in the index: offset files byte for byte, others without secrets.

        Args:
            kind: `offset_file` or `broker_file`.
            captured_at: When the file was read; an aware datetime on the export's day.
            path: Where it lies in the export, such as `broker_files/broker-a/topics.json`.
            content: Its bytes, or the file that has them.
            mtime: When its host wrote it; an aware datetime of any day.
            asked: As for `payload`.

        Raises:
            EnvelopeError: The contract does not know such a line, or such a place, or the place is taken.
            ExportError: The capture is not of the export's day, or nothing can be written there.
            KeyError: There is no such kind.
        """
        fields: dict[str, object] = {**asked, "path": path, "size": 0, "mtime": _instant_text(mtime)}
        fields["sha256"] = _HASH_TO_COME
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
        """Write a line of the day's earlier export once more, with the file that it names.

        Args:
            kind: The line's kind.
            line: The line.
            earlier: The directory of that export.
            attempt: Which attempt the line is of, if it does not say so itself.

        Raises:
            EnvelopeError: The contract does not know such a line, or its file is there already.
            ExportError: Nothing can be written.
        """
        envelope = parse_envelope(line, kind)
        # The earlier export may be of a release that did not redact.
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
        """Add a file that the contract does not know: sealed with the rest, read by nobody, without secrets.

        Args:
            name: Where it lies in the export, with `/` between names; not where the contract's own files lie.
            content: Its bytes, or the file that has them.

        Raises:
            EnvelopeError: The name is no path inside the export, or one of the contract's, or taken.
            ExportError: Nothing can be written there.
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
                    self._files[file_name] = _create(self._growing / file_name)
                self._files[file_name].write(line)

    def _store(self, path: str, content: bytes | Path) -> tuple[int, str]:
        """Copy a file into the export and return its size in bytes and its SHA-256."""
        with self._writing:
            self._check_open()
            self._stored_count += 1
        target = self._growing / path
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
        """Remembers a failure: half a line may be on the disk, so the export must not be sealed any more."""
        try:
            yield
        except OSError as error:
            self._is_whole = False
            raise self._failure(error) from error

    def _check_open(self) -> None:
        if self._held is None:
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
                # What cannot be flushed any more is removed in a moment.
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
        manifest = seal(self._growing, cluster=self._cluster, ds=self._ds, is_redacted=True)
        if self._stored_count > _FEW_FILES:
            os.sync()  # All at once. It tells no failure; those below do, and have nothing left to write.
        sync_tree(self._growing)
        self._refuse_existing()
        if self._replaces is None:
            self._growing.rename(self.directory)
        else:
            _exchange(self._growing, self.directory)
        sync(self.directory.parent)
        self.manifest = manifest

    def _discard(self) -> None:
        """Remove the partial, then release its lock, so that no other writer takes it for a dead one's."""
        if self._held is None:
            return
        with self._writing:
            held, self._held = self._held, None
        _remove(self._partial)
        os.close(held)

    def _failure(self, error: OSError) -> ExportError:
        place = error.filename or self._partial
        return ExportError(f"{self.directory} is not written", [f"{place}: {error.strerror or error}"])


@contextmanager
def partial_folder(directory: Path) -> Iterator[Path]:
    """Hold the folder in which an export's successor grows, empty, and remove it with what is then in it.

    No writer and no other holder has the same export meanwhile; what dead ones of the cluster have left is removed.

    Args:
        directory: Where the export lies, or will.

    Raises:
        ExportError: Another process holds it.
        OSError: It cannot be made.
    """
    _remove_leftovers(directory.parent)
    partial = directory.parent / f".{directory.name}.partial"
    try:
        held = _take(partial)
    except _TakenError:
        problem = f"{partial} is being written by another process; wait for its end, or end it"
        raise ExportError(f"{directory} is not written", [problem]) from None
    try:
        shutil.rmtree(partial / "export", ignore_errors=True)
        (partial / "export").mkdir()
        yield partial / "export"
    finally:
        _remove(partial)
        os.close(held)


def _create(path: Path) -> BinaryIO:
    """Open a new file of an export, which others may not read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, EXPORT_FILE_MODE), "wb")


def _bytes_of(content: bytes | Path) -> bytes:
    """Return a file's bytes; of one that is too long to be searched for secrets only enough to show that."""
    if isinstance(content, bytes):
        return content
    with content.open("rb") as file:
        return file.read(MAX_CHECKED_BYTES + 1)


def _line(kind: str, cluster: str, fields: dict[str, object]) -> bytes:
    """Return a line of a kind's file, judged by the contract."""
    document = {"kind": kind, "cluster": cluster, **fields}
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    try:
        line = text.encode() + b"\n"
    except UnicodeEncodeError:
        # Half a surrogate pair has no UTF-8; escaped, the contract judges whether it may stand there.
        line = json.dumps(document, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise EnvelopeError(f"a line of {len(line)} bytes is longer than {MAX_LINE_BYTES}")
    parse_envelope(line, kind)
    return line


def _instant_text(instant: datetime) -> str:
    if instant.tzinfo is None:
        raise EnvelopeError(f"{instant.isoformat()} has no time zone; give an instant in UTC")
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


class _TakenError(Exception):
    """A partial belongs to a living process."""


def _take(partial: Path) -> int:
    """Make a partial and take its lock, for as long as the returned descriptor is open.

    Raises:
        _TakenError: Another process has the lock.
    """
    while True:
        # Not `exist_ok`, which looks a second time: somebody may remove it in between.
        with suppress(FileExistsError):
            partial.mkdir()
        try:
            held = _open_lock(partial, "lock")
        except FileNotFoundError:
            if partial.is_symlink():
                raise  # It leads nowhere.
            continue  # Somebody has removed it since.
        if _is_locked(held, fcntl.LOCK_EX):
            if _is_still(partial / "lock", held):
                return held
        elif not _is_locked(held, fcntl.LOCK_SH):
            os.close(held)
            raise _TakenError
        # Only somebody who removes dead partials has it, or it was removed: begin again.
        os.close(held)


def _is_locked(held: int, how: int) -> bool:
    """Try to take a lock: writers take it for themselves, those who remove dead partials share it."""
    try:
        fcntl.flock(held, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    """Return whether a path still leads to the file that was opened there."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove_leftovers(cluster_folder: Path) -> None:
    """Remove the partials of a cluster whose writers are dead."""
    with os.scandir(cluster_folder) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for name in names:
        path = cluster_folder / name
        if match := _REPLACED.fullmatch(name):
            _restore(path, match[1])
        elif _DISCARDED.fullmatch(name):
            shutil.rmtree(path, ignore_errors=True)
        elif _PARTIAL.fullmatch(name):
            with suppress(FileNotFoundError):  # Somebody else has removed it.
                held = _open_lock(path, "lock")
                try:
                    if _is_locked(held, fcntl.LOCK_SH):
                        _remove_dead(path, held)
                finally:
                    os.close(held)


def _remove_dead(partial: Path, held: int) -> None:
    """Remove a partial whose lock is shared, unless somebody else does.

    Of two who share it, the slower would remove what a living writer has begun under the same name. So one of them removes.
    """
    removing = _open_lock(partial, "removing")
    try:
        if _is_locked(removing, fcntl.LOCK_EX) and _is_still(partial / "lock", held):
            _remove(partial)
    finally:
        os.close(removing)


def _open_lock(partial: Path, name: str) -> int:
    return os.open(partial / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)


def _remove(partial: Path) -> None:
    """Remove a partial whose lock is held; at once under its name, so that a new one can be begun meanwhile."""
    discarded = partial.with_name(f"{partial.name.removesuffix('.partial')}.{secrets.token_hex(8)}.discarded")
    with suppress(OSError):
        partial.rename(discarded)
        shutil.rmtree(discarded, ignore_errors=True)


def _exchange(new: Path, old: Path) -> None:
    """Lets a new export and the one that lies in its place change places."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None and not rename(_AT_FDCWD, bytes(new), _AT_FDCWD, bytes(old), _RENAME_EXCHANGE):
        return
    replaced = old.with_name(f".{old.name}.replaced")
    shutil.rmtree(replaced, ignore_errors=True)
    old.rename(replaced)
    new.rename(old)
    shutil.rmtree(replaced, ignore_errors=True)


def _restore(replaced: Path, day: str) -> None:
    """Move an export back that a writer was replacing when it was killed, or removes it if the new one is in its place."""
    if os.path.lexists(replaced.with_name(day)):
        shutil.rmtree(replaced, ignore_errors=True)
    else:
        with suppress(FileNotFoundError):
            replaced.rename(replaced.with_name(day))


def sync_tree(directory: Path) -> None:
    """Wait until a folder with all that is in it is on the disk."""
    for folder, _, names in os.walk(directory):
        for name in names:
            sync(f"{folder}/{name}")
        sync(folder)


def sync(path: str | Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
