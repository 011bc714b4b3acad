"""Findings about queues that are not consumed although a client holds them or received their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from spark_jobs.assignment.presence import is_users_group
from spark_jobs.day_key import DAY
from spark_jobs.findings.finding_builder import (
    collect_findings,
    counted,
    finding_when,
    first_n,
    join_first_n,
    queue_name,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

STALLED_AFTER_MS: Final = 600_000
"""A finding needs messages that wait, and a client that consumes nothing, for this time; clocks differ by less."""

_OF_CLIENT: Final = (*DAY, "consumer_group", "client_id")


def of_stalled_queues(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the queues whose messages wait although their push consumer pulls.

    Times of a client are compared with the client's last pull, and times of a broker with the time of the capture. Queues with a recent
    message are excluded, because the arrival time of their oldest message is unknown.
    """

    def queues(table: str) -> DataFrame:
        return silver[table].where("not is_pop and not coalesce(is_dropped, false)")

    processes = silver["client_process"].where("state = 'online'").select(*_OF_CLIENT).distinct()
    held = (
        queues("observed_owner")
        .join(processes, list(_OF_CLIENT), "left_anti")
        .unionByName(queues("process_owner").drop("process"))
    )
    pulled = held.groupBy(*_OF_CLIENT).agg(F.max("last_pull_at").alias("client_now"))
    pushes = silver["consumer_client"].where(
        "state = 'online' and consume_type = 'CONSUME_PASSIVELY' and coalesce(message_model, 'CLUSTERING') = 'CLUSTERING'"
    )
    clients = pushes.select(*_OF_CLIENT, F.col("captured_at").alias("asked_at"))
    offsets = silver["queue_offset"].select(
        *DAY, "topic", "broker_name", "queue_id", "max_offset", F.col("last_stored_at").alias("stored_at")
    )
    waiting = F.try_subtract(F.col("max_offset"), F.col("commit_offset"))
    stalled = (
        held.join(clients, list(_OF_CLIENT))
        .join(pulled, list(_OF_CLIENT))
        .join(offsets, [*DAY, "topic", "broker_name", "queue_id"])
        .where((F.col("commit_offset") >= 0) & (waiting > 0))
        .where(_age_ms("last_consumed_at", "client_now") >= STALLED_AFTER_MS)
        .where(_age_ms("stored_at", "asked_at") >= STALLED_AFTER_MS)
    )
    by_queue = stalled.groupBy(*DAY, "consumer_group", "topic", "broker_name", "queue_id").agg(
        # Several clients or processes may hold the queue.
        F.min(waiting).alias("waiting"),
        F.collect_set("client_id").alias("clients"),
        F.min(_age_ms("last_consumed_at", "client_now")).alias("idle_ms"),
    )
    problems = by_queue.groupBy(*DAY, "consumer_group", "topic").agg(
        F.count("*").cast("int").alias("count"),
        F.try_sum("waiting").alias("waiting"),
        F.collect_set(queue_name()).alias("queues"),
        F.array_distinct(F.flatten(F.collect_set("clients"))).alias("clients"),
        (F.min("idle_ms") / 60_000).cast("bigint").alias("minutes"),
    )
    return collect_findings(
        problems,
        ("consumer_group", "topic"),
        finding_when(
            "consumption_stalled",
            when=F.lit(col=True),
            severity="warning",
            evidence=(
                counted(F.col("waiting"), "message waits", "messages wait"),
                " in ",
                counted(F.col("count"), "queue", "queues"),
                ", of which ",
                join_first_n(F.col("clients")),
                " has consumed nothing for ",
                text("minutes"),
                " minutes: ",
                join_first_n(F.col("queues")),
                ".",
            ),
            queue_count=F.col("count"),
            client_count=F.size("clients"),
            examples=first_n(F.col("queues")),
        ),
    )


def of_blocked_queues(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the FIFO queues with a redelivered first message that is neither acknowledged nor committed, while others wait behind it."""
    queue = (*DAY, "consumer_group", "topic", "broker_name", "queue_id")
    progress = silver["consume_progress"].select(*queue, "broker_offset", "consumer_offset")
    # The end of the queue is one beyond its last message.
    waiting = F.try_subtract(F.col("broker_offset"), F.col("last_offset")) - 1
    blocked = (
        silver["queue_order_lock"]
        .where((F.col("redelivery_count") > 0) & is_users_group())
        .join(progress, list(queue))
        .where((F.col("consumer_offset") <= F.col("head_offset")) & (waiting > 0))
    )
    problems = blocked.groupBy(*DAY, "consumer_group", "topic").agg(
        F.count("*").cast("int").alias("count"),
        F.try_sum(waiting).alias("waiting"),
        F.max("redelivery_count").alias("redeliveries"),
        F.collect_set(queue_name()).alias("queues"),
    )
    return collect_findings(
        problems,
        ("consumer_group", "topic"),
        finding_when(
            "order_queue_blocked",
            when=F.lit(col=True),
            severity="warning",
            evidence=(
                counted(F.col("count"), "FIFO queue waits", "FIFO queues wait"),
                " for a message that was handed out again, up to ",
                counted(F.col("redeliveries"), "time", "times"),
                ", and is not acknowledged; behind it ",
                counted(F.col("waiting"), "message waits", "messages wait"),
                ": ",
                join_first_n(F.col("queues")),
                ".",
            ),
            queue_count=F.col("count"),
            examples=first_n(F.col("queues")),
        ),
    )


def _age_ms(earlier: str, later: str) -> Column:
    return F.unix_millis(later) - F.unix_millis(earlier)
