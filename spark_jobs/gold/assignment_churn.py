"""Compute `gold.assignment_churn`: queues that changed owner since the baseline day, and the fewest necessary moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rebalance_ledger.tables import OWNERSHIP_DRIFT, QUARANTINED_GROUP, QUEUE_ASSIGNMENT
from rebalance_ledger.tables.silver.consumer_connection import CONSUMER_CONNECTION
from spark_jobs.assignment.allocation import BROADCASTING, UNDETERMINED_REASONS
from spark_jobs.day_key import DAY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from spark_jobs.baseline import BaselineRows

_OWNERLESS_UNDETERMINED: Final = (*UNDETERMINED_REASONS, "strategy_failed")
"""Reasons that leave open who owns the queue."""

_GROUP: Final = (*DAY, "consumer_group")
_SUBSCRIPTION: Final = (*_GROUP, "topic")
_SERIES_KEY: Final = (*_SUBSCRIPTION, "series")
"""Identifies what is compared between days: a strategy by name, or `''` for the effective strategy."""

_NUMBERS: Final = (
    "baseline_queue_count",
    "queue_count",
    "added_queue_count",
    "removed_queue_count",
    "moved_queue_count",
    "least_move_count",
    "joined_client_count",
    "left_client_count",
)


_OBSERVED: Final = {
    "baseline_effective_strategy": "string",
    "observed_queue_count": "int",
    "observed_moved_queue_count": "int",
}
"""Columns from observed owners, which are known even if no strategy can be computed."""


def assignment_churn(
    assignments: DataFrame,
    fairness: DataFrame,
    connections: DataFrame,
    drift: DataFrame,
    baseline: BaselineRows,
) -> DataFrame:
    """Return one row per row of `fairness`: `DAY` and the table's own columns.

    Args:
        assignments: `queue_assignment` of the days.
        fairness: `assignment_fairness` of the days.
        connections: `consumer_connection` of the days.
        drift: `ownership_drift` of the days.
        baseline: The rows of the days' baselines.
    """
    rows = fairness.select(*_SUBSCRIPTION, "strategy", "strategy_source", "is_effective")
    queues = _queues(assignments, baseline.rows(QUEUE_ASSIGNMENT))
    members = _members(connections, baseline.rows(CONSUMER_CONNECTION))
    joined = (
        rows.withColumn("series", _series())
        .join(_counts(queues), list(_SERIES_KEY), "left")
        .join(_kept(queues, members), list(_SERIES_KEY), "left")
        .join(_clients(members), list(_GROUP), "left")
        .join(_quarantined(baseline.rows(QUARANTINED_GROUP)), list(_GROUP), "left")
        .join(_observed(drift, baseline.rows(OWNERSHIP_DRIFT)), list(_SUBSCRIPTION), "left")
        .join(F.broadcast(baseline.days), list(DAY), "left")
        .withColumn("state", _state())
    )
    is_exclusive = (
        (F.col("most_owners") <= 1)
        & (F.col("strategy") != BROADCASTING)
        & (F.col("baseline_strategy") != BROADCASTING)
    )
    kept = F.coalesce("kept", F.lit(0)) + F.least("unowned_before", "unowned")
    numbers = joined.withColumns(
        {
            "least_move_count": F.when(is_exclusive, F.col("shared_queue_count") - kept),
            "joined_client_count": F.coalesce("joined_client_count", F.lit(0)),
            "left_client_count": F.coalesce("left_client_count", F.lit(0)),
        }
    )
    is_compared = F.col("state") == "compared"
    return numbers.select(
        *_SUBSCRIPTION,
        "strategy",
        "strategy_source",
        "is_effective",
        "baseline_ds",
        "state",
        F.when(is_compared, F.col("baseline_strategy")).alias("baseline_strategy"),
        *(F.when(is_compared, F.col(name)).cast("int").alias(name) for name in _NUMBERS),
        F.when(is_compared, _changes()).alias("changes"),
        *(
            F.when(F.col("is_effective"), F.col(name)).cast(kind).alias(name)
            for name, kind in _OBSERVED.items()
        ),
    )


def most_kept(before: Column, now: Column) -> Column:
    """Return the largest number of queues that can stay with their client, over all assignments with today's queue counts.

    A client with `b` queues before and `n` queues now can keep at most `min(b, n)` of them. The sum over all clients is
    largest if both lists are matched in descending order, because swapping two clients that are out of order never
    reduces the sum.

    Args:
        before: array<int>, for each client that still exists, its number of queues that still exist.
        now: array<int>, each client's number of queues now; the length differs if clients joined or left.
    """

    def stays(had: Column, has: Column) -> Column:
        return F.least(F.coalesce(had, F.lit(0)), F.coalesce(has, F.lit(0)))

    pairs = F.zip_with(F.sort_array(before, asc=False), F.sort_array(now, asc=False), stays)
    return F.aggregate(pairs, F.lit(0), lambda total, kept: total + kept)


def _series() -> Column:
    return F.when(F.col("is_effective"), F.lit("")).otherwise(F.col("strategy"))


def _queues(now: DataFrame, before: DataFrame) -> DataFrame:
    """Return one row per series and queue of either day, with its owners on both days."""

    def rows(day: DataFrame, series: Column, *, is_now: bool) -> DataFrame:
        is_known = ~F.coalesce(
            F.col("reason").isin(*_OWNERLESS_UNDETERMINED, "route_missing"), F.lit(col=False)
        )
        return day.select(
            *_SUBSCRIPTION,
            series.alias("series"),
            "strategy",
            "broker_name",
            "queue_id",
            "client_id",
            is_known.alias("is_known"),
            F.lit(is_now).alias("is_now"),
        )

    series_of_row = F.when(F.col("is_effective"), F.array(F.lit(""), F.col("strategy"))).otherwise(
        F.array("strategy")
    )
    both = rows(now, _series(), is_now=True).unionByName(rows(before, F.explode(series_of_row), is_now=False))
    is_now = F.col("is_now")

    def owners(condition: Column) -> Column:
        return F.array_sort(F.collect_set(F.when(condition, F.col("client_id"))))

    return (
        # All later groupings are within a group and topic, so rows are shuffled once.
        both.repartition(*_SUBSCRIPTION)
        .groupBy(*_SERIES_KEY, "broker_name", "queue_id")
        .agg(
            F.bool_or(is_now).alias("is_now"),
            F.bool_or(~is_now).alias("is_before"),
            owners(is_now).alias("owners"),
            owners(~is_now).alias("owners_before"),
            F.bool_and(F.col("is_known") | ~is_now).alias("is_known"),
            F.bool_and(F.col("is_known") | is_now).alias("was_known"),
            F.max(F.when(~is_now, F.col("strategy"))).alias("baseline_strategy"),
        )
    )


def _observed(now: DataFrame, before: DataFrame) -> DataFrame:
    """Return the columns `_OBSERVED`, by group and topic.

    A queue is observed on a day if its state is known, or if every member answered and at least one client holds it. A shared queue
    without an observed client is not: its readers, for example gRPC clients, cannot be observed, but are not absent.
    """

    def rows(day: DataFrame, *, is_now: bool) -> DataFrame:
        has_holder = F.size("observed_client_ids") > 0
        is_seen = has_holder & (F.col("unasked_client_count") == 0)
        is_state_enough = (F.col("state") != "unknown") & ((F.col("state") != "shared") | has_holder)
        is_observed = is_state_enough | F.coalesce(is_seen, F.lit(col=False))
        return day.select(
            *_SUBSCRIPTION,
            "broker_name",
            "queue_id",
            "strategy",
            F.when(is_observed, F.col("observed_client_ids")).alias("owners"),
            F.lit(is_now).alias("is_now"),
        )

    def of(day: Column, column: str) -> Column:
        return F.max(F.when(day, F.col(column)))

    is_now = F.col("is_now")
    return (
        rows(now, is_now=True)
        .unionByName(rows(before, is_now=False))
        .groupBy(*_SUBSCRIPTION, "broker_name", "queue_id")
        .agg(
            of(is_now, "owners").alias("owners"),
            of(~is_now, "owners").alias("baseline_owners"),
            of(~is_now, "strategy").alias("baseline_effective_strategy"),
            F.bool_or(~is_now).alias("is_before"),
        )
        .groupBy(*_SUBSCRIPTION)
        .agg(
            F.max("baseline_effective_strategy").alias("baseline_effective_strategy"),
            F.count_if(F.col("owners").isNotNull() & F.col("baseline_owners").isNotNull()).alias(
                "observed_queue_count"
            ),
            F.count_if(F.col("owners") != F.col("baseline_owners")).alias("observed_moved_queue_count"),
            F.bool_or("is_before").alias("is_before"),
        )
        .where("is_before")
    )


def _counts(queues: DataFrame) -> DataFrame:
    """Count the queues of each series: of both days, added, removed and moved."""
    is_now, is_before = F.col("is_now"), F.col("is_before")
    is_shared = is_now & is_before
    return queues.groupBy(*_SERIES_KEY).agg(
        F.count_if(is_now).alias("queue_count"),
        F.count_if(is_before).alias("baseline_queue_count"),
        F.count_if(is_shared).alias("shared_queue_count"),
        F.count_if(is_now & ~is_before).alias("added_queue_count"),
        F.count_if(is_before & ~is_now).alias("removed_queue_count"),
        F.count_if(is_shared & (F.col("owners") != F.col("owners_before"))).alias("moved_queue_count"),
        F.count_if(is_now & (F.size("owners") == 0)).alias("unowned"),
        F.count_if(is_shared & (F.size("owners_before") == 0)).alias("unowned_before"),
        F.max(F.greatest(F.size("owners"), F.size("owners_before"))).alias("most_owners"),
        F.bool_and("is_known").alias("is_known"),
        F.bool_and("was_known").alias("was_known"),
        F.max("baseline_strategy").alias("baseline_strategy"),
    )


def _kept(queues: DataFrame, members: DataFrame) -> DataFrame:
    """Count, for each series, the queues that could have stayed with their client."""
    had = F.when(F.col("is_now"), F.get("owners_before", F.lit(0)))
    has = F.get("owners", F.lit(0))
    sides = F.array(
        F.struct(F.lit(col=True).alias("is_now"), has.alias("client_id")),
        F.struct(F.lit(col=False).alias("is_now"), had.alias("client_id")),
    )
    loads = (
        queues.select(*_SERIES_KEY, F.inline(sides))
        .where("client_id is not null")
        .groupBy(*_SERIES_KEY, "client_id")
        .agg(
            F.count_if(F.col("is_now")).cast("int").alias("load"),
            F.count_if(~F.col("is_now")).cast("int").alias("load_before"),
        )
        .join(members.where("is_member"), [*_GROUP, "client_id"], "left")
    )
    is_still_there = F.col("is_member").isNotNull() | (F.col("load") > 0)
    return loads.groupBy(*_SERIES_KEY).agg(
        most_kept(F.collect_list(F.when(is_still_there, F.col("load_before"))), F.collect_list("load")).alias(
            "kept"
        )
    )


def _members(now: DataFrame, before: DataFrame) -> DataFrame:
    """Return one row per group and client id that is or was connected to a broker."""
    rows = now.select(*_GROUP, "client_id", F.lit(col=True).alias("is_now")).unionByName(
        before.select(*_GROUP, "client_id", F.lit(col=False).alias("is_now"))
    )
    return rows.groupBy(*_GROUP, "client_id").agg(
        F.bool_or("is_now").alias("is_member"), F.bool_or(~F.col("is_now")).alias("was_member")
    )


def _clients(members: DataFrame) -> DataFrame:
    """Count the clients that joined and left each group."""
    return members.groupBy(*_GROUP).agg(
        F.count_if(F.col("is_member") & ~F.col("was_member")).alias("joined_client_count"),
        F.count_if(F.col("was_member") & ~F.col("is_member")).alias("left_client_count"),
    )


def _quarantined(quarantined_groups: DataFrame) -> DataFrame:
    """Return the groups that were quarantined on the baseline day; their owners on that day are unknown."""
    return quarantined_groups.select(*_GROUP, F.lit(col=True).alias("was_quarantined")).distinct()


def _state() -> Column:
    """Return `compared`, or why the series cannot be compared."""
    return (
        F.when(F.col("baseline_ds").isNull(), "no_baseline")
        .when(F.coalesce("queue_count", F.lit(0)) == 0, "unknown_now")
        .when(~F.col("is_known"), "unknown_now")
        .when(F.col("was_quarantined"), "unknown_on_baseline")
        .when(F.col("baseline_queue_count") == 0, "absent_on_baseline")
        .when(~F.col("was_known"), "unknown_on_baseline")
        .otherwise("compared")
    )


def _changes() -> Column:
    """Return the changes that can move queues."""
    conditions = (
        ("clients_joined", F.col("joined_client_count") > 0),
        ("clients_left", F.col("left_client_count") > 0),
        ("queues_added", F.col("added_queue_count") > 0),
        ("queues_removed", F.col("removed_queue_count") > 0),
        ("strategy_changed", F.col("baseline_strategy") != F.col("strategy")),
    )
    return F.array_compact(F.array(*(F.when(condition, F.lit(name)) for name, condition in conditions)))
