"""Equal content has equal fingerprints regardless of its history, and different rows have different fingerprints."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from rebalance_ledger.tables import ALL_TABLES, QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse.data_files import data_files
from rebalance_ledger.warehouse.fingerprint import fingerprint
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from tests.support.command_line import ledger
from tests.support.staging_fixtures import MONDAY, TUESDAY, owners, stage_day

if TYPE_CHECKING:
    from datetime import date


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.at(str(tmp_path / "warehouse"))


def publish_owners(warehouse: Warehouse, ds: date, *client_ids: str, run_id: str = "run-1") -> None:
    stage_day(warehouse, ds, run_id=run_id, queue_assignment=owners(*client_ids))
    publish(warehouse, "shop", ds)


def test_the_history_of_equal_days_does_not_matter(warehouse: Warehouse, tmp_path: Path) -> None:
    publish_owners(warehouse, MONDAY, "c1", "c2")
    publish_owners(warehouse, TUESDAY, "c1")
    other = Warehouse.at(str(tmp_path / "other"))
    publish_owners(other, TUESDAY, "c9", run_id="run-9")
    publish_owners(other, MONDAY, "c2")
    publish_owners(other, TUESDAY, "c1")
    publish_owners(other, MONDAY, "c1", "c2")

    lines = list(fingerprint(warehouse.root, "shop"))

    assert lines == list(fingerprint(other.root, "shop"))
    assert len(lines) == 2 * len(ALL_TABLES)
    assert [line for line in lines if line.ds == TUESDAY] == list(fingerprint(other.root, "shop", TUESDAY))


def test_the_time_zone_of_the_machine_does_not_matter(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = [{"last_consumed_at": datetime(2026, 11, 16, 23, 30, tzinfo=UTC)}]
    stage_day(warehouse, MONDAY, consume_progress=progress)
    publish(warehouse, "shop", MONDAY)
    lines = list(fingerprint(warehouse.root, "shop"))
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    other = Warehouse.at(str(tmp_path / "other"))
    stage_day(other, MONDAY, consume_progress=progress)
    publish(other, "shop", MONDAY)

    assert all(line.is_as_published for line in fingerprint(warehouse.root, "shop"))
    assert list(fingerprint(other.root, "shop")) == lines


@pytest.mark.parametrize("changed", [("c1", "c3"), ("c1",), ("c1", "c2", "c2")])
def test_a_different_row_changes_the_line_of_its_table_and_day(
    warehouse: Warehouse, changed: tuple[str, ...]
) -> None:
    publish_owners(warehouse, MONDAY, "c1", "c2")
    publish_owners(warehouse, TUESDAY, "c1", "c2")
    before = set(fingerprint(warehouse.root, "shop"))

    publish_owners(warehouse, TUESDAY, *changed)

    after = set(fingerprint(warehouse.root, "shop"))
    assert {(line.ds, line.table_name) for line in after - before} == {(TUESDAY, "gold.queue_assignment")}


def test_different_code_changes_the_line_of_the_publication(warehouse: Warehouse) -> None:
    publish_owners(warehouse, MONDAY, "c1")
    before = set(fingerprint(warehouse.root, "shop"))

    publish_owners(warehouse, MONDAY, "c1", run_id="run-2")

    after = set(fingerprint(warehouse.root, "shop"))
    assert {line.table_name for line in after - before} == {"gold.gate_result", "gold.publication"}


def test_the_command_prints_a_line_for_each_table_and_day(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_owners(warehouse, MONDAY, "c1", "c2")

    assert ledger("fingerprint", "--cluster=shop", f"--warehouse={warehouse.root}") == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [words[:3] for words in lines if words[1] == "gold.queue_assignment"] == [
        ["2026-11-16", "gold.queue_assignment", "2"]
    ]
    assert len(lines) == len(ALL_TABLES)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        pytest.param(("--cluster=shpo",), "shpo", id="cluster"),
        pytest.param(("--cluster=shop", "--ds=2026-11-17"), "shop 2026-11-17", id="day"),
    ],
)
def test_an_unpublished_cluster_or_day_is_an_error_instead_of_an_empty_answer(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], wanted: str
) -> None:
    publish_owners(warehouse, MONDAY, "c1")

    assert ledger("fingerprint", *words, f"--warehouse={warehouse.root}") == 2

    output = capsys.readouterr()
    assert not output.out
    assert f"has no published day of {wanted}: look for its name and day in `ledger summary`" in output.err


def test_rows_without_a_publication_are_reported(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_owners(warehouse, MONDAY, "c1", "c2")
    publish_owners(warehouse, TUESDAY, "c9")
    place = warehouse.published(QUEUE_ASSIGNMENT)
    files = {file.day.ds: Path(place, file.path) for file in data_files(DeltaTable(place))}
    files[MONDAY].unlink()  # The staged file is a hard link to the same file.
    files[MONDAY].write_bytes(files[TUESDAY].read_bytes())

    assert ledger("fingerprint", "--cluster=shop", f"--warehouse={warehouse.root}") == 2

    assert "The rows of 2026-11-16 gold.queue_assignment are not those" in capsys.readouterr().err
