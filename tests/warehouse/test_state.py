"""The Delta log of `publication` records the visible state, so no publication depends on earlier ones."""

from __future__ import annotations

import shutil
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from rebalance_ledger.pipeline.outdated import stale_days
from rebalance_ledger.tables import GATE_RESULT, PUBLICATION, QUEUE_ASSIGNMENT
from rebalance_ledger.tables.silver.broker import BROKER
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.commits import PUBLISHED_TABLES, last_checkpoint
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.maintenance import RetentionPolicy, maintain
from rebalance_ledger.warehouse.publish import publish
from rebalance_ledger.warehouse.query import names_all_days
from rebalance_ledger.warehouse.rollback import rollback
from rebalance_ledger.warehouse.state import State, read_state
from tests.support.computed_days import asked, published_state
from tests.support.staging_fixtures import MONDAY, TUESDAY, owners, stage_day

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

ARCHIVE = Path(__file__).parent / "data" / "older_release" / "older_release.tar.gz"
FEW_TABLES = (BROKER, QUEUE_ASSIGNMENT, GATE_RESULT)
NOTHING_IS_KEPT = RetentionPolicy(timedelta(0), timedelta(0), timedelta(0), timedelta(0))
OWNERS = "SELECT cluster, ds::VARCHAR, client_id FROM queue_assignment ORDER BY ALL"


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Return a warehouse with three tables per day, and a published Monday with one broker."""
    monkeypatch.setattr(commits, "PUBLISHED_TABLES", FEW_TABLES)
    made = Warehouse.at(str(tmp_path / "warehouse"))
    publish_owners(made, MONDAY, "c1", brokers=["b"])
    return made


def publish_owners(
    warehouse: Warehouse, ds: date, *clients: str, cluster: str = "shop", brokers: Sequence[str] = ()
) -> tuple[str, ...]:
    """Publish a day with an owner for each queue; return the tables that were written."""
    broker_rows: list[dict[str, Any]] = [{"broker_name": name} for name in brokers]
    stage_day(warehouse, ds, cluster, queue_assignment=owners(*clients), broker=broker_rows)
    return publish(warehouse, cluster, ds).changed_tables


def state(warehouse: Warehouse) -> State:
    return read_state(DeltaTable(warehouse.published(PUBLICATION)), commits.PUBLISHED_TABLES)


def versions(warehouse: Warehouse) -> dict[str, int]:
    """Return the newest version of each table except `publication`."""
    return {
        table.qualified_name: DeltaTable(warehouse.published(table)).version()
        for table in commits.PUBLISHED_TABLES
    }


def hide_table(warehouse: Warehouse, hidden: Path) -> None:
    """Move the broker table away: opening it fails, and creating it leaves a second table."""
    shutil.move(warehouse.published(BROKER), hidden)


def test_each_publication_records_the_versions_of_all_tables(warehouse: Warehouse) -> None:
    assert state(warehouse).is_current
    assert state(warehouse).versions == versions(warehouse)

    publish_owners(warehouse, TUESDAY, "c2")

    assert state(warehouse).is_current
    assert state(warehouse).versions == versions(warehouse)


def test_a_table_without_rows_of_the_day_is_neither_written_nor_opened(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    before = versions(warehouse)[BROKER.qualified_name]
    hide_table(warehouse, tmp_path / "hidden")

    assert publish_owners(warehouse, TUESDAY, "c2") == ("gold.queue_assignment", "gold.gate_result")

    assert not Path(warehouse.published(BROKER)).exists()
    shutil.move(tmp_path / "hidden", warehouse.published(BROKER))
    assert versions(warehouse)[BROKER.qualified_name] == before
    assert asked(warehouse, "SELECT ds::VARCHAR, broker_name FROM broker") == [("2026-11-16", "b")]


def test_a_publication_reads_no_row_of_another_day(warehouse: Warehouse) -> None:
    for file in Path(warehouse.published(PUBLICATION)).rglob("*.parquet"):
        file.unlink()

    publish_owners(warehouse, MONDAY, "c2", cluster="pay")

    assert asked(warehouse, "SELECT cluster, client_id FROM latest.queue_assignment ORDER BY ALL") == [
        ("pay", "c2"),
        ("shop", "c1"),
    ]
    assert stale_days(warehouse, "pay") == ()


def test_the_state_of_an_older_release_is_read_from_its_rows_and_recorded_by_the_next_publication(
    tmp_path: Path,
) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    older = Warehouse.at(str(tmp_path / "warehouse"))
    assert state(older) == State({}, is_current=False, definitions=None)
    before = asked(older, OWNERS)
    assert before

    stage_day(older, MONDAY, "other", queue_assignment=owners("c1"))
    publish(older, "other", MONDAY)

    assert state(older).is_current
    assert state(older).versions == versions(older)
    assert set(state(older).versions) == {table.qualified_name for table in PUBLISHED_TABLES}
    assert [row for row in asked(older, OWNERS) if row[0] != "other"] == before


def test_a_day_published_by_a_release_without_the_record_is_visible_and_kept(warehouse: Warehouse) -> None:
    publish_owners(warehouse, TUESDAY, "c2")
    # That release commits like this: the rows name the versions, and the log records nothing.
    day = ClusterDay("pay", MONDAY)
    place = warehouse.published(QUEUE_ASSIGNMENT)
    delta = DeltaTable(place)
    [row] = delta.to_pyarrow_table(filters=[("ds", "=", TUESDAY)]).to_pylist()
    rows = commits.rows_of(
        QUEUE_ASSIGNMENT, "pay", MONDAY, [row | {"cluster": "pay", "ds": MONDAY, "client_id": "c3"}]
    )
    commits.replace_day(delta, place, QUEUE_ASSIGNMENT, day, rows)
    tables = commits.PublishedTables(warehouse)
    [record] = tables.publications(ClusterDay("shop", TUESDAY))
    for named in record["tables"]:
        named["delta_version"] = versions(warehouse)[named["table_name"]]
    place = warehouse.published(PUBLICATION)
    rows = commits.rows_of(PUBLICATION, "pay", MONDAY, [record])
    commits.replace_day(tables.publication, place, PUBLICATION, day, rows)
    everything = [("pay", "2026-11-16", "c3"), ("shop", "2026-11-16", "c1"), ("shop", "2026-11-17", "c2")]
    assert not state(warehouse).is_current
    assert asked(warehouse, OWNERS) == everything

    publish_owners(warehouse, TUESDAY, "c4")

    assert state(warehouse).is_current
    assert asked(warehouse, OWNERS) == [*everything[:2], ("shop", "2026-11-17", "c4")]


def test_a_rollback_records_the_state(warehouse: Warehouse) -> None:
    stage_day(warehouse, MONDAY, run_id="run-2", queue_assignment=owners("c9"))
    publish(warehouse, "shop", MONDAY)

    rollback(warehouse, "shop", MONDAY, is_applied=True)

    assert state(warehouse).is_current
    assert state(warehouse).versions == versions(warehouse)
    assert asked(warehouse, OWNERS) == [("shop", "2026-11-16", "c1")]


def test_maintenance_records_the_state_that_it_leaves(warehouse: Warehouse, tmp_path: Path) -> None:
    publish_owners(warehouse, MONDAY, "c2", "c3", brokers=["b2"])

    assert maintain(warehouse, NOTHING_IS_KEPT, now=datetime(2126, 1, 1, tzinfo=UTC), is_applied=True)

    assert state(warehouse).is_current
    assert state(warehouse).versions == versions(warehouse)
    before = published_state(warehouse)
    assert maintain(warehouse, NOTHING_IS_KEPT, now=datetime(2126, 1, 1, tzinfo=UTC), is_applied=True) == []
    assert published_state(warehouse) == before
    hide_table(warehouse, tmp_path / "hidden")
    assert publish_owners(warehouse, TUESDAY, "c4") == ("gold.queue_assignment", "gold.gate_result")
    assert not Path(warehouse.published(BROKER)).exists()


def test_the_state_outlives_checkpoints_and_the_commits_before_them(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "COMMITS_PER_CHECKPOINT", 2)
    for clients in (["c2"], ["c3"], ["c4"]):
        publish_owners(warehouse, TUESDAY, *clients)
    place = warehouse.published(PUBLICATION)
    version = last_checkpoint(place)
    assert version > 0
    assert last_checkpoint(warehouse.published(QUEUE_ASSIGNMENT)) > 0
    for number in range(version + 1):
        Path(place, "_delta_log", f"{number:020}.json").unlink()

    assert state(warehouse).versions == versions(warehouse)
    publish_owners(warehouse, TUESDAY, "c5")
    assert state(warehouse).is_current
    assert asked(warehouse, OWNERS) == [("shop", "2026-11-16", "c1"), ("shop", "2026-11-17", "c5")]


class _KilledError(Exception):
    """Simulates the end of the process."""


def test_commits_of_a_killed_publisher_get_no_checkpoint_and_are_undone(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "COMMITS_PER_CHECKPOINT", 0)
    before = last_checkpoint(warehouse.published(QUEUE_ASSIGNMENT))

    def killed(*_: object) -> None:
        raise _KilledError

    stage_day(warehouse, MONDAY, run_id="run-2", queue_assignment=owners("c9"))
    with monkeypatch.context() as patched:
        patched.setattr(commits.PublishedTables, "record", killed)
        with pytest.raises(_KilledError):
            publish(warehouse, "shop", MONDAY)
    assert last_checkpoint(warehouse.published(QUEUE_ASSIGNMENT)) == before
    assert asked(warehouse, OWNERS) == [("shop", "2026-11-16", "c1")]

    publish_owners(warehouse, TUESDAY, "c2")

    assert asked(warehouse, OWNERS) == [("shop", "2026-11-16", "c1"), ("shop", "2026-11-17", "c2")]
    assert state(warehouse).versions == versions(warehouse)
    assert last_checkpoint(warehouse.published(QUEUE_ASSIGNMENT)) > before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM latest.finding", False),
        ('SELECT * FROM "latest" . "finding" JOIN previous.Finding USING (ds)', False),
        ("SELECT * FROM finding", True),
        ("SELECT * FROM latest.finding JOIN finding USING (ds)", True),
        ("SELECT * FROM latest.topic_route WHERE ds IN (SELECT ds FROM gold.FINDING)", True),
        ("SHOW TABLES", True),
        ("SELECT * FROM other_latest.finding", True),
    ],
)
def test_files_of_all_days_are_listed_only_for_queries_that_may_read_them(
    text: str, *, expected: bool
) -> None:
    assert names_all_days(text, {"finding", "topic_route"}) is expected
