"""Elect the route of a topic if name servers return different ones, for consumers and for producers.

A client polls one name server. The ledger uses the list of brokers and queue counts that most name servers return; with
equal votes the one with the most queues, then the one of the smallest address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from spark_jobs.day_key import DAY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def java_order(column: Column) -> Column:
    """Return a sort key that orders strings as `String.compareTo` does: by UTF-16 code units."""
    return F.encode(column, "UTF-16BE")


def elected_routes(topic_route: DataFrame, queue_count: str, *beside: str) -> DataFrame:
    """Return one row per topic of a day: the answer that is taken.

    Args:
        topic_route: rows of `silver.topic_route`, perhaps with more columns.
        queue_count: the column with a broker's number of queues; null where a client cannot tell.
        beside: columns that come along from the smallest address that gives the answer; they have no vote.

    Returns:
        `DAY`; topic; brokers array<struct<key, broker_name, queue_count, beside…>> in Java order; answer_count, the number
        of different answers.
    """
    broker = F.struct(
        java_order(F.col("broker_name")).alias("key"),
        "broker_name",
        F.col(queue_count).alias("queue_count"),
        *beside,
    )
    answers = (
        topic_route.groupBy(*DAY, "topic", "nameserver")
        .agg(F.array_sort(F.collect_list(broker)).alias("brokers"))
        .withColumn("ballot", F.transform("brokers", _vote))
        .groupBy(*DAY, "topic")
        .agg(F.array_sort(F.collect_list(F.struct("nameserver", "ballot", "brokers"))).alias("answers"))
    )
    ballots = F.array_distinct(F.transform("answers", lambda answer: answer["ballot"]))

    def counted(ballot: Column) -> Column:
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
        F.array_min(F.transform(ballots, counted))["brokers"].alias("brokers"),
        F.size(ballots).alias("answer_count"),
    )


def _vote(broker: Column) -> Column:
    return F.struct(broker["broker_name"].alias("broker_name"), broker["queue_count"].alias("queue_count"))
