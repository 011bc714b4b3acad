"""Offset files of broadcasting clients, from the tree in which people ship them, into an export.

What belongs here: walking `<drop>/<host>/<clientId>/<group>/`, which of its files are taken, and what becomes of the others.
What does not: what a file says (`rebalance_ledger.rocketmq.offset_files`), and how it got there (rsync, a log shipper, a mounted volume).

Java clients keep `offsets.json`, Go clients `offset.json`, each with a `.bak` beside it, in `<clientId>/<group>/` below
`~/.rocketmq_offsets` and `~/.rocketmq_client_go` (`LocalFileOffsetStore`, `localFileOffsetStore`).

Writers of the tree are not trusted. Every name is opened from the folder that it was found in, never through a link,
and nothing but a regular file is ever opened. What cannot be landed is an error line; what is no offset file is counted.
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
"""Stands in an error line for what a tree does not tell: whose files lie below a folder that cannot be listed."""

NOT_A_FILE: Final = "NotARegularFile"
"""Error type: a link, a folder, a pipe, a socket or a device bears the name of a file, or a file or link that of a folder."""

TOO_LARGE: Final = "FileTooLarge"
"""Error type: more bytes than the limit."""

CHANGING: Final = "FileChanging"
"""Error type: it was written to at each attempt to read it."""

UNREADABLE: Final = "FileUnreadable"
"""Error type: the operating system refuses it."""

NOT_UTF_8: Final = "NameNotUtf8"
"""Error type: a name that no line can hold; the line has it with `\\xNN` for the bytes that are no UTF-8."""

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

# A pipe that nobody writes to must not hold us; a terminal must not become ours.
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_NAME_BYTES: Final = 255  # Of common file systems.
_KEPT_BYTES: Final = 150  # Of a name that is longer once it is encoded; its hash tells it from others.


@dataclass(frozen=True, slots=True)
class Landed:
    """What was landed.

    Attributes:
        file_count: Files in the export.
        size_bytes: Their bytes.
        error_count: Error lines.
        remarks: What else was found, one sentence for each sort of thing; they are events of the export too.
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
    """Put the offset files of a tree into an export, each exactly as it is, with a line in the index (moment 0).

    The order is that of the names' bytes, folder by folder. What is held in memory is one file, and the names of one
    folder at each of the four levels.

    Args:
        writer: The export.
        drop: The folder that has a folder for each host. It may itself be a link, because the person who names it is trusted.
        limit_bytes: A larger file is not copied.
        now: The clock; each file is captured when it is read.
        pause: Waits so many seconds before a file that changes is read again.

    Raises:
        ExportError: The export cannot be written, or the day is over.
    """
    return _Landing(writer, limit_bytes, now, pause).run(drop)


class _NotLandedError(Exception):
    """Something cannot be landed, for a reason that an error line tells."""

    def __init__(self, error_type: str, sentence: str) -> None:
        super().__init__(sentence)
        self.error_type = error_type


class _ChangedError(Exception):
    """A file is not what it was when it was opened."""


