"""Maintenance removes unreferenced files, and no file that a reader, a rollback or a computation needs."""

from __future__ import annotations

import fcntl
import inspect
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, write_deltalake

from rebalance_ledger.tables import BROADCAST_OFFSET, GATE_RESULT, QUEUE_ASSIGNMENT
from rebalance_ledger.tables.silver.broker import BROKER
from rebalance_ledger.warehouse import commits, maintenance
from rebalance_ledger.warehouse.data_files import data_files
from rebalance_ledger.warehouse.fingerprint import fingerprint
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.maintenance import RetentionPolicy, maintain
from rebalance_ledger.warehouse.publish import publish
from rebalance_ledger.warehouse.rollback import rollback
from rebalance_ledger.warehouse.staging import attempt
from tests.support.computed_days import asked
from tests.support.staging_fixtures import MONDAY, TUESDAY, owners, stage_day

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rebalance_ledger.warehouse.maintenance import MaintenanceAction

NOW = datetime(2126, 1, 1, tzinfo=UTC)
NOTHING_IS_KEPT = RetentionPolicy(timedelta(0), timedelta(0), timedelta(0), timedelta(0))
A_MONTH_IS_KEPT = RetentionPolicy(
    timedelta(days=30), timedelta(days=36500), timedelta(days=36500), timedelta(days=30)
)


FEW_TABLES = (BROKER, QUEUE_ASSIGNMENT, BROADCAST_OFFSET, GATE_RESULT)


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Return a warehouse with Monday published twice and Tuesday once, and four tables per day."""
    made = Warehouse.at(str(tmp_path_factory.mktemp("made") / "warehouse"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(commits, "PUBLISHED_TABLES", FEW_TABLES)
        for ds, run_id, clients in [
            (MONDAY, "1", ["c1"]),
            (MONDAY, "2", ["c1", "c2"]),
            (TUESDAY, "3", ["c3"]),
        ]:
            stage_day(made, ds, run_id=run_id, queue_assignment=owners(*clients))
            publish(made, "shop", ds)
    return made


@pytest.fixture
def warehouse(made_once: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Return a copy of the warehouse for one test."""
    monkeypatch.setattr(commits, "PUBLISHED_TABLES", FEW_TABLES)
    return Warehouse.at(str(shutil.copytree(made_once.root, tmp_path / "warehouse")))


def contents(warehouse: Warehouse) -> list[object]:
    return list(fingerprint(warehouse.root, "shop", None))


def files(root: str) -> set[str]:
    return {str(path) for path in Path(root).rglob("*") if path.is_file() and "_delta_log" not in path.parts}


def times(warehouse: Warehouse) -> dict[str, int]:
    """Return path -> modification time of all files except the writers' lock."""
    return {
        path: Path(path).stat().st_mtime_ns
        for path in files(warehouse.root)
        if not path.endswith("/.publishing")
    }


def done(tidied: Iterable[MaintenanceAction], what: str) -> int:
    return sum(each.file_count for each in tidied if each.what == what)


def test_a_dry_run_names_everything_and_changes_nothing(warehouse: Warehouse) -> None:
    before = times(warehouse)

    output = maintain(warehouse, NOTHING_IS_KEPT, now=NOW, is_applied=False)

    assert done(output, "vacuum") > 0
    assert done(output, "stage") > 0
    assert times(warehouse) == before


def test_published_files_are_kept_even_if_the_clock_is_a_century_ahead(warehouse: Warehouse) -> None:
    before = contents(warehouse)

    output = maintain(warehouse, NOTHING_IS_KEPT, now=NOW, is_applied=True)

    assert done(output, "vacuum") > 0
    assert contents(warehouse) == before
    assert not list(Path(warehouse.root, "staging").glob("*/*"))
    assert maintain(warehouse, NOTHING_IS_KEPT, now=NOW, is_applied=True) == []
    stage_day(warehouse, MONDAY, run_id="4", queue_assignment=owners("c9"))
    publish(warehouse, "shop", MONDAY)
    assert asked(warehouse, "SELECT client_id FROM queue_assignment ORDER BY 1") == [("c3",), ("c9",)]


def test_a_rollback_is_possible_for_as_long_as_the_settings_say(warehouse: Warehouse) -> None:
    assert maintain(warehouse, A_MONTH_IS_KEPT, now=NOW, is_applied=True) == []

    rollback(warehouse, "shop", MONDAY, is_applied=True)

    assert asked(warehouse, "SELECT client_id FROM queue_assignment ORDER BY 1") == [("c1",), ("c3",)]


def test_files_of_a_killed_publisher_are_removed_and_never_visible(warehouse: Warehouse) -> None:
    before = contents(warehouse)
    place = warehouse.published(QUEUE_ASSIGNMENT)
    write_deltalake(place, DeltaTable(place).to_pyarrow_table().slice(0, 1), mode="append")
    Path(place, "data", "part-of-a-killed-one.parquet").write_bytes(b"half")

    maintain(warehouse, NOTHING_IS_KEPT, now=NOW, is_applied=True)

    assert contents(warehouse) == before
    assert not list(Path(place).rglob("part-of-a-killed-one.parquet"))


