"""Compute `gold.queue_assignment`: the expected owner of each queue under each strategy that can be computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa  # noqa: TC002 - Spark reads the types of an Arrow function at run time
from pyspark.sql import functions as F

from spark_jobs.assignment.allocation import (
    BROADCASTING,
    MIXED,
    NOT_IN_ROUTE,
    POP,
    REASONS,
    RESULT_DDL,
    ROUTE_MISSING,
    allocate_batch,
)
from spark_jobs.assignment.strategy_settings import StrategySettings
from spark_jobs.day_key import DAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from rebalance_ledger.settings import ClusterSettings

_SUBSCRIPTION: Final = (*DAY, "consumer_group", "topic")


def allocated(subscriptions: DataFrame, settings: Mapping[str, ClusterSettings]) -> DataFrame:
    """Return the subscriptions with a readable queue, with a column `result` (see `allocation.RESULT_TYPE`).

    Only counts and names are sent to Python, each once, and small integers are returned. Rows are sorted by group, so
    that the hashes of a group's clients are computed once for all of its topics. Rows are independent of each other,
    so a batch may contain rows of several days.

    Args:
        subscriptions: See `subscriptions.subscriptions`.
        settings: The settings of each cluster.
    """
    configured = StrategySettings.of(settings)

    @F.arrow_udf(RESULT_DDL)  # type: ignore[attr-defined,untyped-decorator]  # PySpark 4.1 exports it without a type
    def result(subscriptions: pa.Array) -> pa.Array:
        return allocate_batch(configured, subscriptions)

    request = F.struct(
        "cluster",
        "consumer_group",
        "topic",
        "group_state",
        "division_reason",
        F.col("brokers.broker_name").alias("broker_names"),
        F.col("brokers.queue_count").alias("queue_counts"),
        "member_ids",
        F.col("variants.strategy").alias("strategies"),
        F.col("variants.client_language").alias("languages"),
        F.col("variants.client_version").alias("versions"),
        F.transform("variants", lambda member: member["client_state"] == "online").alias("has_answered"),
        F.col("variants.is_subscribed").alias("is_subscribed"),
    )
    return (
        subscriptions.where("route_state = 'known'")
        .where(F.exists("brokers", lambda broker: broker["queue_count"] > 0))
        .sortWithinPartitions(*_SUBSCRIPTION)
        # Without this, the optimizer may call the function twice: once in a filter and once for the result.
        .withColumn("result", result.asNondeterministic()(request))
    )


def queue_assignment(allocations: DataFrame) -> DataFrame:
    """Return one row per queue, strategy and owner, from `allocated`: `DAY` and the table's own columns."""
    by_strategy = allocations.select(
        *_SUBSCRIPTION,
        "member_ids",
        F.col("variants.connection_count").alias("connection_counts"),
        F.concat("brokers.broker_name", "result.extra_brokers").alias("broker_names"),
        (F.size("result.queue_ids") - F.size("result.extra_brokers")).alias("routed_count"),
        F.col("result.queue_brokers").alias("queue_brokers"),
        F.col("result.queue_ids").alias("queue_ids"),
        F.explode("result.shares").alias("share"),
    )
    by_owner = by_strategy.select("*", F.posexplode("share.owners").alias("position", "owner"))
    queue = F.coalesce(F.get("share.queues", F.col("position")), F.col("position"))
    is_owned = F.col("owner") >= 0
    reasons = F.array(*(F.lit(reason) for reason in REASONS))
    return by_owner.select(
        *_SUBSCRIPTION,
        F.get("broker_names", F.get("queue_brokers", queue)).alias("broker_name"),
        F.get("queue_ids", queue).alias("queue_id"),
        "share.strategy",
        "share.strategy_source",
        "share.is_effective",
        F.when(is_owned, F.get("member_ids", F.col("owner"))).alias("client_id"),
        F.when(is_owned, F.get("connection_counts", F.col("owner"))).alias("client_connection_count"),
        F.when(~is_owned, F.get(reasons, -1 - F.col("owner")))
        .when(queue >= F.col("routed_count"), F.lit(NOT_IN_ROUTE))
        .alias("reason"),
    )


def effective_strategy() -> Column:
    """Return the strategy that the members in `variants` report; `MIXED` if they report different ones."""
    reported = F.array_distinct(
        F.transform(
            F.filter("variants", lambda variant: variant["strategy"].isNotNull()),
            lambda variant: variant["strategy"],
        )
    )
    return (
        F.when(F.col("group_state") == "broadcasting", F.lit(BROADCASTING))
        .when(F.col("division_reason") == "pop_mode", F.lit(POP))
        .when(F.size(reported) > 1, F.lit(MIXED))
        .otherwise(F.get(reported, F.lit(0)))
    )


def route_missing(subscriptions: DataFrame, observed_owners: DataFrame) -> DataFrame:
    """Return the rows of topics without a readable queue: `DAY` and the table's own columns.

    A client whose queue set is unknown or empty keeps the queues that it holds (`RebalanceImpl.rebalanceByTopic`, every version:
    null changes nothing; an empty set makes the strategy throw or, from 5.5.0, is treated as null). It does not hold a queue that
    it has dropped.
    """
    is_unreadable = (F.col("route_state") == "none") | (
        (F.col("route_state") == "known") & ~F.exists("brokers", lambda broker: broker["queue_count"] > 0)
    )
    frozen = subscriptions.where(is_unreadable & F.col("group_state").isin("online", "broadcasting")).select(
        *_SUBSCRIPTION, effective_strategy().alias("strategy"), "member_ids"
    )
    is_held = ~F.col("is_pop") & ~F.coalesce("is_dropped", F.lit(col=False))
    held = observed_owners.where(is_held).select(*_SUBSCRIPTION, "broker_name", "queue_id", "client_id")
    connections = F.size(F.filter("member_ids", lambda member: member == F.col("client_id")))
    return (
        frozen.where("strategy is not null")
        .join(held, list(_SUBSCRIPTION))
        .select(
            *_SUBSCRIPTION,
            "broker_name",
            "queue_id",
            "strategy",
            F.lit("observed").alias("strategy_source"),
            F.lit(col=True).alias("is_effective"),
            "client_id",
            F.when(connections > 0, connections).alias("client_connection_count"),
            F.lit(ROUTE_MISSING).alias("reason"),
        )
    )
