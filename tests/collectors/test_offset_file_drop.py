"""Offset files of a drop folder are copied to an export byte for byte. Other entries do no harm."""

from __future__ import annotations

import json
import os
import socket
import stat
from contextlib import chdir
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from rebalance_ledger.collectors.offset_file_drop import Landed, land
from rebalance_ledger.exports.sealing import verify
from rebalance_ledger.exports.writer import ExportWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DS = date(2026, 11, 18)
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
WRITTEN = datetime(2026, 11, 17, 23, 59, 58, 123456, tzinfo=UTC)
MAIN = b'{\n\t"offsetTable":{}\n}'


class LandedExport(NamedTuple):
    """An export of a drop folder."""

    landed: Landed
    directory: Path
    lines: list[dict[str, Any]]

    @property
    def errors(self) -> list[tuple[str, str, str, str, str]]:
        """Return the error lines: host, client id, group, type and sentence."""
        return [
            (line["host"], line["client_id"], line["group"], line["error"]["type"], line["error"]["message"])
            for line in self.lines
            if "error" in line
        ]

    @property
    def files(self) -> list[tuple[str, str, str, str]]:
        """Return the files in the export: host, client id, group and file name."""
        return [
            (line["host"], line["client_id"], line["group"], line["path"].rpartition("/")[2])
            for line in self.lines
            if "sha256" in line
        ]


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    folder = tmp_path / "drop"
    folder.mkdir()
    return folder


@pytest.fixture
def landing(tmp_path: Path, drop: Path) -> Callable[..., LandedExport]:
    """Return a function that lands the drop folder in an export, and seals and verifies the export."""

    def land_drop_folder(**options: Any) -> LandedExport:
        exports = tmp_path / "exports"
        with ExportWriter(exports, "prod", DS) as writer:
            writer.payload("nameserver_topic_list", NOON, '{"topicList":["t"]}', nameserver="ns:9876")
            writer.payload("nameserver_route", NOON, "{}", nameserver="ns:9876", topic="t")
            writer.payload("consumer_connection", NOON, "{}", broker="a", broker_addr="a:10911", group="g")
            landed = land(writer, options.pop("drop", drop), **{"now": lambda: NOON} | options)
        manifest = verify(writer.directory)
        index = writer.directory / "offset_files_index.jsonl"
        lines = [json.loads(line) for line in index.read_bytes().splitlines()] if index.exists() else []
        assert landed.error_count == sum("error" in line for line in lines)
        assert landed.file_count == sum("sha256" in line for line in lines)
        assert sum(file.kind == "offset_file" and not file.holds_envelopes for file in manifest.files) == (
            landed.file_count
        )
        events = writer.directory / "events.jsonl"
        output = (
            [json.loads(line)["event"] for line in events.read_bytes().splitlines()]
            if events.exists()
            else []
        )
        assert tuple(output) == landed.remarks
        return LandedExport(landed, writer.directory, lines)

    return land_drop_folder


