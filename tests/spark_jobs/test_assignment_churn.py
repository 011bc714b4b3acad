"""What moved since the newest earlier published day, and how little could have been enough."""

from __future__ import annotations

import random
from datetime import date
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
from computed_days import asked, compute_and_publish
from export_builder import ExportBuilder
from pyspark.sql.functions import col

from ledger.stages import Day
from spark_jobs.assignment_churn import most_kept
from warehouse.layout import Warehouse

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
WHOLE_DAYS = pytest.mark.e2e

CLUSTER = "churning"
SUNDAY, MONDAY, TUESDAY = (date(2026, 11, day) for day in (15, 16, 17))


def test_no_way_to_change_places_keeps_more(spark: SparkSession) -> None:
    draw = random.Random(20261116)  # noqa: S311 - no secret
    cases = [
        tuple([draw.randrange(6) for _ in range(draw.randrange(6))] for _ in range(2)) for _ in range(400)
    ]
    told = spark.createDataFrame(cases, "before array<int>, now array<int>").select(
        "before", "now", most_kept(col("before"), col("now")).alias("kept")
    )

    for row in told.collect():
        size = max(len(row["before"]), len(row["now"]))
        had, has = ([*loads, *[0] * (size - len(loads))] for loads in (row["before"], row["now"]))
        best = max(sum(map(min, had, places)) for places in permutations(has))
        assert row["kept"] == best, row


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Two published days with one between them that was never published."""
    folder = tmp_path_factory.mktemp("churn")
    exports = folder / "exports"
    _write(
        exports, SUNDAY, queues=8, members={"front": ["c1", "c2", "c3"], "steady": ["a", "b"], "gone": ["x"]}
    )
    _write(
        exports, TUESDAY, queues=6, members={"front": ["c0", "c1", "c2"], "steady": ["a", "b"], "new": ["y"]}
    )
    warehouse = Warehouse.at(str(folder / "warehouse"))
    for ds in (SUNDAY, TUESDAY):
        compute_and_publish(spark, Day(CLUSTER, ds, exports, warehouse, None))
    return warehouse


def _write(exports: Path, ds: date, *, queues: int, members: dict[str, list[str]]) -> None:
    export = ExportBuilder(CLUSTER, ds)
    export.route("orders", {"a": queues})
    for group, clients in members.items():
        export.group(group, ["orders"], clients, "a")
    export.seal(exports)


def churn(warehouse: Warehouse, ds: date, group: str) -> dict[str, Any]:
    names = (
        "ds, consumer_group, state, compared_ds::VARCHAR, queue_count_before, queue_count, added_queue_count, removed_queue_count, "
        "moved_queue_count, least_move_count, joined_client_count, left_client_count, changes"
    )
    rows = asked(warehouse, f"SELECT {names} FROM assignment_churn WHERE topic = 'orders' AND is_effective")  # noqa: S608 - our own names
    [row] = [row for row in rows if row[:2] == (ds, group)]
    shown = [name.split(":")[0] for name in names.split(", ")]
    return dict(zip(shown[2:], row[2:], strict=True))


@WHOLE_DAYS
def test_on_a_first_day_nothing_is_known_of_what_moved(warehouse: Warehouse) -> None:
    row = churn(warehouse, SUNDAY, "front")

    assert row.pop("state") == "no_earlier_day"
    assert set(row.values()) == {None}


@WHOLE_DAYS
def test_moves_are_counted_against_the_newest_published_day(warehouse: Warehouse) -> None:
    # 8 queues of c1 c2 c3 were 3, 3, 2; 6 queues of c0 c1 c2 are 2, 2, 2. Of the first six, c1 had 0 1 2 and c2 3 4 5; now
    # c0 has 0 1, c1 has 2 3, c2 has 4 5. Two of each could have stayed, so two must move.
    assert churn(warehouse, TUESDAY, "front") == {
        "state": "compared",
        "compared_ds": "2026-11-15",
        "queue_count_before": 8,
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
def test_a_group_that_is_new_has_moved_nothing_and_not_zero(warehouse: Warehouse) -> None:
    row = churn(warehouse, TUESDAY, "new")

    assert (row.pop("state"), row.pop("compared_ds")) == ("not_there_before", "2026-11-15")
    assert set(row.values()) == {None}


@WHOLE_DAYS
def test_the_publication_says_what_was_read_of_the_earlier_day(warehouse: Warehouse) -> None:
    rows = asked(
        warehouse,
        "SELECT compared_ds, compared_content, "
        "list_transform(tables, lambda named: named.table_name || '=' || named.content_hash) "
        "FROM publication ORDER BY ds",
    )

    [(no_ds, no_content, named), (compared_ds, content, _)] = rows
    assert (no_ds, no_content) == (None, None)
    assert compared_ds == SUNDAY
    assert [text.split("=")[0] for text in content] == [
        "gold.queue_assignment",
        "silver.consumer_connection",
        "gold.quarantined_group",
    ]
    assert set(content) <= set(named)
