"""An evaluated day is published completely or not at all, and publishing it again changes nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, write_deltalake

from rebalance_ledger.tables import (
    ALL_TABLES,
    ASSIGNMENT_FAIRNESS,
    GATE_RESULT,
    PUBLICATION,
    QUEUE_ASSIGNMENT,
)
from rebalance_ledger.tables.silver.broker import BROKER
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.commits import PUBLISHED_TABLES
from rebalance_ledger.warehouse.errors import NoWarehouseError, StagingError, WriteError
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish, quarantine
from tests.support.computed_days import asked, published_state
from tests.support.staging_fixtures import MONDAY, TUESDAY, owners, result, stage_day

if TYPE_CHECKING:
    from collections.abc import Callable

ASSIGNMENTS = "SELECT ds::VARCHAR, queue_id, client_id FROM queue_assignment ORDER BY ALL"


FEW_TABLES = (BROKER, QUEUE_ASSIGNMENT, ASSIGNMENT_FAIRNESS, GATE_RESULT)


@pytest.fixture
def whole_warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.at(str(tmp_path / "warehouse"))


@pytest.fixture
def warehouse(whole_warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Return a warehouse with only four tables per day: all tables are published in the same way, and each takes time."""
    monkeypatch.setattr(commits, "PUBLISHED_TABLES", FEW_TABLES)
    return whole_warehouse


def published_days(warehouse: Warehouse) -> list[tuple[str, str, int]]:
    """Return the cluster, day and number of assignments of each publication that a reader sees."""
    return asked(
        warehouse,
        "SELECT p.cluster, p.ds::VARCHAR, count(a.queue_id) FROM publication p "
        "LEFT JOIN queue_assignment a USING (cluster, ds) GROUP BY ALL ORDER BY ALL",
    )


def test_a_published_day_equals_the_staged_day(whole_warehouse: Warehouse) -> None:
    stage_day(
        whole_warehouse, queue_assignment=owners("c1", "c2"), assignment_fairness=[{"jain_index": 0.1 + 0.2}]
    )

    publication = publish(whole_warehouse, "shop", MONDAY)

    assert publication.run_id == "run-1"
    assert publication.row_count == 4
    assert set(publication.changed_tables) == {table.qualified_name for table in PUBLISHED_TABLES}
    assert asked(whole_warehouse, ASSIGNMENTS) == [("2026-11-16", 0, "c1"), ("2026-11-16", 1, "c2")]
    assert asked(whole_warehouse, "SELECT jain_index FROM assignment_fairness") == [(0.1 + 0.2,)]
    assert asked(
        whole_warehouse,
        "SELECT run_id, manifest_sha256, settings_sha256, code_version, gate_verdict FROM publication",
    ) == [("run-1", "m", "s", "c", "passed")]


def test_the_publication_names_every_table_with_its_version_and_count(whole_warehouse: Warehouse) -> None:
    stage_day(whole_warehouse, queue_assignment=owners("c1", "c2"))
    publish(whole_warehouse, "shop", MONDAY)

    [(tables,)] = asked(whole_warehouse, "SELECT tables FROM publication")

    assert [row["table_name"] for row in tables] == [table.qualified_name for table in PUBLISHED_TABLES]
    counts = {row["table_name"]: row["row_count"] for row in tables}
    assert (counts["gold.queue_assignment"], counts["gold.gate_result"], counts["silver.broker"]) == (2, 1, 0)
    versions = {row["table_name"]: row["delta_version"] for row in tables}
    assert versions == {
        name: version
        for name, (version, _) in published_state(whole_warehouse).items()
        if name != "gold.publication"
    }


def test_published_tables_are_partitioned_and_have_column_comments(whole_warehouse: Warehouse) -> None:
    stage_day(whole_warehouse, queue_assignment=owners("c1"))
    publish(whole_warehouse, "shop", MONDAY)

    for table in ALL_TABLES:
        delta = DeltaTable(whole_warehouse.published(table))
        assert delta.metadata().partition_columns == ["cluster"]
        assert {field.name: field.metadata["comment"] for field in delta.schema().fields} == {
            column.name: column.comment for column in table.all_columns
        }