@dataclass(slots=True)
class _Remarks:
    """Things that are counted: by sentence how many, and where the first is."""

    counts: Counter[str]
    first: dict[str, str]

    def add(self, what: str, place: tuple[str, ...], why: str = "") -> None:
        self.counts[what] += 1
        # Quoted as Python does: a name must not be able to write into a terminal.
        self.first.setdefault(what, ascii("/".join(place)) + (f": {why}" if why else ""))

    def sentences(self) -> tuple[str, ...]:
        return tuple(
            f"Offset files: {count} {what}; the first is {self.first[what]}."
            for what, count in self.counts.items()
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
        """Goes through an open folder; `names` are those of the host, the client id and the group, as far as it is."""
        level = len(names)
        try:
            with os.scandir(folder) as entries:
                found = sorted(os.fsencode(entry.name) for entry in entries)
        except OSError as error:
            self._fail(names, UNREADABLE, f"the folder cannot be listed: {error.strerror}")
            return
        if level == len(_LEVELS):
            self._group(folder, names, found)
            return
        for raw in found:
            name, is_utf_8 = _text(raw)
            inside = (*names, name)
            try:
                if not is_utf_8:
                    self._refuse_unnameable(folder, raw)
                with _closing(_open_folder(folder, raw, _FOLDER_OF[_LEVELS[level]])) as opened:
                    self._walk(opened, inside)
            except _StrayError:
                self._remarks.add(
                    f"files lie where only the {_FOLDER_OF[_LEVELS[level]]} is looked for, and are not in the export",
                    inside,
                )
            except _NotLandedError as error:
                self._fail(inside, error.error_type, str(error))

    def _group(self, folder: int, names: tuple[str, ...], found: list[bytes]) -> None:
        """Land the files of one group's folder."""
        listed = {os.fsdecode(raw) for raw in found}
        for name in _FILES:
            # Clients before 5.1.0 remove the main file and then rename the new one, which bears `.tmp` until then.
            if name in listed or f"{name}.tmp" in listed:
                self._land(folder, names, name, is_listed=name in listed)
        for raw in found:
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
        asked = dict(zip(_LEVELS, names, strict=True))
        self._writer.file("offset_file", at, _place(names, name), content, mtime, moment=0, **asked)
        self._file_count += 1
        self._size_bytes += len(content)

    def _read(self, folder: int, name: str) -> tuple[bytes, datetime]:
        """Read a file that does not change meanwhile.

        Raises:
            FileNotFoundError: It is not there.
            _NotLandedError: It cannot be landed.
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
        # To open a device can already do something to it.
        _check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), name)
        try:
            opened = os.open(name, _FLAGS, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _ChangedError from None  # It has become a link since.
            raise
        with _closing(opened):
            before = os.fstat(opened)
            _check_regular(before, name)
            if before.st_size > self._limit_bytes:
                raise _NotLandedError(
                    TOO_LARGE, f"{name} has {before.st_size} bytes, and the limit is {self._limit_bytes}"
                )
            pieces = []
            left = before.st_size + 1  # One more says that it has grown.
            while left > 0 and (piece := os.read(opened, left)):
                pieces.append(piece)
                left -= len(piece)
            content = b"".join(pieces)
            after = os.fstat(opened)
        if len(content) != before.st_size or _state(before) != _state(after):
            raise _ChangedError
        try:
            return content, _EPOCH + timedelta(microseconds=after.st_mtime_ns // 1000)
        except OverflowError:
            raise _NotLandedError(
                UNREADABLE, f"{name} was last written at {after.st_mtime_ns} ns, which no calendar has"
            ) from None

    def _refuse_unnameable(self, folder: int, raw: bytes) -> None:
        """Refuse a folder, a link or a device whose name is no text; a mere file there is counted as others are.

        Raises:
            _NotLandedError: Always, but for a file.
        """
        with suppress(OSError):
            if stat.S_ISREG(os.stat(raw, dir_fd=folder, follow_symlinks=False).st_mode):
                return
        raise _NotLandedError(
            NOT_UTF_8, "the folder's name is not UTF-8, so nothing below it is landed; rename it on its host"
        )

    def _fail(self, names: tuple[str, ...], error_type: str, sentence: str, name: str | None = None) -> None:
        asked = dict(zip(_LEVELS, (*names, UNKNOWN, UNKNOWN, UNKNOWN), strict=False))
        place = {} if name is None else {"path": _place(names, name)}
        self._writer.error("offset_file", self._now(), error_type, sentence, moment=0, **asked, **place)
        self._error_count += 1
        where = names if name is None else (*names, name)
        self._remarks.add("error lines say what could not be landed", where or ("the drop folder",), sentence)


class _StrayError(Exception):
    """A file lies where only folders are looked for."""


def _open_folder(folder: int, raw: bytes, what: str) -> int:
    """Open a folder in another one.

    Raises:
        _NotLandedError: It is a link or the like, or cannot be opened.
        _StrayError: It is a file.
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
    """What differs after a write. The inode's own time too: rsync sets the other one back."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _text(raw: bytes) -> tuple[str, bool]:
    r"""Return a name as text, and whether that is the name itself; if not, its bytes that are no UTF-8 are `\xNN`."""
    try:
        return raw.decode(), True
    except UnicodeDecodeError:
        return raw.decode(errors="backslashreplace"), False


def _place(names: tuple[str, ...], file_name: str) -> str:
    """Where a file lies in the export: the names of its folders, encoded, and its own."""
    return "/".join(["offset_files", *map(_encoded, names), file_name])


def _encoded(name: str) -> str:
    """Return a folder's name that is harmless whatever the name was; two names never get the same one.

    ASCII letters, digits and `@ - . _` stay, other bytes become `%NN`; so does a first `.` or `_`, for readers of folders
    take such for hidden ones. If that is too long for a file system, it is cut, and `~` and a SHA-256 follow.
    """
    encoded = re.sub(rb"^[._]|[^A-Za-z0-9@._-]", lambda byte: b"%%%02X" % byte[0][0], name.encode())
    if len(encoded) > _MAX_NAME_BYTES:
        encoded = encoded[:_KEPT_BYTES] + b"~" + hashlib.sha256(name.encode()).hexdigest().encode()
    return encoded.decode()
