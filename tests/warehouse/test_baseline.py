"""The gate compares a staged day with the rows that its build read, regardless of later publications."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from rebalance_ledger.tables import QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse.baseline import (
    COMPARED_TABLES,
    EarlierDay,
    newest_earlier_day,
    read_baseline,
    write_baseline,
)
from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from rebalance_ledger.warehouse.staging import newest_stage, read_build
from tests.support.staging_fixtures import MONDAY, TUESDAY, owners, stage_day

if TYPE_CHECKING:
    from rebalance_ledger.warehouse.layout import StagingArea


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Return a warehouse with a published Monday, and Tuesday staged by a build that read Monday's rows."""
    warehouse = Warehouse.at(str(tmp_path / "warehouse"))
    stage_day(warehouse, MONDAY, queue_assignment=owners("c1"))
    publish(warehouse, "shop", MONDAY)
    earlier = newest_earlier_day(warehouse, "shop", TUESDAY, COMPARED_TABLES)
    assert earlier is not None
    build = {"baseline_ds": earlier.ds, "compared_content": list(earlier.content)}
    stage_day(warehouse, TUESDAY, build=build, verdict=None)
    write_baseline(warehouse, staged(warehouse), earlier)
    return warehouse


def staged(warehouse: Warehouse) -> StagingArea:
    return newest_stage(warehouse, "shop", TUESDAY)


def baseline(warehouse: Warehouse) -> EarlierDay:
    stage = staged(warehouse)
    earlier = read_baseline(warehouse, stage, read_build(stage))
    assert earlier is not None
    return earlier


def test_a_later_publication_of_the_earlier_day_changes_nothing(warehouse: Warehouse) -> None:
    stage_day(warehouse, MONDAY, run_id="again", queue_assignment=owners("c2", "c3"))
    publish(warehouse, "shop", MONDAY)

    earlier = baseline(warehouse)

    [file] = earlier.files(QUEUE_ASSIGNMENT)
    assert pq.read_table(file)["client_id"].to_pylist() == ["c1"]
    assert earlier.ds == MONDAY


def test_a_copy_of_the_warehouse_is_read_at_its_own_location(warehouse: Warehouse, tmp_path: Path) -> None:
    moved = Path(warehouse.root).rename(tmp_path / "moved")

    [file] = baseline(Warehouse.at(str(moved))).files(QUEUE_ASSIGNMENT)

    assert file.startswith(f"{moved}/")
    assert pq.read_table(file)["client_id"].to_pylist() == ["c1"]


def test_a_removed_file_and_a_missing_or_damaged_record_are_reported_in_one_sentence(
    warehouse: Warehouse,
) -> None:
    record = Path(staged(warehouse).baseline)
    [file] = baseline(warehouse).files(QUEUE_ASSIGNMENT)
    Path(file).unlink()
    with pytest.raises(
        StagingError, match=rf"{file} is gone, with rows of {MONDAY} .*: run the build of this day again"
    ):
        baseline(warehouse)

    record.write_text("{}", encoding="utf-8")
    with pytest.raises(StagingError, match=rf"{record} is damaged \('tables' is not a list\)"):
        baseline(warehouse)

    record.unlink()
    with pytest.raises(StagingError, match="has no record of the day that it was compared with"):
        baseline(warehouse)