def test_a_rerun_changes_no_row_and_no_version(warehouse: Warehouse) -> None:
    stage_day(warehouse, queue_assignment=owners("c1", "c2"))
    publish(warehouse, "shop", MONDAY)
    before = published_state(warehouse)

    stage_day(warehouse, queue_assignment=owners("c1", "c2"))
    publication = publish(warehouse, "shop", MONDAY)

    assert publication.changed_tables == ()
    assert published_state(warehouse) == before


def test_rows_in_another_order_are_the_same_rows(warehouse: Warehouse) -> None:
    stage_day(warehouse, queue_assignment=owners("c1", "c2", "c3"))
    publish(warehouse, "shop", MONDAY)

    stage_day(warehouse, queue_assignment=owners("c1", "c2", "c3")[::-1])

    assert publish(warehouse, "shop", MONDAY).changed_tables == ()


@pytest.mark.parametrize(
    "changed",
    [owners("c1", "c3"), owners("c1"), owners("c1", "c2", "c2"), [*owners("c1", "c2"), owners("c1")[0]]],
    ids=["another owner", "a row less", "a row more", "a row twice"],
)
def test_only_the_table_that_changed_is_written(warehouse: Warehouse, changed: list[dict[str, Any]]) -> None:
    stage_day(warehouse, queue_assignment=owners("c1", "c2"), broker=[{"broker_name": "b"}])
    publish(warehouse, "shop", MONDAY)
    before = published_state(warehouse)

    stage_day(warehouse, queue_assignment=changed, broker=[{"broker_name": "b"}])
    publication = publish(warehouse, "shop", MONDAY)

    after = published_state(warehouse)
    assert publication.changed_tables == ("gold.queue_assignment",)
    assert {name for name in after if after[name] != before[name]} == {
        "gold.queue_assignment",
        "gold.publication",
    }
    assert asked(warehouse, "SELECT count(*) FROM queue_assignment") == [(len(changed),)]


def test_null_and_an_empty_text_are_different_rows(warehouse: Warehouse) -> None:
    stage_day(warehouse, queue_assignment=[{**owners("c1")[0], "client_id": None}])
    publish(warehouse, "shop", MONDAY)

    stage_day(warehouse, queue_assignment=[{**owners("c1")[0], "client_id": ""}])

    assert publish(warehouse, "shop", MONDAY).changed_tables == ("gold.queue_assignment",)


def test_a_day_replaces_only_itself(warehouse: Warehouse) -> None:
    for cluster, ds in (("shop", MONDAY), ("shop", TUESDAY), ("pay", MONDAY)):
        stage_day(warehouse, ds, cluster, queue_assignment=owners("c1", "c2"))
        publish(warehouse, cluster, ds)

    stage_day(warehouse, MONDAY, "shop", run_id="run-2", queue_assignment=owners("c9"))
    publish(warehouse, "shop", MONDAY)

    assert published_days(warehouse) == [
        ("pay", "2026-11-16", 2),
        ("shop", "2026-11-16", 1),
        ("shop", "2026-11-17", 2),
    ]


def test_a_day_that_lost_all_rows_of_a_table_has_none(warehouse: Warehouse) -> None:
    stage_day(warehouse, queue_assignment=owners("c1"))
    publish(warehouse, "shop", MONDAY)

    stage_day(warehouse)
    publish(warehouse, "shop", MONDAY)

    assert asked(warehouse, ASSIGNMENTS) == []


def test_the_same_rows_of_new_code_are_a_new_publication_without_new_rows(warehouse: Warehouse) -> None:
    stage_day(warehouse, queue_assignment=owners("c1"))
    publish(warehouse, "shop", MONDAY)

    stage_day(warehouse, run_id="run-2", queue_assignment=owners("c1"))

    assert publish(warehouse, "shop", MONDAY).changed_tables == ("gold.gate_result",)
    assert asked(warehouse, "SELECT run_id FROM publication") == [("run-2",)]


def _no_stage(_: Warehouse) -> None:
    pass


def _unfinished_build(warehouse: Warehouse) -> None:
    stage_day(warehouse)
    Path(warehouse.stage("shop", MONDAY, "only").build).unlink()


