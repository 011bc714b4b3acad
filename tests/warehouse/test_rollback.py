"""A rollback restores the previous publication of a day in all tables at once, or changes nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from rebalance_ledger.tables import ASSIGNMENT_FAIRNESS, GATE_RESULT, PUBLICATION, QUEUE_ASSIGNMENT
from rebalance_ledger.tables.silver.broker import BROKER
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.errors import RollbackError
from rebalance_ledger.warehouse.fingerprint import fingerprint
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from rebalance_ledger.warehouse.rollback import rollback
from tests.support.command_line import ledger
from tests.support.computed_days import asked, published_state
from tests.support.staging_fixtures import MONDAY, TUESDAY, owners, stage_day

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

FEW_TABLES = (BROKER, QUEUE_ASSIGNMENT, ASSIGNMENT_FAIRNESS, GATE_RESULT)
RUNS_SEEN = """
    SELECT list(DISTINCT run_id ORDER BY run_id) FROM (
        SELECT run_id FROM publication WHERE ds = '2026-11-16'
        UNION ALL SELECT client_id FROM queue_assignment WHERE ds = '2026-11-16'
        UNION ALL SELECT topic FROM assignment_fairness WHERE ds = '2026-11-16'
        UNION ALL SELECT broker_name FROM broker WHERE ds = '2026-11-16'
        UNION ALL SELECT run_id FROM gate_result WHERE ds = '2026-11-16'
    )"""


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Return a warehouse with only four tables per day: all tables are rolled back in the same way, and each takes time."""
    monkeypatch.setattr(commits, "PUBLISHED_TABLES", FEW_TABLES)
    return Warehouse.at(str(tmp_path / "warehouse"))


def publish_run(warehouse: Warehouse, run_id: str, ds: date = MONDAY, cluster: str = "shop") -> None:
    """Publish a day in which each table contains the run id."""
    stage_day(
        warehouse,
        ds,
        cluster,
        run_id=run_id,
        queue_assignment=owners(run_id),
        assignment_fairness=[{"topic": run_id}],
        broker=[{"broker_name": run_id}],
    )
    publish(warehouse, cluster, ds)


def runs_seen(warehouse: Warehouse) -> list[str]:
    """Return the runs whose rows a reader of Monday sees in any table."""
    [(runs,)] = asked(warehouse, RUNS_SEEN)
    return list(runs)


def contents(warehouse: Warehouse) -> set[Any]:
    return set(fingerprint(warehouse.root, "shop"))


def test_a_day_is_restored_in_every_table(warehouse: Warehouse) -> None:
    publish_run(warehouse, "run-1")
    publish_run(warehouse, "run-1", TUESDAY)
    publish_run(warehouse, "run-1", MONDAY, "pay")
    before = contents(warehouse)
    publish_run(warehouse, "run-2")
    assert contents(warehouse) != before

    done = rollback(warehouse, "shop", MONDAY, is_applied=True)

    assert contents(warehouse) == before
    assert runs_seen(warehouse) == ["run-1"]
    assert (done.withdrawn_run_id, done.restored_run_id) == ("run-2", "run-1")
    assert set(done.row_counts) == {table.qualified_name for table in FEW_TABLES}


def test_the_publication_records_what_was_rolled_back_and_its_version(warehouse: Warehouse) -> None:
    publish_run(warehouse, "run-1")
    publish_run(warehouse, "run-2")

    rollback(warehouse, "shop", MONDAY, is_applied=True)

    [(run_id, withdrawn, version)] = asked(
        warehouse, "SELECT run_id, withdrawn_run_id, withdrawn_version FROM publication"
    )
    assert (run_id, withdrawn) == ("run-1", "run-2")
    [row] = DeltaTable(warehouse.published(PUBLICATION), version=version).to_pyarrow_table().to_pylist()
    assert row["run_id"] == "run-2"


def test_each_further_rollback_goes_one_publication_further_back(warehouse: Warehouse) -> None:
    for run_id in ("run-1", "run-2", "run-3"):
        publish_run(warehouse, run_id)

    for run_id in ("run-2", "run-1"):
        rollback(warehouse, "shop", MONDAY, is_applied=True)
        assert runs_seen(warehouse) == [run_id]

    before = published_state(warehouse)
    with pytest.raises(RollbackError, match=r"^shop 2026-11-16 has no earlier publication than run run-1: "):
        rollback(warehouse, "shop", MONDAY, is_applied=True)
    assert published_state(warehouse) == before


def test_a_run_after_a_rollback_publishes_again_and_can_be_rolled_back(warehouse: Warehouse) -> None:
    for run_id in ("run-1", "run-2"):
        publish_run(warehouse, run_id)
    rollback(warehouse, "shop", MONDAY, is_applied=True)

    publish_run(warehouse, "run-2")
    assert runs_seen(warehouse) == ["run-2"]
    assert asked(warehouse, "SELECT withdrawn_run_id FROM publication") == [(None,)]

    rollback(warehouse, "shop", MONDAY, is_applied=True)
    assert runs_seen(warehouse) == ["run-1"]


