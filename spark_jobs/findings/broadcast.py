"""Findings about broadcasting clients: their offset files and their progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from spark_jobs.day_key import DAY
from spark_jobs.findings.finding_builder import (
    collect_findings,
    counted,
    finding_when,
    first_n,
    join_first_n,
    queue_name,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def of_offset_files(files: DataFrame) -> DataFrame:
    """Return problems with offset files, one finding for all hosts with the same client id and problem."""
    host = F.coalesce("host", F.lit("unknown host"))
    is_undecided = (F.col("state") == "unknown") & (
        F.col("main_state").eqNullSafe("undecided") | F.col("bak_state").eqNullSafe("undecided")
    )
    problems = (
        files.withColumn("state", F.when(is_undecided, "undecided").otherwise(F.col("state")))
        .where("state not in ('ok', 'unknown')")
        # A missing file and an empty one are the same problem for an operator.
        .withColumn("state", F.when(F.col("state") == "missing", "empty").otherwise(F.col("state")))
        .groupBy(*DAY, "consumer_group", "client_id", "state")
        .agg(
            F.collect_set(host).alias("hosts"),
            F.collect_set("reason").alias("reasons"),
            F.max("process_count").alias("process_count"),
            F.max("age_ms").alias("age_ms"),
            F.max("message_model").alias("message_model"),
        )
    )

    def finding(kind: str, state: str, severity: str, problem: tuple[Column | str, ...]) -> Column:
        return finding_when(
            kind,
            when=F.col("state") == state,
            severity=severity,
            evidence=(
                *problem,
                " On ",
                join_first_n(F.col("hosts")),
                ": ",
                join_first_n(F.col("reasons")),
                ".",
            ),
            process_count=F.when(F.col("process_count") > 0, F.col("process_count")),
            seen_values=first_n(F.col("reasons")),
            examples=first_n(F.col("hosts")),
        )

    hours = F.format_number(F.col("age_ms") / 3_600_000, 1)
    shared = (
        F.col("process_count").cast("string"),
        " processes have this client id, more than there are hosts with its files.",
    )
    return collect_findings(
        problems,
        ("consumer_group", "client_id"),
        finding(
            "offset_files_corrupt",
            "corrupt_both",
            "critical",
            ("The client could not start from these files.",),
        ),
        finding(
            "offset_file_shared",
            "shared_file",
            "critical",
            shared,
        ),
        finding(
            "offset_file_recovered",
            "recovered_from_bak",
            "warning",
            ("Only the .bak file is good.",),
        ),
        finding(
            "offset_file_lost",
            "empty",
            "warning",
            ("The client has no stored offsets.",),
        ),
        finding(
            "offset_file_undecided",
            "undecided",
            "warning",
            ("Whether the client can read its file is not known.",),
        ),
        finding(
            "offset_file_stale",
            "stale",
            "warning",
            ("The client is online and has not written for ", hours, " hours."),
        ),
        finding(
            "offset_file_unused",
            "orphan_dir",
            "info",
            ("No client uses this file any more.",),
        ),
        finding(
            "offset_file_unused",
            "clustering_group_with_file",
            "info",
            ("The group consumes in CLUSTERING mode, which keeps its offsets on the brokers.",),
        ),
    )


def of_broadcast_offsets(offsets: DataFrame) -> DataFrame:
    """Return problems with the stored offsets of a client, by topic."""
    queue = queue_name()
    earlier_offset = F.greatest("previous_offset", "highest_earlier_offset")
    problems = (
        offsets.where("state in ('behind_min', 'ahead_of_max', 'regressed', 'stale')")
        .groupBy(*DAY, "consumer_group", "topic", "client_id", "state")
        .agg(
            F.count("*").alias("count"),
            F.collect_set(queue).alias("queues"),
            _sum(F.col("lost_message_count")).alias("lost"),
            _sum(F.abs("lag_message_count")).alias("lag"),
            _sum(F.try_subtract(earlier_offset, F.col("stored_offset"))).alias("back"),
        )
    )

    def finding(kind: str, state: str, severity: str, problem: tuple[Column | str, ...]) -> Column:
        return finding_when(
            kind,
            when=F.col("state") == state,
            severity=severity,
            evidence=(
                *problem,
                " in ",
                counted(F.col("count"), "queue", "queues"),
                ": ",
                join_first_n(F.col("queues")),
                ".",
            ),
            queue_count=F.col("count"),
            examples=first_n(F.col("queues")),
        )

    def messages(number: str) -> Column:
        return counted(F.col(number), "message", "messages")

    return collect_findings(
        problems,
        ("consumer_group", "topic", "client_id"),
        finding(
            "broadcast_messages_lost",
            "behind_min",
            "critical",
            ("The brokers removed ", messages("lost"), " past the stored offset,"),
        ),
        finding(
            "broadcast_offset_ahead",
            "ahead_of_max",
            "warning",
            ("The client has stored offsets past the end of the log, by ", messages("lag"), ","),
        ),
        finding(
            "broadcast_offset_regressed",
            "regressed",
            "warning",
            ("The stored offset went back, by ", messages("back")),
        ),
        finding(
            "broadcast_client_stuck",
            "stale",
            "warning",
            ("The stored offset has not changed since the earlier day and is ", messages("lag"), " behind"),
        ),
    )


def _sum(messages: Column) -> Column:
    """Add numbers up beyond 64 bits: a file may have the greatest offset of Java in several queues."""
    return F.sum(messages.cast("decimal(19, 0)"))
