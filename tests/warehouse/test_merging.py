"""Maintenance merges the files of the days of a month; readers, republications and rollbacks do not notice it."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from rebalance_ledger.tables import GATE_RESULT, PUBLICATION, QUEUE_ASSIGNMENT
from rebalance_ledger.tables.silver.broker import BROKER
from rebalance_ledger.warehouse import commits, data_files, evolution, maintenance, snapshot
from rebalance_ledger.warehouse.baseline import newest_earlier_day
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.data_files import connect_reader
from rebalance_ledger.warehouse.errors import QueryError, WriteError
from rebalance_ledger.warehouse.fingerprint import fingerprint
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.maintenance import RetentionPolicy, maintain
from rebalance_ledger.warehouse.publish import publish, quarantine
from rebalance_ledger.warehouse.query import open_groups
from rebalance_ledger.warehouse.rollback import rollback
from rebalance_ledger.warehouse.snapshot import Snapshot
from tests.support.computed_days import asked
from tests.support.fault_injection import Strike
from tests.support.ledger_process import start_ledger
from tests.support.staging_fixtures import owners, result, stage_day

if TYPE_CHECKING:
    from rebalance_ledger.tables import Table

FEW_TABLES = (BROKER, QUEUE_ASSIGNMENT, GATE_RESULT)
NOW = datetime(2020, 11, 29, tzinfo=UTC)
KEPT = RetentionPolicy(*[timedelta(days=36500)] * 3, separate_days=timedelta(days=25))
WITHOUT_OLD_FILES = KEPT._replace(unreferenced=timedelta(0))
CLUSTERS = ("shop", "a'b=c/d %é")
FIRST, MISSING, LAST = date(2020, 10, 1), date(2020, 10, 4), date(2020, 10, 10)
OCTOBER = [FIRST + timedelta(days=number) for number in range(10) if number != 3]
NOVEMBER = [date(2020, 11, 1), date(2020, 11, 2)]
OWNERS = "SELECT cluster, ds::VARCHAR, client_id FROM queue_assignment ORDER BY ALL"


def publish_owners(warehouse: Warehouse, ds: date, *clients: str, cluster: str = "shop") -> tuple[str, ...]:
    stage_day(warehouse, ds, cluster, run_id=f"{ds} {clients}", queue_assignment=owners(*clients))
    return publish(warehouse, cluster, ds).changed_tables


def publish_days(warehouse: Warehouse) -> None:
    for cluster in CLUSTERS:
        for ds in (*OCTOBER, *NOVEMBER):
            publish_owners(warehouse, ds, f"{cluster}@{ds}", "both", cluster=cluster)


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Return a warehouse with two clusters, nine days of October and two of November, and three tables per day."""
    made = Warehouse.at(str(tmp_path_factory.mktemp("made") / "warehouse"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(commits, "PUBLISHED_TABLES", FEW_TABLES)
        publish_days(made)
    return made


@pytest.fixture
def warehouse(made_once: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Return a copy of the warehouse for one test."""
    monkeypatch.setattr(commits, "PUBLISHED_TABLES", FEW_TABLES)
    return Warehouse.at(str(shutil.copytree(made_once.root, tmp_path / "warehouse")))


def merge(warehouse: Warehouse, keep: RetentionPolicy = KEPT, *, is_applied: bool = True) -> dict[str, int]:
    """Maintain the warehouse; return the table, cluster and period -> file count of each merge."""
    return {
        action.place.removeprefix(f"{warehouse.root}/"): action.file_count
        for action in maintain(warehouse, keep, now=NOW, is_applied=is_applied)
        if action.what == "merge"
    }


def files_of(warehouse: Warehouse, table: Table, cluster: str = "shop") -> list[data_files.DataFile]:
    return data_files.data_files(DeltaTable(warehouse.published(table)), cluster=cluster)


def contents(warehouse: Warehouse) -> list[object]:
    return [list(fingerprint(warehouse.root, cluster)) for cluster in CLUSTERS]


def expected_merges() -> dict[str, int]:
    return {
        f"gold/{table} {cluster} 2020-10": 9
        for table in ("queue_assignment", "gate_result", "publication")
        for cluster in CLUSTERS
    }


def test_the_days_of_an_old_month_become_one_file_and_readers_see_the_same(warehouse: Warehouse) -> None:
    before, rows, days = contents(warehouse), asked(warehouse, OWNERS), Snapshot(warehouse.root).days

    assert merge(warehouse) == expected_merges()

    for table in (QUEUE_ASSIGNMENT, GATE_RESULT, PUBLICATION):
        for cluster in CLUSTERS:
            merged, *separate = sorted(files_of(warehouse, table, cluster), key=lambda file: file.first_ds)
            assert (merged.first_ds, merged.last_ds) == (FIRST, LAST)
            assert [file.first_ds for file in separate] == NOVEMBER
    assert contents(warehouse) == before
    assert asked(warehouse, OWNERS) == rows
    assert Snapshot(warehouse.root).days == days
    assert merge(warehouse) == {}


def test_a_version_that_many_publications_record_is_replaced_in_one_of_them(warehouse: Warehouse) -> None:
    # Without rows of `queue_assignment`, the version of this table stays.
    for number in range(3, 9):
        publish_owners(warehouse, date(2020, 11, number))
    before = recorded_versions(warehouse)
    assert [versions[QUEUE_ASSIGNMENT] for versions in before].count(22) == 7

    merge(warehouse, WITHOUT_OLD_FILES)

    after = recorded_versions(warehouse)
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1
    for table in (QUEUE_ASSIGNMENT, GATE_RESULT):
        newest = max(versions[table] for versions in after)
        place = warehouse.published(table)
        assert DeltaTable(place, version=newest).file_uris() == DeltaTable(place).file_uris()


def recorded_versions(warehouse: Warehouse) -> list[dict[Table, int]]:
    """Return the Delta version of each table in each row of `publication`, in the order of clusters and days."""
    rows = asked(warehouse, "SELECT tables FROM publication ORDER BY cluster, ds")
    tables = {table.qualified_name: table for table in FEW_TABLES}
    return [{tables[of["table_name"]]: of["delta_version"] for of in row} for [row] in rows]


def test_every_reader_of_a_merged_day_sees_only_this_day(warehouse: Warehouse) -> None:
    merge(warehouse, WITHOUT_OLD_FILES)
    snapshot = Snapshot(warehouse.root)
    day = ClusterDay(CLUSTERS[1], OCTOBER[4])
    expected = ["a'b=c/d %é@2020-10-06", "both"]
    table = snapshot.published(QUEUE_ASSIGNMENT)

    assert sorted(row["client_id"] for row in table.rows([day])) == expected
    with closing(connect_reader()) as reader:
        rows = table.rows_of(day, {"consumer_group": ["g"]}, ["client_id"], reader)
    assert sorted(rows["client_id"].to_pylist()) == expected
    text = "SELECT ds, consumer_group, client_id FROM queue_assignment ORDER BY client_id"
    with open_groups(snapshot, [text], ["g"], day) as tables:
        assert [row["client_id"] for row in tables.rows(text)] == expected
    baseline = newest_earlier_day(warehouse, day.cluster, OCTOBER[5], [QUEUE_ASSIGNMENT])
    assert baseline is not None
    assert (baseline.ds, len(baseline.files(QUEUE_ASSIGNMENT))) == (day.ds, 1)
    assert snapshot.named_contents(day)["gold.queue_assignment"].row_count == 2
    assert snapshot.row_counts()["gold.queue_assignment"][day] == 2


def test_a_dry_run_lists_the_merges_and_changes_nothing(warehouse: Warehouse) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(warehouse.root).rglob("*.*")}

    assert merge(warehouse, is_applied=False) == expected_merges()

    assert {path: path.stat().st_mtime_ns for path in Path(warehouse.root).rglob("*.*")} == before


def test_a_merge_is_no_change_of_data_in_the_log(warehouse: Warehouse) -> None:
    version = DeltaTable(warehouse.published(QUEUE_ASSIGNMENT)).version()
    merge(warehouse)

    log = Path(warehouse.published(QUEUE_ASSIGNMENT), "_delta_log", f"{version + 1:020}.json")
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    changes = [
        action[kind]["dataChange"] for action in actions for kind in ("add", "remove") if kind in action
    ]
    assert changes == [False] * 20
    assert DeltaTable(warehouse.published(QUEUE_ASSIGNMENT)).version() == version + 1


@pytest.mark.parametrize("ds", [OCTOBER[0], OCTOBER[5], OCTOBER[-1]])
def test_a_merged_day_can_be_published_again_and_rolled_back(warehouse: Warehouse, ds: date) -> None:
    before = asked(warehouse, OWNERS)
    merge(warehouse)

    assert "gold.queue_assignment" in publish_owners(warehouse, ds, "new")

    expected = [row for row in before if row[:2] != ("shop", f"{ds}")] + [("shop", f"{ds}", "new")]
    assert asked(warehouse, OWNERS) == sorted(expected)
    assert all(row.is_as_published for row in fingerprint(warehouse.root, "shop"))
    rollback(warehouse, "shop", ds, is_applied=True)
    assert asked(warehouse, OWNERS) == before
    assert all(row.is_as_published for row in fingerprint(warehouse.root, "shop"))


def test_a_day_without_a_change_leaves_the_merged_file(warehouse: Warehouse) -> None:
    merge(warehouse)
    before = files_of(warehouse, QUEUE_ASSIGNMENT)

    assert publish_owners(warehouse, FIRST, f"shop@{FIRST}", "both") == ()

    assert files_of(warehouse, QUEUE_ASSIGNMENT) == before


def test_a_missing_day_is_added_beside_the_merged_file(warehouse: Warehouse) -> None:
    merge(warehouse)
    before = files_of(warehouse, QUEUE_ASSIGNMENT)

    publish_owners(warehouse, MISSING, "late")

    after = files_of(warehouse, QUEUE_ASSIGNMENT)
    assert set(before) < set(after)
    assert len(after) == len(before) + 1
    assert ("shop", f"{MISSING}", "late") in asked(warehouse, OWNERS)


def run_ledger(words: list[str], strike: Strike | None = None) -> int:
    """Run `ledger` to its end; return its exit code."""
    process = start_ledger(words, strike)
    process.communicate()
    return process.returncode


BEFORE_THE_RECORD = [
    Strike("rebalance_ledger.warehouse.commits:write_to_table", 2, "after"),
    *(
        Strike("rebalance_ledger.warehouse.commits:_commit_files", nth, moment)
        for nth, moment in [(1, "before"), (2, "after")]
    ),
]


@pytest.mark.e2e
def test_the_next_writer_reverts_a_killed_merge(warehouse: Warehouse) -> None:
    before = contents(warehouse)
    words = ["maintain", "--apply", f"--warehouse={warehouse.root}"]
    for strike in BEFORE_THE_RECORD:
        assert run_ledger(words, strike) == -SIGKILL
        assert contents(warehouse) == before, strike

    publish_owners(warehouse, NOVEMBER[0], "after")
    publish_owners(warehouse, NOVEMBER[0], f"shop@{NOVEMBER[0]}", "both")

    assert asked(warehouse, "SELECT count(*) FROM queue_assignment") == [(44,)]
    assert run_ledger(words) == 0
    assert contents(warehouse) == before
    for table in (QUEUE_ASSIGNMENT, GATE_RESULT, PUBLICATION):
        assert len(files_of(warehouse, table)) == 3


@pytest.mark.e2e
@pytest.mark.parametrize(
    "strike",
    [
        Strike("rebalance_ledger.warehouse.commits:replace_day", 1, "after"),
        Strike("rebalance_ledger.warehouse.maintenance:_vacuumed", 1, "before"),
    ],
    ids=str,
)
def test_a_maintenance_that_is_killed_after_its_merges_has_merged(
    warehouse: Warehouse, strike: Strike
) -> None:
    before = contents(warehouse)

    assert run_ledger(["maintain", "--apply", f"--warehouse={warehouse.root}"], strike) == -SIGKILL

    assert contents(warehouse) == before
    assert len(files_of(warehouse, QUEUE_ASSIGNMENT)) == 3
    publish_owners(warehouse, NOVEMBER[0], "after")
    assert ("shop", f"{NOVEMBER[0]}", "after") in asked(warehouse, OWNERS)


@pytest.mark.e2e
def test_a_merged_day_whose_publication_is_killed_is_visible_as_before_or_completely(
    warehouse: Warehouse,
) -> None:
    before = asked(warehouse, OWNERS)
    merge(warehouse)
    stage_day(warehouse, FIRST, run_id="new", queue_assignment=owners("new"))
    words = ["step", "publish", "--cluster=shop", f"--ds={FIRST}", f"--warehouse={warehouse.root}"]

    for call in ("write_to_table", "give_to_table", "replace_day"):
        strike = Strike(f"rebalance_ledger.warehouse.commits:{call}", 1, "after")
        assert run_ledger(words, strike) == -SIGKILL
        assert asked(warehouse, OWNERS) == before

    assert run_ledger(words) == 0
    assert asked(warehouse, OWNERS) == sorted([*before[:-22], ("shop", f"{FIRST}", "new"), *before[-20:]])


def test_a_damaged_file_of_many_days_is_named_and_nothing_is_lost(warehouse: Warehouse) -> None:
    merge(warehouse)
    [merged] = [file for file in files_of(warehouse, QUEUE_ASSIGNMENT) if not file.day]
    place = Path(warehouse.published(QUEUE_ASSIGNMENT), merged.path)
    whole = place.read_bytes()
    place.write_bytes(whole[:100])

    with pytest.raises(WriteError, match=rf"{place.name} cannot be read .* it has rows of other days too"):
        publish_owners(warehouse, FIRST, "new")

    place.write_bytes(whole)
    assert ("shop", f"{FIRST}", "both") in asked(warehouse, OWNERS)


def test_a_damaged_file_of_one_day_is_named_by_the_maintenance(warehouse: Warehouse) -> None:
    before = files_of(warehouse, QUEUE_ASSIGNMENT)
    [first] = [file for file in before if file.first_ds == FIRST]
    place = Path(warehouse.published(QUEUE_ASSIGNMENT), first.path)
    place.chmod(0o600)
    place.write_bytes(place.read_bytes()[:100])

    with pytest.raises(WriteError, match=rf"{place.name} cannot be read .* or publish its day again"):
        merge(warehouse)

    assert files_of(warehouse, QUEUE_ASSIGNMENT) == before


def test_few_files_new_months_and_large_files_are_not_merged(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert merge(warehouse, KEPT._replace(separate_days=timedelta(days=29))) == {}
    size = max(file.size_bytes for file in files_of(warehouse, QUEUE_ASSIGNMENT))
    with monkeypatch.context() as patched:
        patched.setattr(maintenance, "_SMALL_BYTES", 1)
        assert merge(warehouse) == {}
    monkeypatch.setattr(maintenance, "_MERGED_BYTES", size * 5)
    monkeypatch.setattr(maintenance, "_MANY_FILES", 5)

    merges = merge(warehouse)

    assert merges["gold/queue_assignment shop 2020-10"] == 5
    assert len(files_of(warehouse, QUEUE_ASSIGNMENT)) == 1 + 4 + 2


def test_tables_of_earlier_releases_keep_a_file_for_each_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables were partitioned by cluster and ds until November 2026."""
    monkeypatch.setattr(commits, "PUBLISHED_TABLES", FEW_TABLES)
    warehouse = Warehouse.at(str(tmp_path / "warehouse"))
    with monkeypatch.context() as patched:
        patched.setattr(commits, "PARTITION_COLUMNS", evolution._EARLIER_PARTITION_COLUMNS)
        for ds in OCTOBER:
            publish_owners(warehouse, ds, "x", cluster=CLUSTERS[1])
    for ds in NOVEMBER:
        publish_owners(warehouse, ds, "x", cluster=CLUSTERS[1])
    publish_owners(warehouse, FIRST, "y", "z", cluster=CLUSTERS[1])

    assert merge(warehouse) == {}

    assert [row[1:] for row in asked(warehouse, OWNERS)[:3]] == [
        ("2020-10-01", "y"),
        ("2020-10-01", "z"),
        ("2020-10-02", "x"),
    ]
    assert len(files_of(warehouse, QUEUE_ASSIGNMENT, CLUSTERS[1])) == 11
    assert all(row.is_as_published for row in fingerprint(warehouse.root, CLUSTERS[1]))


def test_a_refused_day_is_replaced_and_leaves_the_quarantine_when_it_is_published(
    warehouse: Warehouse,
) -> None:
    for cluster, ds in ((CLUSTERS[1], FIRST), (CLUSTERS[1], LAST), ("shop", FIRST)):
        quarantine(warehouse, cluster, ds, [result(is_success=False)])
    quarantine(warehouse, CLUSTERS[1], FIRST, [result(is_success=False)] * 2)
    publish_owners(warehouse, FIRST, "c", cluster=CLUSTERS[1])

    assert asked(warehouse, "SELECT cluster, ds::VARCHAR FROM quarantine.gate_result ORDER BY ALL") == [
        (CLUSTERS[1], "2020-10-10"),
        ("shop", "2020-10-01"),
    ]


def test_rows_in_memory_are_those_of_the_days_before_and_after_a_merge(warehouse: Warehouse) -> None:
    days = {ClusterDay("shop", day) for day in (OCTOBER[0], OCTOBER[-1], NOVEMBER[0])}

    def rows() -> list[dict[str, Any]] | None:
        in_memory = Snapshot(warehouse.root).published(QUEUE_ASSIGNMENT).in_memory(days)
        return in_memory and in_memory.sort_by([("ds", "ascending"), ("client_id", "ascending")]).to_pylist()

    separate = rows()
    assert separate is not None
    assert [row["client_id"] for row in separate[::2]] == ["both"] * 3
    assert {row["ds"] for row in separate} == {day.ds for day in days}

    assert merge(warehouse)

    assert rows() == separate == rows()


def test_a_file_is_read_into_memory_once_while_there_is_room(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = Snapshot(warehouse.root).published(QUEUE_ASSIGNMENT)
    day = {ClusterDay("shop", OCTOBER[0])}
    read = published.in_memory(day)
    (file,) = published.file_uris(day)
    Path(file).unlink()

    assert published.in_memory(day) == read
    monkeypatch.setattr(data_files, "_MOST_REMEMBERED_BYTES", 0)
    assert published.in_memory(day) == read
    with pytest.raises(QueryError, match=Path(file).name):
        published.in_memory(day)
    monkeypatch.setattr(snapshot, "_MOST_ROWS_IN_MEMORY", 1)
    assert published.in_memory(day) is None
