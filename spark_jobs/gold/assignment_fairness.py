"""Compute `gold.assignment_fairness`: how evenly each strategy spreads the queues of a topic over a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from spark_jobs.assignment.allocation import NOT_IN_ROUTE, ROUTE_MISSING, UNDETERMINED_REASONS
from spark_jobs.day_key import DAY
from spark_jobs.gold.queue_assignment import effective_strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame

_SUBSCRIPTION: Final = (*DAY, "consumer_group", "topic")
_STRATEGY_KEY: Final = (*_SUBSCRIPTION, "strategy")


def assignment_fairness(
    assignments: DataFrame, subscriptions: DataFrame, spread_bounds: Mapping[str, int]
) -> DataFrame:
    """Return one row per group, topic and strategy: `DAY` and the table's own columns.

    Args:
        assignments: `DAY` and `queue_assignment`'s own columns.
        subscriptions: See `subscriptions.subscriptions`.
        spread_bounds: Strategy -> the largest difference between two clients that it guarantees; missing without a bound.
    """
    # A queue that a CONFIG list names and no route has is read by no client, so it is not part of a client's load.
    assignments = assignments.where(~F.col("reason").eqNullSafe(NOT_IN_ROUTE))
    group_facts = subscriptions.select(
        *_SUBSCRIPTION, "group_state", "group_state_reason", *_member_counts(), _queue_count()
    )
    joined = (
        _strategies_of_pairs(assignments, subscriptions)
        .join(group_facts, list(_SUBSCRIPTION))
        .join(_per_client(assignments), list(_STRATEGY_KEY), "left")
        .join(_per_queue(assignments), list(_STRATEGY_KEY), "left")
    )
    is_known = F.col("group_state").isin("online", "broadcasting")
    # Values that cannot be determined are null, never zero: queues per client as well as unowned queues.
    are_owners_known = F.coalesce(~F.col("is_undetermined"), F.lit(col=False))
    has_clients = is_known & are_owners_known & (F.col("client_count") > 0)
    owners = F.coalesce("owner_count", F.lit(0))
    least = F.when(has_clients, F.when(owners < F.col("client_count"), 0).otherwise(F.col("least")))
    most = F.when(has_clients, F.coalesce("most", F.lit(0)))
    owned = F.coalesce("owned_count", F.lit(0))
    mean = F.when(has_clients, owned / F.col("client_count"))
    bound = F.create_map(*(F.lit(item) for pair in spread_bounds.items() for item in pair))[F.col("strategy")]
    is_bounded = has_clients & bound.isNotNull()
    return joined.select(
        *_STRATEGY_KEY,
        "strategy_source",
        "is_effective",
        "group_state",
        "group_state_reason",
        _zero_if_offline("client_count", is_known),
        _zero_if_offline("reporting_client_count", is_known),
        F.col("queue_count").cast("int").alias("queue_count"),
        least.cast("int").alias("min_queues_per_client"),
        most.cast("int").alias("max_queues_per_client"),
        mean.alias("mean_queues_per_client"),
        F.when(mean > 0, most / mean).alias("max_over_mean"),
        F.when(
            has_clients & (owned > 0), owned * owned / (F.col("client_count") * F.col("sum_of_squares"))
        ).alias("jain_index"),
        F.when(has_clients, F.col("client_count") - owners).cast("int").alias("idle_client_count"),
        F.when(are_owners_known, F.col("unowned_queue_count")).cast("int").alias("unowned_queue_count"),
        F.when(are_owners_known, F.col("multiple_owner_queue_count"))
        .cast("int")
        .alias("multiple_owner_queue_count"),
        bound.cast("int").alias("spread_bound"),
        F.when(is_bounded, most - least <= bound).alias("is_within_bound"),
    )


def _zero_if_offline(name: str, is_known: Column) -> Column:
    """Return a count of members: null if the group's state is unknown, 0 if the group is offline."""
    count = F.when(is_known, F.col(name)).when(F.col("group_state") == "offline", 0)
    return count.cast("int").alias(name)


def _strategies_of_pairs(assignments: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """Return the strategies of each (group, topic) of a day, at least one, so that topics without queues have a row too."""
    assigned = assignments.select(*_STRATEGY_KEY, "strategy_source", "is_effective").distinct()
    without_queues = subscriptions.join(assigned, list(_SUBSCRIPTION), "left_anti").select(
        *_SUBSCRIPTION,
        F.coalesce(effective_strategy(), F.lit("UNKNOWN")).alias("strategy"),
        F.lit("observed").alias("strategy_source"),
        effective_strategy().isNotNull().alias("is_effective"),
    )
    return assigned.unionByName(without_queues)


def _member_counts() -> tuple[Column, Column]:
    """Count the distinct members that subscribe to the topic, and the ones among them that report a strategy."""

    def distinct_members(condition: Callable[[Column], Column]) -> Column:
        positions = F.filter("variants", condition)
        ids = F.transform(positions, lambda variant: F.get("member_ids", variant["slot"]))
        return F.size(F.array_distinct(ids))

    return (
        distinct_members(lambda variant: variant["is_subscribed"]).alias("client_count"),
        distinct_members(lambda variant: variant["is_subscribed"] & variant["strategy"].isNotNull()).alias(
            "reporting_client_count"
        ),
    )


def _queue_count() -> Column:
    """Return the number of readable queues of the topic; null without a known route."""
    total = F.aggregate("brokers", F.lit(0), lambda sum_so_far, broker: sum_so_far + broker["queue_count"])
    return F.when(F.col("route_state") == "known", total).alias("queue_count")


def _per_client(assignments: DataFrame) -> DataFrame:
    """Aggregate the queue counts of the clients that own a queue, by strategy."""
    counts = assignments.where("client_id is not null").groupBy(*_STRATEGY_KEY, "client_id").count()
    return counts.groupBy(*_STRATEGY_KEY).agg(
        F.count("*").alias("owner_count"),
        F.min("count").alias("least"),
        F.max("count").alias("most"),
        F.sum("count").alias("owned_count"),
        F.sum(F.col("count").cast("double") * F.col("count")).alias("sum_of_squares"),
    )


def _per_queue(assignments: DataFrame) -> DataFrame:
    """Count the queues without an owner and with several owners, by strategy.

    The owners of a topic without a readable queue are undetermined too: its queues are those that members were observed to hold. A
    member that was not queried may hold others, and a holder may be in no elected member list.
    """
    is_undetermined = F.coalesce(F.col("reason").isin(*UNDETERMINED_REASONS, ROUTE_MISSING), F.lit(col=False))
    queues = assignments.groupBy(*_STRATEGY_KEY, "broker_name", "queue_id").agg(
        F.count("client_id").alias("owners"), F.max(is_undetermined).alias("is_undetermined")
    )
    return queues.groupBy(*_STRATEGY_KEY).agg(
        F.max("is_undetermined").alias("is_undetermined"),
        F.count_if(F.col("owners") == 0).alias("unowned_queue_count"),
        F.count_if(F.col("owners") > 1).alias("multiple_owner_queue_count"),
    )