def _not_judged(warehouse: Warehouse) -> None:
    stage_day(warehouse, verdict=None)


def _judged_before_a_new_build(warehouse: Warehouse) -> None:
    stage_day(warehouse, run_id="run-1")
    stage_day(warehouse, run_id="run-2", attempt="second", verdict=None)


def _refused(warehouse: Warehouse) -> None:
    stage_day(warehouse, verdict="refused")


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (_no_stage, "There is no whole stage at {day}: run the build of this day first."),
        (_unfinished_build, "There is no whole stage at {day}: run the build of this day first."),
        (_not_judged, "The gate has not judged the staging area at {day}/only: run the gate first."),
        (
            _judged_before_a_new_build,
            "The day was computed again, at {day}/second, after the gate judged it: run the gate again.",
        ),
        (_refused, "The gate refused the staging area at {day}/only: see quarantine.gate_result."),
    ],
)
def test_only_a_complete_stage_that_the_gate_accepted_is_published(
    warehouse: Warehouse, prepare: Callable[[Warehouse], None], sentence: str
) -> None:
    stage_day(warehouse, TUESDAY, queue_assignment=owners("c1"))
    publish(warehouse, "shop", TUESDAY)
    before = published_state(warehouse)
    prepare(warehouse)

    with pytest.raises(StagingError) as refused:
        publish(warehouse, "shop", MONDAY)

    assert str(refused.value) == sentence.format(day=warehouse.attempts("shop", MONDAY))
    assert published_state(warehouse) == before


class _KilledError(Exception):
    """Simulates the end of the publishing process."""


