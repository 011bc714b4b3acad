"""Day pages are replaced as a whole, and readable only by names inside their folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.pages import PageReader, write_data_docs, write_report
from tests.support.staging_fixtures import MONDAY, TUESDAY

if TYPE_CHECKING:
    from collections.abc import Mapping

CLUSTER = "../prod<b>"
DAY = f"..%2Fprod%3Cb%3E/{MONDAY}"


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.at(str(tmp_path / "warehouse"))


def made(folder: Path, pages: Mapping[str, str]) -> Path:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def pages_of(warehouse: Warehouse) -> dict[str, str]:
    folder = Path(warehouse.pages(CLUSTER, MONDAY))
    return {
        file.relative_to(folder).as_posix(): file.read_text() for file in folder.rglob("*") if file.is_file()
    }


def test_a_day_has_the_pages_of_its_last_gate_and_keeps_its_report(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    first = made(tmp_path / "1", {"index.html": "one", "suites/a.html": "a1", "suites/b.html": "b1"})
    second = made(tmp_path / "2", {"index.html": "two", "suites/a.html": "a2"})

    write_data_docs(warehouse, CLUSTER, MONDAY, first)
    report = write_report(warehouse, CLUSTER, MONDAY, "the report")
    index = write_data_docs(warehouse, CLUSTER, MONDAY, second)

    assert pages_of(warehouse) == {"index.html": "two", "suites/a.html": "a2", "report.html": "the report"}
    assert index == f"{warehouse.root}/data_docs/{DAY}/index.html"
    assert report == f"{warehouse.root}/data_docs/{DAY}/report.html"


def test_a_page_that_cannot_be_written_leaves_no_first_page_until_the_next_gate(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    first = made(tmp_path / "1", {"index.html": "one", "suites/a.html": "a1"})
    second = made(tmp_path / "2", {"index.html": "two", "suites/a.html": "a2", "suites/b.html": "b2"})
    write_data_docs(warehouse, CLUSTER, MONDAY, first)
    in_the_way = Path(warehouse.pages(CLUSTER, MONDAY), "suites", "b.html")
    in_the_way.mkdir()

    with pytest.raises(OSError, match="directory"):
        write_data_docs(warehouse, CLUSTER, MONDAY, second)
    reader = PageReader(warehouse.root)
    assert reader.read(f"{DAY}/index.html") is None
    assert [day.first_page_head for day in reader.days()[CLUSTER]] == [None]

    in_the_way.rmdir()
    write_data_docs(warehouse, CLUSTER, MONDAY, second)
    assert reader.read(f"{DAY}/index.html") == b"two"
    assert pages_of(warehouse) == {"index.html": "two", "suites/a.html": "a2", "suites/b.html": "b2"}


def test_the_newest_days_are_listed_first_with_their_pages(warehouse: Warehouse, tmp_path: Path) -> None:
    write_data_docs(warehouse, CLUSTER, MONDAY, made(tmp_path / "1", {"index.html": "<title>Passed"}))
    write_report(warehouse, CLUSTER, TUESDAY, "the report")
    made(Path(warehouse.data_docs), {"no cluster.html": "", "c/no day/index.html": ""})

    days = PageReader(warehouse.root).days()

    assert [(day.ds, day.first_page_head, day.has_report) for day in days[CLUSTER]] == [
        (f"{TUESDAY}", None, True),
        (f"{MONDAY}", "<title>Passed", False),
    ]
    assert days["c"] == []


def test_a_warehouse_without_pages_has_no_days(warehouse: Warehouse) -> None:
    assert PageReader(warehouse.root).days() == {}


@pytest.mark.parametrize(
    "name",
    [
        "",
        "index.html",
        f"{DAY}/verdict.json",
        f"{DAY}/missing.html",
        f"{DAY}/suites.html",
        f"{DAY}/suites.html/a.html/b.html",
        f"{DAY}/link.html",
        f"{DAY}/link/secret.html",
        "../secret.html",
        f"{DAY}/../../../secret.html",
        f"{DAY}/./index.html",
        f"{DAY}//index.html",
        f"/{DAY}/index.html",
        f"../data_docs/{DAY}/index.html",
        f"..\\data_docs\\{DAY}\\index.html",
        f"{DAY}/index.html\0.html",
        f"{DAY}/index\n.html",
        f"{DAY}/\udcff.html",
        f"{DAY}/{'x' * 300}.html",
        f"{DAY}/{'x/' * 600}x.html",
    ],
)
def test_an_invalid_page_name_reads_nothing(warehouse: Warehouse, tmp_path: Path, name: str) -> None:
    write_data_docs(warehouse, CLUSTER, MONDAY, made(tmp_path / "1", {"index.html": ""}))
    day = made(Path(warehouse.pages(CLUSTER, MONDAY)), {"suites.html/a.html": ""})
    made(Path(warehouse.root), {"secret.html": "secret"})
    (day / "verdict.json").write_text("{}")
    (day / "link.html").symlink_to(Path(warehouse.root, "secret.html"))
    (day / "link").symlink_to(warehouse.root)

    assert PageReader(warehouse.root).read(name) is None
    assert PageReader(warehouse.root).read(f"{DAY}/index.html") == b""
    assert PageReader(warehouse.root).read(f"{DAY}/suites.html/a.html") == b""
