"""The evaluated files are the published files: a staging area that changes in between is refused in one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from rebalance_ledger.tables import QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from rebalance_ledger.warehouse.staging import check_inventory, newest_stage, write_verdict
from tests.support.computed_days import asked, published_state
from tests.support.staging_fixtures import MONDAY, TUESDAY, owners, result, stage_day, write_staged

if TYPE_CHECKING:
    from collections.abc import Callable

    from rebalance_ledger.warehouse.layout import StagingArea


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Return a warehouse with a published Monday, and Tuesday staged and accepted."""
    made = Warehouse.at(str(tmp_path_factory.mktemp("made") / "warehouse"))
    stage_day(made, MONDAY, queue_assignment=owners("c1"))
    publish(made, "shop", MONDAY)
    stage_day(made, TUESDAY, queue_assignment=owners("c1", "c2"))
    return made


@pytest.fixture
def warehouse(made_once: Warehouse, tmp_path: Path) -> Warehouse:
    """Return a copy of the warehouse for one test."""
    return Warehouse.at(str(shutil.copytree(made_once.root, tmp_path / "warehouse")))


def part_of_assignments(stage: StagingArea) -> Path:
    [part] = Path(stage.table(QUEUE_ASSIGNMENT)).glob("*.parquet")
    return part


def rename_client(stage: StagingArea) -> None:
    write_staged(stage.table(QUEUE_ASSIGNMENT), QUEUE_ASSIGNMENT, "shop", TUESDAY, owners("c1", "c3"))


def remove_part(stage: StagingArea) -> None:
    part_of_assignments(stage).unlink()


def add_part(stage: StagingArea) -> None:
    part = part_of_assignments(stage)
    part.with_name("part-1.parquet").write_bytes(part.read_bytes())


def cut_part(stage: StagingArea) -> None:
    part = part_of_assignments(stage)
    part.write_bytes(part.read_bytes()[:-1])


def flip_bit(stage: StagingArea) -> None:
    part = part_of_assignments(stage)
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)


CHANGES = pytest.mark.parametrize(
    ("change", "problem"),
    [
        (rename_client, "gold.queue_assignment/part-0.parquet has changed"),
        (remove_part, "gold.queue_assignment/part-0.parquet is missing"),
        (add_part, "gold.queue_assignment/part-1.parquet was added"),
        (cut_part, "gold.queue_assignment/part-0.parquet has changed"),
        (flip_bit, "gold.queue_assignment/part-0.parquet has changed"),
    ],
)


@CHANGES
def test_a_stage_that_changed_after_its_verdict_is_not_published(
    warehouse: Warehouse, change: Callable[[StagingArea], None], problem: str
) -> None:
    before = published_state(warehouse)
    change(newest_stage(warehouse, "shop", TUESDAY))

    with pytest.raises(StagingError, match="is not what the build wrote") as refusal:
        publish(warehouse, "shop", TUESDAY)

    assert problem in str(refusal.value)
    assert published_state(warehouse) == before


@CHANGES
def test_a_stage_that_changed_after_its_build_is_not_evaluated(
    warehouse: Warehouse, change: Callable[[StagingArea], None], problem: str
) -> None:
    stage = newest_stage(warehouse, "shop", TUESDAY)
    check_inventory(stage)
    change(stage)

    with pytest.raises(StagingError, match=problem):
        check_inventory(stage)


def test_the_evaluated_files_count_and_not_a_later_record_of_them(warehouse: Warehouse) -> None:
    """The verdict covers the evaluated files, even if both a file and the build's record of it change."""
    stage = newest_stage(warehouse, "shop", TUESDAY)
    recorded = json.loads(Path(stage.inventory).read_text(encoding="utf-8"))
    rename_client(stage)
    Path(stage.inventory).write_text(json.dumps(recorded), encoding="utf-8")

    with pytest.raises(StagingError, match="has changed"):
        publish(warehouse, "shop", TUESDAY)


def test_a_day_with_rows_that_were_not_evaluated_is_invisible_to_readers(warehouse: Warehouse) -> None:
    stage = newest_stage(warehouse, "shop", TUESDAY)
    verdict = json.loads(Path(stage.gate_verdict).read_text(encoding="utf-8"))
    [assignments] = [table for table in verdict["inventory"] if table["name"] == "gold.queue_assignment"]
    assignments["files"][0]["row_count"] += 1
    Path(stage.gate_verdict).write_text(json.dumps(verdict), encoding="utf-8")

    with pytest.raises(StagingError, match=r"gold/queue_assignment would get 2 rows .* and 3 were judged"):
        publish(warehouse, "shop", TUESDAY)

    assert asked(warehouse, "SELECT DISTINCT ds FROM queue_assignment") == [(MONDAY,)]


def test_a_verdict_of_a_release_that_recorded_no_files_must_be_repeated(warehouse: Warehouse) -> None:
    stage = newest_stage(warehouse, "shop", TUESDAY)
    verdict = json.loads(Path(stage.gate_verdict).read_text(encoding="utf-8"))
    del verdict["inventory"]
    Path(stage.gate_verdict).write_text(json.dumps(verdict), encoding="utf-8")

    with pytest.raises(StagingError, match="run the gate again"):
        publish(warehouse, "shop", TUESDAY)
    write_verdict(warehouse, "shop", TUESDAY, stage, "passed", [result()])
    assert publish(warehouse, "shop", TUESDAY).changed_tables


def test_marker_files_of_the_writer_are_ignored(warehouse: Warehouse) -> None:
    folder = Path(newest_stage(warehouse, "shop", TUESDAY).table(QUEUE_ASSIGNMENT))
    (folder / "_SUCCESS").unlink()
    (folder / ".part-0.parquet.crc").write_bytes(b"crc")

    publish(warehouse, "shop", TUESDAY)

    assert pq.read_table(part_of_assignments(newest_stage(warehouse, "shop", TUESDAY))).num_rows == 2
    assert asked(warehouse, "SELECT count(*) FROM queue_assignment WHERE ds = '2026-11-17'") == [(2,)]