def publish_and_die(
    monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse, ds: date, writes_before: int
) -> None:
    """Publish a day with a process that dies after this number of writes."""
    replace = commits.replace_day
    writes = iter(range(1000))

    def dying(*arguments: Any) -> int:
        if next(writes) == writes_before:
            raise _KilledError
        return replace(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(commits, "replace_day", dying)
        with pytest.raises(_KilledError):
            publish(warehouse, "shop", ds)


def test_another_writer_that_ignores_the_lock_is_detected_before_readers_see_the_day(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage_day(warehouse, MONDAY, queue_assignment=owners("c1", "c2"))
    publish(warehouse, "shop", MONDAY)
    before = asked(warehouse, ASSIGNMENTS)
    place = warehouse.published(QUEUE_ASSIGNMENT)
    give_to_table = commits.give_to_table

    def give_after_another_commit(*arguments: Any) -> Any:
        actions = give_to_table(*arguments)
        write_deltalake(place, DeltaTable(place).to_pyarrow_table(), mode="append")
        return actions

    monkeypatch.setattr(commits, "give_to_table", give_after_another_commit)
    stage_day(warehouse, MONDAY, run_id="run-2", queue_assignment=owners("c3"))
    with pytest.raises(WriteError, match="does not replace the files of shop 2026-11-16"):
        publish(warehouse, "shop", MONDAY)

    assert asked(warehouse, ASSIGNMENTS) == before
    monkeypatch.undo()
    publish(warehouse, "shop", MONDAY)
    assert asked(warehouse, ASSIGNMENTS) == [("2026-11-16", 0, "c3")]


@pytest.mark.parametrize("writes_before", [1, 2, len(FEW_TABLES)])
def test_a_killed_first_publication_is_never_visible(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, writes_before: int
) -> None:
    stage_day(warehouse, MONDAY, queue_assignment=owners("c1", "c2"))
    publish_and_die(monkeypatch, warehouse, MONDAY, writes_before)
    with pytest.raises(NoWarehouseError):
        asked(warehouse, ASSIGNMENTS)

    stage_day(warehouse, TUESDAY, queue_assignment=owners("c3"))
    publish(warehouse, "shop", TUESDAY)

    assert asked(warehouse, ASSIGNMENTS) == [("2026-11-17", 0, "c3")]


# Each write is one table. Only changed tables are written: first queue_assignment, then gate_result.
@pytest.mark.parametrize("writes_before", [1, 2])
def test_readers_see_the_complete_old_day_after_a_publisher_was_killed(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, writes_before: int
) -> None:
    stage_day(warehouse, MONDAY, queue_assignment=owners("c1", "c2"))
    publish(warehouse, "shop", MONDAY)
    stage_day(warehouse, MONDAY, run_id="run-2", queue_assignment=owners("c8", "c9"))
    publish_and_die(monkeypatch, warehouse, MONDAY, writes_before)
    old_day = [("2026-11-16", 0, "c1"), ("2026-11-16", 1, "c2")]
    assert asked(warehouse, ASSIGNMENTS) == old_day

    stage_day(warehouse, TUESDAY, queue_assignment=owners("c3"))
    publish(warehouse, "shop", TUESDAY)
    assert asked(warehouse, ASSIGNMENTS) == [*old_day, ("2026-11-17", 0, "c3")]
    assert asked(warehouse, "SELECT DISTINCT run_id FROM gate_result WHERE ds = '2026-11-16'") == [("run-1",)]

    publish(warehouse, "shop", MONDAY)
    assert asked(warehouse, ASSIGNMENTS) == [
        ("2026-11-16", 0, "c8"),
        ("2026-11-16", 1, "c9"),
        ("2026-11-17", 0, "c3"),
    ]
    assert asked(warehouse, "SELECT DISTINCT run_id FROM gate_result WHERE ds = '2026-11-16'") == [("run-2",)]


def test_restored_tables_are_not_restored_again(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage_day(warehouse, MONDAY, queue_assignment=owners("c1"))
    publish(warehouse, "shop", MONDAY)
    stage_day(warehouse, MONDAY, run_id="run-2", queue_assignment=owners("c9"))
    publish_and_die(monkeypatch, warehouse, MONDAY, 1)
    stage_day(warehouse, MONDAY, queue_assignment=owners("c1"))
    publish(warehouse, "shop", MONDAY)
    before = published_state(warehouse)

    publish(warehouse, "shop", MONDAY)

    assert published_state(warehouse) == before
    assert asked(warehouse, ASSIGNMENTS) == [("2026-11-16", 0, "c1")]


def test_a_publisher_killed_by_the_system_leaves_the_old_day_and_no_lock(whole_warehouse: Warehouse) -> None:
    stage_day(whole_warehouse, MONDAY, queue_assignment=owners("c1"))
    publish(whole_warehouse, "shop", MONDAY)
    stage_day(whole_warehouse, MONDAY, run_id="run-2", queue_assignment=owners("c9"))
    program = f"""
import os, signal
from datetime import date
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse import publish
from rebalance_ledger.warehouse.layout import Warehouse

replace = commits.replace_day
def killed_after_one_table(*arguments):
    replace(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

commits.replace_day = killed_after_one_table
publish.publish(Warehouse({whole_warehouse.root!r}), "shop", date(2026, 11, 16))
"""
    root = Path(commits.__file__).resolve().parents[2]
    ended = subprocess.run([sys.executable, "-c", program], cwd=root, check=False, env=dict(os.environ))

    assert ended.returncode == -signal.SIGKILL
    assert asked(whole_warehouse, ASSIGNMENTS) == [("2026-11-16", 0, "c1")]
    publish(whole_warehouse, "shop", MONDAY)
    assert asked(whole_warehouse, ASSIGNMENTS) == [("2026-11-16", 0, "c9")]


def test_publishers_of_one_warehouse_are_serialized(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [date(2026, 11, day) for day in (16, 17, 18, 19)]
    for number, ds in enumerate(days):
        stage_day(warehouse, ds, run_id=f"run-{number}", queue_assignment=owners(f"c{number}"))
    replace = commits.replace_day
    inside: set[int] = set()
    seen_together: list[int] = []

    def watched(*arguments: Any) -> int:
        inside.add(threading.get_ident())
        seen_together.append(len(inside))
        return replace(*arguments)

    undo = commits._restore_interrupted

    def first_step(*arguments: Any) -> None:
        inside.clear()
        undo(*arguments)

    monkeypatch.setattr(commits, "replace_day", watched)
    monkeypatch.setattr(commits, "_restore_interrupted", first_step)
    start = threading.Barrier(len(days))
    failures: list[BaseException] = []

    def run(ds: date) -> None:
        start.wait()
        try:
            publish(warehouse, "shop", ds)
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(ds,)) for ds in days]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert set(seen_together) == {1}
    assert asked(warehouse, ASSIGNMENTS) == [(str(ds), 0, f"c{number}") for number, ds in enumerate(days)]


def test_refused_results_are_kept_apart_until_the_day_is_published(warehouse: Warehouse) -> None:
    stage_day(warehouse, MONDAY, queue_assignment=owners("c1"))
    publish(warehouse, "shop", MONDAY)
    before = published_state(warehouse)
    for ds in (MONDAY, TUESDAY):
        quarantine(warehouse, "shop", ds, [result(run_id="run-2", is_success=False)])
    refused = "SELECT ds::VARCHAR, run_id, is_success FROM quarantine.gate_result ORDER BY ds"
    assert published_state(warehouse) == before
    assert asked(warehouse, refused) == [("2026-11-16", "run-2", False), ("2026-11-17", "run-2", False)]

    publish(warehouse, "shop", MONDAY)

    assert asked(warehouse, refused) == [("2026-11-17", "run-2", False)]
    assert asked(warehouse, "SELECT run_id FROM gate_result") == [("run-1",)]


def test_a_second_refusal_replaces_the_first(warehouse: Warehouse) -> None:
    quarantine(warehouse, "shop", MONDAY, [result("a", is_success=False), result("b")])
    quarantine(warehouse, "shop", MONDAY, [result("a", run_id="run-2")])

    assert asked(warehouse, "SELECT expectation_id, run_id FROM quarantine.gate_result") == [("a", "run-2")]


HOSTILE_NAMES = (
    "it's",
    "'; DROP TABLE publication; --",
    "' OR 1=1 --",
    'a "quoted" name',
    "100% sure",
    "%2e%2e%2f",
    "a b",
    "..c..",
    "[x]*{a}?",
    "中文 ü \U0001f600",
    "<script>alert(1)<br>",
    "a\\b",
    "a=b&c#d",
    "_hidden",
    ".hidden",
    "ds=2026-11-16",
    "null",
    "__HIVE_DEFAULT_PARTITION__",
    "-rf",
    "x" * 200,
)


@pytest.fixture(scope="module")
def published_once(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Return a published day of a cluster `other`."""
    warehouse = Warehouse.at(str(tmp_path_factory.mktemp("other") / "warehouse"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(commits, "PUBLISHED_TABLES", FEW_TABLES)
        stage_day(warehouse, cluster="other", queue_assignment=owners("c1"))
        publish(warehouse, "other", MONDAY)
    return warehouse


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_any_cluster_name_can_be_published(
    published_once: Warehouse, warehouse: Warehouse, name: str
) -> None:
    shutil.copytree(published_once.root, warehouse.root)
    for client_id in ("c2", "c3"):
        stage_day(warehouse, cluster=name, queue_assignment=owners(client_id))
        publish(warehouse, name, MONDAY)
    quarantine(warehouse, name, TUESDAY, [result()])

    assert sorted(asked(warehouse, "SELECT cluster, client_id FROM queue_assignment")) == sorted(
        [(name, "c3"), ("other", "c1")]
    )
    assert asked(warehouse, "SELECT cluster FROM quarantine.gate_result") == [(name,)]
    assert publish(warehouse, name, MONDAY).changed_tables == ()
    assert not {path.name for path in Path(warehouse.root).iterdir()} - {
        "gold",
        "quarantine",
        "silver",
        "staging",
        ".publishing",
    }


@pytest.mark.parametrize("name", ["..", "."])
def test_a_cluster_name_cannot_escape_the_staging_area(warehouse: Warehouse, name: str) -> None:
    root = Path(warehouse.attempts(name, MONDAY))

    assert root.resolve().parent.parent == Path(warehouse.root) / "staging"


def test_the_written_tables_are_the_documented_ones() -> None:
    assert {*PUBLISHED_TABLES, PUBLICATION} == set(ALL_TABLES)
    assert PUBLISHED_TABLES[-1] is GATE_RESULT
    assert QUEUE_ASSIGNMENT in PUBLISHED_TABLES
