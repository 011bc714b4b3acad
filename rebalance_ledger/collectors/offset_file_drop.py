"""Import of broadcasting clients' offset files from a drop folder into an export.

Belongs here: the walk through `<drop>/<host>/<clientId>/<group>/`, the selection of files, and the report of others. Does not belong
here: the content of a file (`rebalance_ledger.rocketmq.offset_files`), and its transport to the drop folder (rsync, a log shipper, a
mounted volume).

Java clients write `offsets.json`, Go clients `offset.json`, each with a `.bak`, in `<clientId>/<group>/` below
`~/.rocketmq_offsets` and `~/.rocketmq_client_go` (`LocalFileOffsetStore`, `localFileOffsetStore`).

The content of the drop folder is not trusted. Every name is opened relative to its folder's descriptor, never through a link,
and only regular files are opened. A file that cannot be landed becomes an error line; other files are counted.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rebalance_ledger.exports.writer import ExportWriter

UNKNOWN: Final = "(unknown)"
"""Placeholder in an error line for the host, client id or group below a folder that cannot be listed."""

NOT_A_FILE: Final = "NotARegularFile"
"""Error type: a link, folder, pipe, socket or device in place of a file, or a file or link in place of a folder."""

TOO_LARGE: Final = "FileTooLarge"
"""Error type: the file exceeds the size limit."""

CHANGING: Final = "FileChanging"
"""Error type: the file changed during each attempt to read it."""

UNREADABLE: Final = "FileUnreadable"
"""Error type: the operating system refuses access."""

NOT_UTF_8: Final = "NameNotUtf8"
"""Error type: the name is not UTF-8; the line has it with `\\xNN` for invalid bytes."""

DEFAULT_LIMIT_BYTES: Final = 16 * 1024 * 1024

_MAIN_FILES: Final = ("offsets.json", "offset.json")
_FILES: Final = tuple(sorted(main + end for main in _MAIN_FILES for end in ("", ".bak")))
_LEVELS: Final = ("host", "client_id", "group")
_FOLDER_OF: Final = {
    "host": "folder of a host",
    "client_id": "folder of a client id",
    "group": "folder of a group",
}

_ATTEMPTS: Final = 3
_PAUSE_S: Final = 0.1

# Opening a pipe must not block, and a terminal must not become the controlling terminal.
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_NAME_BYTES: Final = 255  # Limit of common file systems.
_PREFIX_BYTES: Final = 150  # Prefix of a longer encoded name; the hash makes it unique.


@dataclass(frozen=True, slots=True)
class Landed:
    """The result of landing offset files.

    Attributes:
        file_count: Number of files in the export.
        size_bytes: Total size of the files.
        error_count: Number of error lines.
        remarks: Other observations, one sentence per sort; the export has them too, as events.
    """

    file_count: int
    size_bytes: int
    error_count: int
    remarks: tuple[str, ...]


def land(
    writer: ExportWriter,
    drop: Path,
    *,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    pause: Callable[[float], None] = time.sleep,
) -> Landed:
    """Copy the offset files of a drop folder byte for byte into an export, with a line each in the index (moment 0).

    Folders are visited in the order of the bytes of their names. Memory holds one file, and the names of one folder at each of
    the four levels.

    Args:
        writer: The export.
        drop: Folder with one folder per host. It may be a link, because the caller is trusted.
        limit_bytes: Size limit; larger files become error lines.
        now: The clock; the capture time of a file is the time at which it is read.
        pause: Sleeps for a number of seconds before a changed file is read again.

    Raises:
        ExportError: The export cannot be written, or the day is over.
    """
    return _Landing(writer, limit_bytes, now, pause).run(drop)


class _NotLandedError(Exception):
    """A file or folder cannot be landed; becomes an error line."""

    def __init__(self, error_type: str, sentence: str) -> None:
        super().__init__(sentence)
        self.error_type = error_type


class _ChangedError(Exception):
    """A file has changed since it was opened."""


@dataclass(slots=True)
class _Remarks:
    """Counts of observations by sentence, with the path of the first."""

    counts: Counter[str]
    first: dict[str, str]

    def add(self, sentence: str, place: tuple[str, ...], reason: str = "") -> None:
        self.counts[sentence] += 1
        # Escaped, so that a name cannot send control characters to a terminal.
        self.first.setdefault(sentence, ascii("/".join(place)) + (f": {reason}" if reason else ""))

    def sentences(self) -> tuple[str, ...]:
        return tuple(
            f"Offset files: {count} {sentence}; the first is {self.first[sentence]}."
            for sentence, count in self.counts.items()
        )


class _Landing:
    """One run of `land`."""

    def __init__(
        self,
        writer: ExportWriter,
        limit_bytes: int,
        now: Callable[[], datetime],
        pause: Callable[[float], None],
    ) -> None:
        self._writer = writer
        self._limit_bytes = limit_bytes
        self._now = now
        self._pause = pause
        self._remarks = _Remarks(Counter(), {})
        self._file_count = self._size_bytes = self._error_count = 0

    def run(self, drop: Path) -> Landed:
        try:
            top = os.open(drop, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            self._fail((), UNREADABLE, f"the drop folder cannot be opened: {error.strerror}")
        else:
            with _closing(top):
                self._walk(top, ())
        remarks = self._remarks.sentences()
        if not self._file_count + self._error_count:
            remarks = (f"Offset files: there is none below the drop folder {str(drop)!a}.", *remarks)
        for remark in remarks:
            self._writer.event(self._now(), remark)
        return Landed(self._file_count, self._size_bytes, self._error_count, remarks)

    def _walk(self, folder: int, names: tuple[str, ...]) -> None:
        """Walk an open folder; `names` are its host, client id and group, as far as its level has them."""
        level = len(names)
        try:
            with os.scandir(folder) as entries:
                raw_names = sorted(os.fsencode(entry.name) for entry in entries)
        except OSError as error:
            self._fail(names, UNREADABLE, f"the folder cannot be listed: {error.strerror}")
            return
        if level == len(_LEVELS):
            self._group(folder, names, raw_names)
            return
        for raw in raw_names:
            name, is_utf_8 = _text(raw)
            inside = (*names, name)
            try:
                if not is_utf_8:
                    self._refuse_unnameable(folder, raw)
                with _closing(_open_folder(folder, raw, _FOLDER_OF[_LEVELS[level]])) as descriptor:
                    self._walk(descriptor, inside)
            except _StrayError:
                self._remarks.add(
                    f"files lie where only the {_FOLDER_OF[_LEVELS[level]]} is looked for, and are not in the export",
                    inside,
                )
            except _NotLandedError as error:
                self._fail(inside, error.error_type, str(error))

    def _group(self, folder: int, names: tuple[str, ...], raw_names: list[bytes]) -> None:
        """Land the files of one group's folder."""
        names_in_folder = {os.fsdecode(raw) for raw in raw_names}
        for name in _FILES:
            # Clients before 5.1.0 remove the main file and then rename the new `.tmp` file.
            if name in names_in_folder or f"{name}.tmp" in names_in_folder:
                self._land(folder, names, name, is_listed=name in names_in_folder)
        for raw in raw_names:
            if os.fsdecode(raw) not in _FILES:
                self._remarks.add(
                    f"entries of groups' folders have other names than {', '.join(_FILES)}, and are not in the export",
                    (*names, _text(raw)[0]),
                )

    def _land(self, folder: int, names: tuple[str, ...], name: str, *, is_listed: bool) -> None:
        try:
            content, mtime = self._read(folder, name)
        except FileNotFoundError:
            if is_listed:
                self._fail(names, CHANGING, f"{name} was listed and then was not there any more", name)
            return
        except _NotLandedError as error:
            self._fail(names, error.error_type, str(error), name)
            return
        at = self._now()
        if mtime.date() > at.date():
            self._remarks.add(
                "files were last written after the day of this export, by their hosts' clocks",
                (*names, name),
            )
        request = dict(zip(_LEVELS, names, strict=True))
        self._writer.file("offset_file", at, _place(names, name), content, mtime, moment=0, **request)
        self._file_count += 1
        self._size_bytes += len(content)

    def _read(self, folder: int, name: str) -> tuple[bytes, datetime]:
        """Read a file, again if it changes meanwhile.

        Raises:
            FileNotFoundError: The file does not exist.
            _NotLandedError: The file cannot be landed.
        """
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._pause(_PAUSE_S * attempt)
            try:
                return self._read_once(folder, name)
            except _ChangedError:
                continue
            except FileNotFoundError:
                if attempt == _ATTEMPTS - 1:
                    raise
            except OSError as error:
                raise _NotLandedError(UNREADABLE, f"{name} cannot be read: {error.strerror}") from None
        raise _NotLandedError(CHANGING, f"{name} was written to at each of {_ATTEMPTS} attempts to read it")

    def _read_once(self, folder: int, name: str) -> tuple[bytes, datetime]:
        # Opening a device can have side effects.
        _check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), name)
        try:
            descriptor = os.open(name, _FLAGS, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _ChangedError from None  # It was replaced by a link.
            raise
        with _closing(descriptor):
            before = os.fstat(descriptor)
            _check_regular(before, name)
            if before.st_size > self._limit_bytes:
                raise _NotLandedError(
                    TOO_LARGE, f"{name} has {before.st_size} bytes, and the limit is {self._limit_bytes}"
                )
            pieces = []
            remaining_bytes = before.st_size + 1  # One more byte detects growth.
            while remaining_bytes > 0 and (piece := os.read(descriptor, remaining_bytes)):
                pieces.append(piece)
                remaining_bytes -= len(piece)
            content = b"".join(pieces)
            after = os.fstat(descriptor)
        if len(content) != before.st_size or _state(before) != _state(after):
            raise _ChangedError
        try:
            return content, _EPOCH + timedelta(microseconds=after.st_mtime_ns // 1000)
        except OverflowError:
            raise _NotLandedError(
                UNREADABLE, f"{name} was last written at {after.st_mtime_ns} ns, which no calendar has"
            ) from None

    def _refuse_unnameable(self, folder: int, raw: bytes) -> None:
        """Refuse a folder, link or device whose name is not UTF-8; a regular file is counted like other stray files.

        Raises:
            _NotLandedError: The entry is not a regular file.
        """
        with suppress(OSError):
            if stat.S_ISREG(os.stat(raw, dir_fd=folder, follow_symlinks=False).st_mode):
                return
        raise _NotLandedError(
            NOT_UTF_8, "the folder's name is not UTF-8, so nothing below it is landed; rename it on its host"
        )

    def _fail(self, names: tuple[str, ...], error_type: str, sentence: str, name: str | None = None) -> None:
        request = dict(zip(_LEVELS, (*names, UNKNOWN, UNKNOWN, UNKNOWN), strict=False))
        path_field = {} if name is None else {"path": _place(names, name)}
        self._writer.error(
            "offset_file", self._now(), error_type, sentence, moment=0, **request, **path_field
        )
        self._error_count += 1
        where = names if name is None else (*names, name)
        self._remarks.add("error lines say what could not be landed", where or ("the drop folder",), sentence)


class _StrayError(Exception):
    """A file in place of a folder."""


def _open_folder(folder: int, raw: bytes, what: str) -> int:
    """Open a folder relative to another one.

    Raises:
        _NotLandedError: The entry is a link or another non-folder, or cannot be opened.
        _StrayError: The entry is a regular file.
    """
    try:
        return os.open(raw, _FLAGS | os.O_DIRECTORY, dir_fd=folder)
    except OSError as error:
        failure = error
    try:
        status = os.stat(raw, dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        raise _NotLandedError(UNREADABLE, f"the folder cannot be opened: {error.strerror}") from None
    if stat.S_ISREG(status.st_mode):
        raise _StrayError
    if not stat.S_ISDIR(status.st_mode):
        raise _NotLandedError(
            NOT_A_FILE, f"the {what} is {_sort(status)}; nothing is read through it, so put the folder there"
        )
    raise _NotLandedError(UNREADABLE, f"the folder cannot be opened: {failure.strerror}")


def _check_regular(status: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _NotLandedError(NOT_A_FILE, f"{name} is {_sort(status)}; only a regular file is read")


def _sort(status: os.stat_result) -> str:
    names = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return names.get(stat.S_IFMT(status.st_mode), "a device")


def _state(status: os.stat_result) -> tuple[int, int, int]:
    """Return the attributes that a write changes, including the ctime, because rsync resets the mtime."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _text(raw: bytes) -> tuple[str, bool]:
    r"""Return a name as text, and whether it is valid UTF-8; otherwise invalid bytes are `\xNN`."""
    try:
        return raw.decode(), True
    except UnicodeDecodeError:
        return raw.decode(errors="backslashreplace"), False


def _place(names: tuple[str, ...], file_name: str) -> str:
    """Return the path of a file in the export, with encoded folder names."""
    return "/".join(["offset_files", *map(_encode_name, names), file_name])


def _encode_name(name: str) -> str:
    """Return a safe and unique folder name for any name.

    ASCII letters, digits and `@ - . _` remain, other bytes become `%NN`; so does a leading `.` or `_`, because many readers
    treat such folders as hidden. A name too long for a file system is truncated, with `~` and its SHA-256 appended.
    """
    encoded = re.sub(rb"^[._]|[^A-Za-z0-9@._-]", lambda byte: b"%%%02X" % byte[0][0], name.encode())
    if len(encoded) > _MAX_NAME_BYTES:
        encoded = encoded[:_PREFIX_BYTES] + b"~" + hashlib.sha256(name.encode()).hexdigest().encode()
    return encoded.decode()