def test_a_day_in_many_files_becomes_one_and_readers_see_the_same(warehouse: Warehouse) -> None:
    place = warehouse.published(QUEUE_ASSIGNMENT)
    rows = DeltaTable(place).to_pyarrow_table(partitions=[("ds", "=", "2026-11-17")])
    predicate = "cluster = 'shop' AND ds = '2026-11-17'"
    write_deltalake(place, rows.slice(0, 0), mode="overwrite", predicate=predicate)
    for _ in range(9):
        write_deltalake(place, rows, mode="append")
    tables = commits.PublishedTables(warehouse)  # A publisher of a large day does this.
    tables.versions[QUEUE_ASSIGNMENT.qualified_name] = int(DeltaTable(place).version())
    tables.record_version(QUEUE_ASSIGNMENT)
    before = asked(warehouse, "SELECT * FROM queue_assignment ORDER BY ALL")

    output = maintain(warehouse, A_MONTH_IS_KEPT, now=NOW, is_applied=True)

    assert done(output, "merge") == 9
    assert len(data_files(DeltaTable(place))) == 2
    assert asked(warehouse, "SELECT * FROM queue_assignment ORDER BY ALL") == before
    assert maintain(warehouse, A_MONTH_IS_KEPT, now=NOW, is_applied=True) == []


def test_publishers_can_write_while_a_table_is_inspected(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = Path(warehouse.root, ".publishing")
    turns: list[str] = []

    def taking_a_turn(name: str) -> None:
        original = getattr(maintenance, name)

        def look(*given: Any, **named: Any) -> Any:
            if named.get("dry_run", True):
                with lock.open("w") as file:
                    fcntl.flock(
                        file, fcntl.LOCK_EX | fcntl.LOCK_NB
                    )  # It raises if maintenance holds the lock.
                turns.append(name)
            return original(*given, **named)

        monkeypatch.setattr(maintenance, name, look)

    taking_a_turn("_groups")
    taking_a_turn("_vacuum")

    assert done(maintain(warehouse, NOTHING_IS_KEPT, now=NOW, is_applied=True), "vacuum") > 0
    assert turns.count("_groups") == turns.count("_vacuum") > 1


def test_a_day_that_is_being_computed_keeps_its_stage(warehouse: Warehouse) -> None:
    with attempt(warehouse, "shop", MONDAY) as growing:
        maintain(warehouse, NOTHING_IS_KEPT, now=NOW, is_applied=True)

        assert Path(growing.root).is_dir()
        assert not Path(warehouse.attempts("shop", TUESDAY)).exists()


def test_a_folder_that_is_not_of_a_day_is_kept(warehouse: Warehouse) -> None:
    kept = [
        Path(warehouse.data_docs, "shop", "assets", "logo.png"),
        Path(warehouse.root, "staging", "shop", "notes", "to-do.txt"),
    ]
    for path in kept:
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (0, 0))

    maintain(warehouse, NOTHING_IS_KEPT, now=NOW, is_applied=True)

    assert all(path.exists() for path in kept)


def test_a_page_that_is_written_while_other_days_are_removed_is_kept(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [Path(warehouse.data_docs, "shop", ds, "index.html") for ds in ("2020-01-01", "2020-01-02")]
    for page in pages:
        page.parent.mkdir(parents=True)
        page.touch()
        os.utime(page, (0, 0))
    open_file_system = maintenance.file_system_of

    def write_other_page(place: str) -> Any:
        if place == str(pages[0].parent) and inspect.stack()[1].function == "_old_data_docs":
            pages[1].touch()
        return open_file_system(place)

    monkeypatch.setattr(maintenance, "file_system_of", write_other_page)
    a_month_of_pages = A_MONTH_IS_KEPT._replace(data_docs=timedelta(days=30))
    maintain(warehouse, a_month_of_pages, now=datetime.now(UTC), is_applied=True)

    assert [page.exists() for page in pages] == [False, True]


@pytest.mark.parametrize("years", [-30, 30])
def test_a_clock_that_jumped_while_the_day_was_written_changes_nothing(
    warehouse: Warehouse, years: int
) -> None:
    before = contents(warehouse)
    then = (datetime.now(UTC) + timedelta(days=365 * years)).timestamp()
    for path in [*files(warehouse.root), *Path(warehouse.root).rglob("_delta_log/*")]:
        os.utime(path, (then, then))

    assert contents(warehouse) == before
    maintain(warehouse, A_MONTH_IS_KEPT, now=datetime.now(UTC), is_applied=True)
    assert contents(warehouse) == before
    stage_day(warehouse, MONDAY, run_id="5", queue_assignment=owners("c7"))
    publish(warehouse, "shop", MONDAY)
    assert asked(warehouse, "SELECT client_id FROM queue_assignment ORDER BY 1") == [("c3",), ("c7",)]