def put(path: Path, content: bytes = MAIN, written: datetime = WRITTEN) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    instant_ns = (written - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    os.utime(path, ns=(instant_ns, instant_ns))
    return path


def test_files_of_java_and_go_are_landed_byte_for_byte(
    drop: Path, landing: Callable[..., LandedExport]
) -> None:
    contents = {
        "10.1.1.21/10.1.1.21@DEFAULT/prices/offsets.json": MAIN,
        "10.1.1.21/10.1.1.21@DEFAULT/prices/offsets.json.bak": b"",
        "10.1.1.22/10.1.1.22@DEFAULT/prices/offset.json": b'{"OffsetTable":{}}',
        "10.1.1.22/10.1.1.22@DEFAULT/prices/offset.json.bak": b"\xff\x00 half a fil",
    }
    for path, content in contents.items():
        put(drop / path, content)
    result = landing()
    assert result.landed == Landed(4, sum(map(len, contents.values())), 0, ())
    assert [line["path"] for line in result.lines] == [f"offset_files/{path}" for path in contents]
    for line, content in zip(result.lines, contents.values(), strict=True):
        assert (result.directory / line["path"]).read_bytes() == content
        assert (line["size"], line["sha256"]) == (len(content), sha256(content).hexdigest())
        assert (line["mtime"], line["moment"]) == ("2026-11-17T23:59:58.123456Z", 0)
        assert line["captured_at"] == "2026-11-18T12:00:00.000000Z"


HARD_NAMES = [
    "..x", "...", "a..b", "%2e%2e", "a%2Fb", "_hidden", ".hidden", "a\\..\\b", "'; DROP TABLE t; --", '"><script>', "$(id)",
    "`id`", "-rf", "*", "a\nb\r\x1b[2J\x7f", " ", "ü", "u\u0308", "机器", "\U0001f680", "pid#42", "k=v", "A", "a", "~",
    "x" * 255, "机" * 85, "机" * 84 + "abc", "(unknown)",
]  # fmt: skip


@pytest.mark.parametrize("level", [0, 1, 2], ids=["host", "client_id", "group"])
def test_names_are_kept_in_the_index_and_paths_are_safe(
    drop: Path, landing: Callable[..., LandedExport], level: int
) -> None:
    owners = {(*("h", "c", "g")[:level], name, *("h", "c", "g")[level + 1 :]) for name in HARD_NAMES}
    for owner in owners:
        put(drop.joinpath(*owner, "offsets.json"), "/".join(owner).encode())
    result = landing()
    assert result.landed.remarks == ()
    assert {file[:3] for file in result.files} == owners
    for line in result.lines:
        path = result.directory / line["path"]
        assert path.read_bytes() == "/".join((line["host"], line["client_id"], line["group"])).encode()
        assert all(set(part) <= set(SAFE) and part[0] not in "._" for part in line["path"].split("/"))


SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@-._%~"


def test_the_order_is_by_the_bytes_of_names(drop: Path, landing: Callable[..., LandedExport]) -> None:
    for host in ("b", "\U0001f680", "a", "\ufb01", "B", "a0"):
        put(drop / host / "c" / "g" / "offsets.json")
    assert [file[0] for file in landing().files] == ["B", "a", "a0", "b", "\ufb01", "\U0001f680"]


def make_link(path: Path) -> None:
    path.symlink_to(path.parents[4] / "secret" / "c" / "g" / "offsets.json")


def make_socket(path: Path) -> None:
    # Bind from inside the folder, because the length of a socket address is limited.
    with socket.socket(socket.AF_UNIX) as result, chdir(path.parent):
        result.bind(path.name)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (make_link, "a symbolic link"),
        (os.mkfifo, "a pipe"),
        (os.mkdir, "a folder"),
        (make_socket, "a socket"),
    ],
    ids=["link", "pipe", "folder", "socket"],
)
def test_only_regular_files_are_read(
    tmp_path: Path, drop: Path, landing: Callable[..., LandedExport], make: Callable[[Path], None], what: str
) -> None:
    put(tmp_path / "secret" / "c" / "g" / "offsets.json", b"secret")
    put(drop / "h" / "c" / "g" / "offsets.json.bak")
    make(drop / "h" / "c" / "g" / "offsets.json")
    result = landing()
    assert result.files == [("h", "c", "g", "offsets.json.bak")]
    sentence = f"offsets.json is {what}; only a regular file is read"
    assert result.errors == [("h", "c", "g", "NotARegularFile", sentence)]
    assert "path" in result.lines[0]  # The line names which file of the pair it is.