def test_a_run_that_computes_the_restored_rows_leaves_nothing_to_roll_back(warehouse: Warehouse) -> None:
    for run_id in ("run-1", "run-2"):
        publish_run(warehouse, run_id)
    rollback(warehouse, "shop", MONDAY, is_applied=True)

    publish_run(warehouse, "run-1")

    assert asked(warehouse, "SELECT withdrawn_run_id FROM publication") == [(None,)]
    with pytest.raises(RollbackError, match="has no earlier publication"):
        rollback(warehouse, "shop", MONDAY, is_applied=True)


def test_an_unchanged_rerun_is_no_rollback_target(warehouse: Warehouse) -> None:
    for run_id in ("run-1", "run-2", "run-2"):
        publish_run(warehouse, run_id)

    rollback(warehouse, "shop", MONDAY, is_applied=True)

    assert runs_seen(warehouse) == ["run-1"]


def test_a_dry_run_prints_the_same_and_changes_nothing(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_run(warehouse, "run-1")
    stage_day(warehouse, run_id="run-2", queue_assignment=owners("a", "b"))
    publish(warehouse, "shop", MONDAY)
    before = published_state(warehouse)
    command = ("rollback", "--cluster=shop", "--ds=2026-11-16", f"--warehouse={warehouse.root}")

    assert ledger(*command, "--dry-run") == 0
    assert "gold.queue_assignment: 2 rows become 1\n" in capsys.readouterr().out
    assert published_state(warehouse) == before

    assert ledger(*command) == 0
    output = capsys.readouterr().out.splitlines()
    assert output[-1] == "shop 2026-11-16 is rolled back to run run-1; run run-2 is withdrawn."
    assert runs_seen(warehouse) == ["run-1"]

    assert ledger(*command) == 2


@pytest.mark.parametrize("table", [QUEUE_ASSIGNMENT, GATE_RESULT, PUBLICATION], ids=lambda table: table.name)
def test_a_day_whose_earlier_files_were_removed_is_unchanged(warehouse: Warehouse, table: Any) -> None:
    publish_run(warehouse, "run-1")
    publish_run(warehouse, "run-2")
    DeltaTable(warehouse.published(table)).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False
    )
    before = published_state(warehouse)

    with pytest.raises(RollbackError, match=rf"is gone: gold\.{table.name} cannot be read at version \d+"):
        rollback(warehouse, "shop", MONDAY, is_applied=True)

    assert published_state(warehouse) == before
    assert runs_seen(warehouse) == ["run-2"]


def test_an_unpublished_day_cannot_be_rolled_back(warehouse: Warehouse) -> None:
    with pytest.raises(RollbackError, match=r"^shop 2026-11-16 is not published in "):
        rollback(warehouse, "shop", MONDAY, is_applied=True)


class _KilledError(Exception):
    """Simulates the end of the process."""


@pytest.mark.parametrize("writes_before", range(len(FEW_TABLES) + 1))
def test_readers_see_the_complete_day_when_a_rollback_is_killed(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, writes_before: int
) -> None:
    publish_run(warehouse, "run-1")
    before = contents(warehouse)
    publish_run(warehouse, "run-2")
    replace = commits.replace_day
    writes = iter(range(1000))

    def dying(*arguments: Any) -> int:
        if next(writes) == writes_before:
            raise _KilledError
        return replace(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(commits, "replace_day", dying)
        with pytest.raises(_KilledError):
            rollback(warehouse, "shop", MONDAY, is_applied=True)

    assert runs_seen(warehouse) == ["run-2"]
    publish_run(warehouse, "run-2", TUESDAY)
    assert runs_seen(warehouse) == ["run-2"]
    rollback(warehouse, "shop", MONDAY, is_applied=True)
    assert {line for line in contents(warehouse) if line.ds == MONDAY} == before


def test_a_reader_beside_publications_and_rollbacks_never_sees_two_runs(warehouse: Warehouse) -> None:
    publish_run(warehouse, "run-1")
    is_over = threading.Event()
    failures: list[BaseException] = []

    def change() -> None:
        try:
            for _ in range(4):
                publish_run(warehouse, "run-2")
                rollback(warehouse, "shop", MONDAY, is_applied=True)
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            failures.append(error)
        finally:
            is_over.set()

    changing = threading.Thread(target=change)
    changing.start()
    seen = []
    while not is_over.is_set():
        seen.append(tuple(runs_seen(warehouse)))
    changing.join()

    assert failures == []
    assert set(seen) == {("run-1",), ("run-2",)}
