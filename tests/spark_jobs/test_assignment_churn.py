"""Moved queues since the baseline day, and the minimum number of moves."""

from __future__ import annotations

import random
from datetime import date
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import col

from rebalance_ledger.pipeline import steps
from spark_jobs.gold.assignment_churn import most_kept
from tests.support.computed_days import asked, newest, staged_rows
from tests.support.export_builder import DS, ExportBuilder
from tests.support.three_days import MONDAY, THURSDAY, TUESDAY

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rebalance_ledger.warehouse.layout import Warehouse
    from tests.support.small_days import SmallDays
    from tests.support.three_days import ThreeDays

pytestmark = pytest.mark.spark
WHOLE_DAYS = pytest.mark.e2e
DAY_AFTER = date(2026, 11, 17)
GRPC = ["host-a@7@0@1k2j3h", "host-b@8@0@1k2j4h"]


def test_no_matching_keeps_more_queues(spark: SparkSession) -> None:
    draw = random.Random(20261116)  # noqa: S311 - no secret
    cases = [
        tuple([draw.randrange(6) for _ in range(draw.randrange(6))] for _ in range(2)) for _ in range(400)
    ]
    output = spark.createDataFrame(cases, "before array<int>, now array<int>").select(
        "before", "now", most_kept(col("before"), col("now")).alias("kept")
    )

    for row in output.collect():
        size = max(len(row["before"]), len(row["now"]))
        had, has = ([*loads, *[0] * (size - len(loads))] for loads in (row["before"], row["now"]))
        best = max(sum(map(min, had, places)) for places in permutations(has))
        assert row["kept"] == best, row


def write_migration(exports: Path) -> list[tuple[str, date]]:
    """Write a day of clients that assign queues to themselves, and a day of gRPC clients, which have no process table."""
    for ds in (DS, DAY_AFTER):
        export = ExportBuilder("migration-test", ds)
        export.route("orders", {"a": 4})
        if ds == DS:
            export.members("a", "to-grpc", ["c1", "c2"], ["orders"])
            for client, queues in {"c1": (0, 1), "c2": (2, 3)}.items():
                export.client(
                    "to-grpc", client, ["orders"], owns=[("orders", "a", queue) for queue in queues]
                )
        else:
            export.members("a", "to-grpc", GRPC, ["orders"])
            for client in GRPC:
                export.failure("consumer_running_info", "no answer", group="to-grpc", client_id=client)
        export.seal(exports)
    return [("migration-test", DS), ("migration-test", DAY_AFTER)]


@pytest.mark.small_days.with_args(write_migration)
def test_readers_that_cannot_be_observed_have_moved_no_queue(small_days: SmallDays) -> None:
    [_, day] = small_days.of(write_migration)
    stage = newest(day)

    assert {row["state"] for row in staged_rows(stage, "ownership_drift")} == {"shared"}
    [row] = [row for row in staged_rows(stage, "assignment_churn") if row["is_effective"]]
    assert (row["baseline_effective_strategy"], row["strategy"]) == ("AVG", "POP")
    assert (row["observed_queue_count"], row["observed_moved_queue_count"]) == (0, 0)
    [found] = [row for row in staged_rows(stage, "finding") if row["kind"] == "strategy_changed"]
    assert (found["queue_count"], found["queue_total_count"]) == (0, 0)
    assert found["evidence"].endswith(". No owner was observed on both days.")
    assert steps.gate(day).reasons == []


@pytest.fixture
def warehouse(three_days: ThreeDays) -> Warehouse:
    """Return three published days. A day before the last of them was never published."""
    return three_days.warehouse


def churn(warehouse: Warehouse, ds: date, group: str) -> dict[str, Any]:
    names = (
        "ds, consumer_group, state, baseline_ds::VARCHAR, baseline_queue_count, queue_count, added_queue_count, removed_queue_count, "
        "moved_queue_count, least_move_count, joined_client_count, left_client_count, changes"
    )
    rows = asked(warehouse, f"SELECT {names} FROM assignment_churn WHERE topic = 'stock' AND is_effective")  # noqa: S608 - our own names
    [row] = [row for row in rows if row[:2] == (ds, group)]
    shown = [name.split(":")[0] for name in names.split(", ")]
    return dict(zip(shown[2:], row[2:], strict=True))


@WHOLE_DAYS
@pytest.mark.nightly
def test_moves_are_unknown_on_a_first_day(warehouse: Warehouse) -> None:
    row = churn(warehouse, MONDAY, "front")

    assert row.pop("state") == "no_baseline"
    assert set(row.values()) == {None}


@WHOLE_DAYS
@pytest.mark.nightly
def test_moves_are_counted_against_the_newest_published_day(warehouse: Warehouse) -> None:
    # c1, c2 and c3 owned 3, 3 and 2 of 8 queues; c0, c1 and c2 own 2 each of 6. Of these, c1 owned 0 1 2 and c2 3 4 5. Now
    # c0 owns 0 1, c1 owns 2 3, and c2 owns 4 5. c1 and c2 could each have kept two queues, so two queues must move.
    assert churn(warehouse, THURSDAY, "front") == {
        "state": "compared",
        "baseline_ds": "2026-11-17",
        "baseline_queue_count": 8,
        "queue_count": 6,
        "added_queue_count": 0,
        "removed_queue_count": 2,
        "moved_queue_count": 3,
        "least_move_count": 2,
        "joined_client_count": 1,
        "left_client_count": 1,
        "changes": ["clients_joined", "clients_left", "queues_removed"],
    }


@WHOLE_DAYS
@pytest.mark.nightly
def test_a_change_of_strategy_is_recorded_even_if_no_owner_can_be_computed(warehouse: Warehouse) -> None:
    [row] = asked(
        warehouse,
        "SELECT state, baseline_effective_strategy, strategy, observed_queue_count, observed_moved_queue_count, moved_queue_count "
        "FROM assignment_churn WHERE consumer_group = 'changing' AND is_effective AND ds = '2026-11-19'",
    )
    findings = asked(
        warehouse,
        "SELECT ds::VARCHAR, consumer_group, seen_values, queue_count, queue_total_count FROM finding "
        "WHERE kind = 'strategy_changed'",
    )

    assert row == ("unknown_now", "AVG_BY_CIRCLE", "CONSISTENT_HASH", 4, 2, None)
    assert findings == [("2026-11-19", "changing", ["CONSISTENT_HASH instead of AVG_BY_CIRCLE"], 2, 4)]


@WHOLE_DAYS
@pytest.mark.nightly
def test_moves_of_a_new_group_are_null_and_not_zero(warehouse: Warehouse) -> None:
    row = churn(warehouse, THURSDAY, "new")

    assert (row.pop("state"), row.pop("baseline_ds")) == ("absent_on_baseline", "2026-11-17")
    assert set(row.values()) == {None}


@WHOLE_DAYS
@pytest.mark.nightly
def test_the_publication_records_what_was_read_of_the_baseline_day(warehouse: Warehouse) -> None:
    rows = asked(
        warehouse,
        "SELECT baseline_ds, compared_content, "
        "list_transform(tables, lambda named: named.table_name || '=' || named.content_hash) "
        "FROM publication ORDER BY ds",
    )

    [(no_ds, no_content, _), (_, _, named), (baseline_ds, content, _)] = rows
    assert (no_ds, no_content) == (None, None)
    assert baseline_ds == TUESDAY
    assert [text.split("=")[0] for text in content] == [
        "gold.queue_assignment",
        "silver.consumer_connection",
        "gold.ownership_drift",
        "gold.quarantined_group",
        "silver.consume_progress",
    ]
    assert set(content) <= set(named)
