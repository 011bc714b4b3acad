"""Elect the route of a topic if name servers return different ones, for consumers and for producers.

A client polls one name server. The ledger uses the list of brokers and queue counts that most name servers return; with equal
votes, the one with the most queues, then the one of the name server with the smallest address.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.system_topics import OWN_TOPIC_PREFIXES, SYSTEM_TOPICS
from spark_jobs.day_key import DAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

NO_TOPIC_ROUTE: Final = 17
"""`ResponseCode.TOPIC_NOT_EXIST`: the name server has no route for the topic."""


def java_order(column: Column) -> Column:
    """Return a sort key that orders strings as `String.compareTo` does: by UTF-16 code units."""
    return F.encode(column, "UTF-16BE")


def has_own_name() -> Column:
    """Return whether a topic has the name of one of RocketMQ's own, apart from those named after brokers and clusters."""
    begins = reduce(or_, (F.startswith("topic", F.lit(prefix)) for prefix in OWN_TOPIC_PREFIXES))
    return begins | F.col("topic").isin(*sorted(SYSTEM_TOPICS))


def client_routes(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the route that a client gets for each topic, one row per topic of a day.

    Columns: `DAY`; topic; route_state: `known`, `none` (the name servers that answered have no route) or `unknown` (no name server
    answered); brokers: array<struct<key, broker_name, queue_count>> in Java's order, with queue_count 0 for a broker that may not be
    read; queue_set_count: number of different queue sets among the name servers.
    """
    known = elected_routes(silver["topic_route"].where("is_in_route"), "subscribe_queue_count")
    is_answer = (F.col("state") == "payload") | F.coalesce(
        F.col("error_code") == NO_TOPIC_ROUTE, F.lit(col=False)
    )
    route_requests = (
        silver["export_record"]
        .where("kind = 'nameserver_route'")
        .groupBy(*DAY, "topic")
        .agg(F.max(is_answer).alias("was_answered"))
    )
    state = (
        F.when(F.col("brokers").isNotNull(), "known").when(F.col("was_answered"), "none").otherwise("unknown")
    )
    return route_requests.join(known, [*DAY, "topic"], "left").select(
        *DAY, "topic", state.alias("route_state"), "brokers", F.col("answer_count").alias("queue_set_count")
    )


def elected_routes(topic_route: DataFrame, queue_count: str, *extra_columns: str) -> DataFrame:
    """Return the elected route of each topic, one row per topic of a day.

    Args:
        topic_route: Rows of `silver.topic_route`; further columns are allowed.
        queue_count: Column with a broker's number of queues; null if a client cannot determine it.
        extra_columns: Columns without a vote, taken from the smallest address that returns the elected route.

    Returns:
        `DAY`; topic; brokers: array<struct<key, broker_name, queue_count, extra columns>> in Java's order; answer_count: number of
        different answers.
    """
    broker = F.struct(
        java_order(F.col("broker_name")).alias("key"),
        "broker_name",
        F.col(queue_count).alias("queue_count"),
        *extra_columns,
    )
    answers = (
        topic_route.groupBy(*DAY, "topic", "nameserver")
        .agg(F.array_sort(F.collect_list(broker)).alias("brokers"))
        .withColumn("ballot", F.transform("brokers", _vote))
        .groupBy(*DAY, "topic")
        .agg(F.array_sort(F.collect_list(F.struct("nameserver", "ballot", "brokers"))).alias("answers"))
    )
    ballots = F.array_distinct(F.transform("answers", lambda answer: answer["ballot"]))

    def candidate(ballot: Column) -> Column:
        voters = F.filter("answers", lambda answer: answer["ballot"].eqNullSafe(ballot))
        total = F.aggregate(
            ballot, F.lit(0), lambda sum_so_far, vote: sum_so_far + F.coalesce(vote["queue_count"], F.lit(0))
        )
        first = F.get(voters, F.lit(0))
        return F.struct(
            (-F.size(voters)).alias("votes"),
            (-total).alias("queue_count"),
            first["nameserver"].alias("nameserver"),
            first["brokers"].alias("brokers"),
        )

    return answers.select(
        *DAY,
        "topic",
        F.array_min(F.transform(ballots, candidate))["brokers"].alias("brokers"),
        F.size(ballots).alias("answer_count"),
    )


def _vote(broker: Column) -> Column:
    return F.struct(broker["broker_name"].alias("broker_name"), broker["queue_count"].alias("queue_count"))
