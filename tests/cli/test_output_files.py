"""Files of `--output` are written completely or not at all, and the message names the file."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.whole_file import whole_file

if TYPE_CHECKING:
    from pathlib import Path


def write(output: Path, text: str = "new") -> None:
    with whole_file(output) as draft:
        draft.write_text(text, encoding="utf-8")


def test_a_file_is_replaced_and_no_draft_remains(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old", encoding="utf-8")

    write(tmp_path / "page.html")

    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("name", ["", ".", "folder", "folder/.."])
def test_a_folder_is_refused_and_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)

    with pytest.raises(IsADirectoryError) as refused:
        write(type(tmp_path)(name))

    assert refused.value.filename == (name or ".")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("name", ["missing/page.html", "file/page.html"])
def test_an_error_names_the_file_and_not_its_draft(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OSError, match=r"No such file|Not a directory") as failed:
        write(tmp_path / name)

    assert failed.value.filename == str(tmp_path / name)


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    output.write_text("old", encoding="utf-8")

    with pytest.raises(UnicodeEncodeError):
        write(output, "half \ud800")

    assert output.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_file_name_of_maximum_length_can_be_written(tmp_path: Path) -> None:
    write(tmp_path / ("é" * 127))

    assert (tmp_path / ("é" * 127)).read_text(encoding="utf-8") == "new"


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")

    write(tmp_path / "link")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text(encoding="utf-8") == "new"


def test_a_special_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    # Like `--output /dev/stdout`: root, the user in most containers, can replace a device or a link to it.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()

    write(tmp_path / "link")

    reader.join()
    assert read == ["new"]
    assert pipe.is_fifo()
    assert (tmp_path / "link").is_symlink()