def test_devices_are_not_even_opened(
    drop: Path, landing: Callable[..., LandedExport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only root can create a device, so this test changes only the file's status."""
    put(drop / "h" / "c" / "g" / "offsets.json")
    looked, opened = os.stat, os.open

    def device(path: Any, **how: Any) -> Any:
        status = looked(path, **how)
        if path != "offsets.json":
            return status
        return os.stat_result((stat.S_IFCHR | 0o600, *tuple(status)[1:]))

    def watch(path: Any, *how: Any, **where: Any) -> int:
        assert path != "offsets.json"
        return opened(path, *how, **where)

    monkeypatch.setattr(os, "stat", device)
    monkeypatch.setattr(os, "open", watch)
    assert landing().errors[0][3:] == (
        "NotARegularFile",
        "offsets.json is a device; only a regular file is read",
    )


@pytest.mark.parametrize("level", [0, 1, 2], ids=["host", "client_id", "group"])
def test_no_folder_is_reached_through_a_link(
    tmp_path: Path, drop: Path, landing: Callable[..., LandedExport], level: int
) -> None:
    put(tmp_path / "secret" / "c" / "g" / "offsets.json", b"secret")
    link = drop.joinpath(*("h", "c", "g")[: level + 1])
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to([tmp_path / "secret", tmp_path / "secret" / "c", tmp_path / "secret" / "c" / "g"][level])
    result = landing()
    assert result.files == []
    ((*owner, error_type, sentence),) = result.errors
    assert owner == [*("h", "c", "g")[: level + 1], *["(unknown)"] * (2 - level)]
    assert error_type == "NotARegularFile"
    assert "is a symbolic link; nothing is read through it" in sentence


def test_a_pipe_instead_of_a_folder_does_not_block(drop: Path, landing: Callable[..., LandedExport]) -> None:
    os.mkfifo(drop / "h")
    assert landing().errors[0][3:] == (
        "NotARegularFile",
        "the folder of a host is a pipe; nothing is read through it, so put the folder there",
    )


def test_the_drop_folder_itself_may_be_a_link(
    tmp_path: Path, drop: Path, landing: Callable[..., LandedExport]
) -> None:
    put(drop / "h" / "c" / "g" / "offsets.json")
    (tmp_path / "link").symlink_to(drop)
    assert landing(drop=tmp_path / "link").landed.file_count == 1


@pytest.mark.parametrize("level", [0, 1, 2], ids=["host", "client_id", "group"])
def test_a_name_that_is_not_utf_8_is_an_error_with_an_escaped_name(
    drop: Path, landing: Callable[..., LandedExport], level: int
) -> None:
    names = [b"h", b"c", b"g"]
    names[level] = b"caf\xe9"
    folder = os.path.join(os.fsencode(drop), *names)  # noqa: PTH118  # bytes
    os.makedirs(folder)  # noqa: PTH103  # bytes
    with open(os.path.join(folder, b"offsets.json"), "wb"):  # noqa: PTH118, PTH123  # bytes
        pass
    ((*owner, error_type, sentence),) = landing().errors
    assert owner == [*("h", "c", "g")[:level], r"caf\xe9", *["(unknown)"] * (2 - level)]
    assert error_type == "NameNotUtf8"
    assert sentence == "the folder's name is not UTF-8, so nothing below it is landed; rename it on its host"


def test_a_file_above_the_limit_is_not_copied_and_one_at_the_limit_is(
    drop: Path, landing: Callable[..., LandedExport]
) -> None:
    put(drop / "h" / "c" / "g" / "offsets.json", b"x" * 101)
    put(drop / "h" / "c" / "g" / "offsets.json.bak", b"x" * 100)
    result = landing(limit_bytes=100)
    assert result.files == [("h", "c", "g", "offsets.json.bak")]
    assert result.errors == [
        ("h", "c", "g", "FileTooLarge", "offsets.json has 101 bytes, and the limit is 100")
    ]


def test_other_entries_are_counted_and_the_first_is_named(
    drop: Path, landing: Callable[..., LandedExport]
) -> None:
    put(drop / "h" / "c" / "g" / "offsets.json")
    put(drop / "h" / "c" / "g" / "offsets.json.tmp")
    put(drop / "h" / "c" / "g" / "notes\x1b[2J.txt")
    put(drop / "h" / "c" / "g" / "a folder" / "offsets.json")
    put(drop / "h" / "c" / "stray")
    put(drop / "README")
    result = landing()
    assert result.files == [("h", "c", "g", "offsets.json")]
    assert result.errors == []
    names = "offset.json, offset.json.bak, offsets.json, offsets.json.bak"
    assert set(result.landed.remarks) == {
        (
            "Offset files: 1 files lie where only the folder of a host is looked for, and are not in the export; the first is "
            "'README'."
        ),
        (
            "Offset files: 1 files lie where only the folder of a group is looked for, and are not in the export; the first is "
            "'h/c/stray'."
        ),
        (
            f"Offset files: 3 entries of groups' folders have other names than {names}, and are not in the export; the first is "
            "'h/c/g/a folder'."
        ),
    }


def test_an_empty_tree_is_reported(drop: Path, landing: Callable[..., LandedExport]) -> None:
    (drop / "h" / "c" / "g").mkdir(parents=True)
    result = landing()
    assert result.lines == []
    assert result.landed.remarks == (f"Offset files: there is none below the drop folder '{drop}'.",)


def test_a_drop_folder_that_cannot_be_opened_is_an_error_line(
    tmp_path: Path, landing: Callable[..., LandedExport]
) -> None:
    assert landing(drop=tmp_path / "not there").errors == [
        (*["(unknown)"] * 3, "FileUnreadable", "the drop folder cannot be opened: No such file or directory")
    ]


def test_files_written_after_the_day_are_landed_and_reported(
    drop: Path, landing: Callable[..., LandedExport]
) -> None:
    put(drop / "h" / "c" / "g" / "offsets.json", written=NOON + timedelta(days=1))
    result = landing()
    assert result.landed.file_count == 1
    assert result.landed.remarks == (
        (
            "Offset files: 1 files were last written after the day of this export, by their hosts' clocks; the first is "
            "'h/c/g/offsets.json'."
        ),
    )


class ReadHook:
    """A hook that modifies a file during a limited number of reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, meddle: Callable[[], None], times: int) -> None:
        self._read = os.read
        self._meddle = meddle
        self._left = times
        monkeypatch.setattr(os, "read", self)

    def __call__(self, opened: int, size: int) -> bytes:
        content = self._read(opened, size)
        if content and self._left:
            self._left -= 1
            self._meddle()
        return content


def appending(path: Path) -> Callable[[], None]:
    def append() -> None:
        with path.open("ab") as file:
            file.write(b"+")

    return append


def rewriting_with_the_old_time(path: Path) -> Callable[[], None]:
    def rewrite() -> None:
        status = path.stat()
        path.write_bytes(b"?" * status.st_size)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return rewrite


@pytest.mark.parametrize(
    ("meddling", "times"),
    [(appending, 3), (rewriting_with_the_old_time, 2)],
    ids=["grows", "same size and time"],
)
def test_a_file_that_changes_while_it_is_read_is_read_again(
    drop: Path,
    landing: Callable[..., LandedExport],
    monkeypatch: pytest.MonkeyPatch,
    meddling: Callable[[Path], Callable[[], None]],
    times: int,
) -> None:
    path = put(drop / "h" / "c" / "g" / "offsets.json")
    waited: list[float] = []
    ReadHook(monkeypatch, meddling(path), times)
    result = landing(pause=waited.append)
    assert (result.directory / result.lines[0]["path"]).read_bytes() == path.read_bytes() != MAIN
    assert waited == [0.1, 0.2]


def test_a_file_that_keeps_changing_is_an_error(
    drop: Path, landing: Callable[..., LandedExport], monkeypatch: pytest.MonkeyPatch
) -> None:
    ReadHook(monkeypatch, appending(put(drop / "h" / "c" / "g" / "offsets.json")), 99)
    assert landing(pause=lambda _: None).errors[0][3:] == (
        "FileChanging",
        "offsets.json was written to at each of 3 attempts to read it",
    )


def test_a_file_that_is_being_renamed_is_waited_for(drop: Path, landing: Callable[..., LandedExport]) -> None:
    """Java clients before 5.1.0 remove the main file and then rename the new one."""
    new = put(drop / "h" / "c" / "g" / "offsets.json.tmp")

    def rename(_: float) -> None:
        if new.exists():
            new.rename(new.with_suffix(""))

    result = landing(pause=rename)
    assert result.files == [("h", "c", "g", "offsets.json")]
    assert result.errors == []


def test_a_file_that_cannot_be_read_is_an_error_and_the_others_are_landed(
    drop: Path, landing: Callable[..., LandedExport], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(drop / "h" / "c" / "g" / "offsets.json")
    put(drop / "h" / "c" / "g" / "offsets.json.bak")
    opened = os.open

    def refuse(path: str | bytes, *how: Any, **where: Any) -> int:
        if path == "offsets.json":
            raise PermissionError(13, "Permission denied")
        return opened(path, *how, **where)

    monkeypatch.setattr(os, "open", refuse)
    result = landing()
    assert result.files == [("h", "c", "g", "offsets.json.bak")]
    assert result.errors == [
        ("h", "c", "g", "FileUnreadable", "offsets.json cannot be read: Permission denied")
    ]
    assert result.landed.remarks == (
        (
            "Offset files: 1 error lines say what could not be landed; the first is 'h/c/g/offsets.json': offsets.json cannot be "
            "read: Permission denied."
        ),
    )


def test_a_file_replaced_by_a_link_before_it_is_opened_is_not_followed(
    tmp_path: Path, drop: Path, landing: Callable[..., LandedExport], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = put(tmp_path / "secret", b"secret")
    path = put(drop / "h" / "c" / "g" / "offsets.json")
    opened = os.open

    def swap(name: str | bytes, *how: Any, **where: Any) -> int:
        if name == "offsets.json" and not path.is_symlink():
            path.unlink()
            path.symlink_to(secret)
        return opened(name, *how, **where)

    monkeypatch.setattr(os, "open", swap)
    result = landing(pause=lambda _: None)
    assert result.files == []
    assert result.errors[0][3:] == (
        "NotARegularFile",
        "offsets.json is a symbolic link; only a regular file is read",
    )


def test_nothing_stays_open(drop: Path, landing: Callable[..., LandedExport]) -> None:
    for host in range(50):
        put(drop / f"h{host}" / "c" / "g" / "offsets.json")
        (drop / f"h{host}" / "c" / "link").symlink_to(drop)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # counts
    landing()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
