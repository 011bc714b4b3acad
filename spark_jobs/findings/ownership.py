"""Findings about the queues of a group: owners and queue counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rebalance_ledger.tables.finding_advice import GIVE_STRATEGY, SEPARATE_PROCESSES
from spark_jobs.assignment.allocation import MIXED
from spark_jobs.assignment.request_modes import reports_several
from spark_jobs.day_key import DAY
from spark_jobs.findings.finding_builder import (
    advice_for,
    collect_findings,
    counted,
    finding_when,
    first_n,
    join_first_n,
    queue_name,
    text,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_UNFAIR_MAX_OVER_MEAN = 2.0
"""Smallest `max_over_mean` of a finding: one client has twice its share."""

_TEMPORARY_CAUSES: Final = ("not_yet_rebalanced",)
"""Causes of temporary problems, which need no alert."""


def of_queues(drift: DataFrame, progress: DataFrame, offsets: DataFrame, presence: DataFrame) -> DataFrame:
    """Return queues without the expected owner, by group, topic, state and cause.

    Args:
        drift: `ownership_drift`.
        progress: `silver.consume_progress`.
        offsets: `silver.queue_offset`.
        presence: `silver.group_presence`.
    """
    queue = queue_name()
    # All queues of an offline group are unowned; the group has one finding for them (`group_offline`).
    is_offline = F.col("likely_cause").eqNullSafe("group_offline")
    mismatches = drift.where(
        F.col("state").isin("unowned", "multiple_owners", "unexpected_owner") & ~is_offline
    )
    problems = (
        _with_waiting_messages(mismatches, progress, offsets, presence)
        .groupBy(*DAY, "consumer_group", "topic", "state", "likely_cause")
        .agg(
            F.count("*").alias("count"),
            F.collect_set(queue).alias("queues"),
            F.collect_set("expected_reason").alias("reasons"),
            F.array_distinct(F.flatten(F.collect_set("observed_client_ids"))).alias("owners"),
            F.max(F.col("group_state") == "broadcasting").alias("is_broadcasting"),
            F.max("client_count").alias("member_count"),
            F.try_sum("waiting_count").alias("waiting_count"),
            F.count("waiting_count").alias("known_count"),
        )
    )
    count, cause = F.col("count"), F.col("likely_cause")
    because = F.when(cause.isNull(), "").otherwise(F.concat(F.lit(" ("), cause, F.lit(")")))
    queues = (because, ": ", join_first_n(F.col("queues")), ".")
    is_unowned = F.col("state") == "unowned"
    is_unexpected = F.col("state") == "unexpected_owner"
    is_stale = is_unexpected & cause.eqNullSafe("route_missing")
    columns = {
        "likely_cause": cause,
        "queue_count": F.col("count"),
        "client_total_count": F.col("member_count"),
        "seen_values": first_n(F.col("reasons")),
        "examples": first_n(F.col("queues")),
    }
    waiting = F.when(
        F.col("waiting_count").isNotNull(),
        F.concat(
            F.when(F.col("known_count") < count, " At least ").otherwise(" "),
            counted(F.col("waiting_count"), "message waits there.", "messages wait there."),
        ),
    ).otherwise(" How many messages wait there is unknown.")
    holder_columns = columns | {"client_count": F.size("owners")}
    severity = F.when(F.coalesce(cause.isin(*_TEMPORARY_CAUSES), F.lit(col=False)), "warning").otherwise(
        "critical"
    )
    return collect_findings(
        problems,
        ("consumer_group", "topic"),
        finding_when(
            "unowned",
            when=is_unowned & ~F.col("is_broadcasting"),
            severity=severity,
            evidence=(counted(count, "queue has no owner", "queues have no owner"), *queues, waiting),
            advice=advice_for("unowned", cause),
            waiting_message_count=F.col("waiting_count"),
            **columns,
        ),
        finding_when(
            "broadcast_queue_not_consumed",
            when=is_unowned & F.col("is_broadcasting"),
            severity="warning",
            evidence=(
                counted(count, "queue is not read", "queues are not read"),
                " by every member of this broadcasting group",
                *queues,
            ),
            advice=advice_for("broadcast_queue_not_consumed", cause),
            **holder_columns,
        ),
        finding_when(
            "multiple_owners",
            when=F.col("state") == "multiple_owners",
            severity=severity,
            evidence=(
                counted(count, "queue has", "queues have"),
                " more than one owner",
                *queues[:-1],
                " by ",
                join_first_n(F.col("owners")),
                ".",
            ),
            advice=advice_for("multiple_owners", cause),
            **holder_columns,
        ),
        finding_when(
            "unexpected_owner",
            when=is_unexpected & ~is_stale,
            severity="warning",
            evidence=(
                counted(count, "queue is held", "queues are held"),
                " by a client that the strategy would not have chosen",
                *queues[:-1],
                " by ",
                join_first_n(F.col("owners")),
                ".",
            ),
            advice=advice_for("unexpected_owner", cause),
            **holder_columns,
        ),
        finding_when(
            "assignment_stale",
            when=is_stale,
            severity="warning",
            evidence=(
                counted(count, "queue", "queues"),
                " of a topic without a readable route ",
                F.when(count == 1, "is").otherwise("are"),
                " still held: ",
                join_first_n(F.col("queues")),
                " by ",
                join_first_n(F.col("owners")),
                ".",
            ),
            **holder_columns,
        ),
    )


def _with_waiting_messages(
    queues: DataFrame, progress: DataFrame, offsets: DataFrame, presence: DataFrame
) -> DataFrame:
    """Add waiting_count: the number of messages in a queue that the broker still has and the group has yet to consume.

    A broker reports 0 where the group has no committed offset. Where such a group starts depends on its ConsumeFromWhere, and on what
    the broker has in memory (`ConsumerManageProcessor.queryConsumerOffset`); only with CONSUME_FROM_FIRST_OFFSET it is the oldest
    message in any case. The count is null if it is not known where the group starts, the offsets are unknown, or their difference is
    beyond 64 bits.
    """
    queue = [*DAY, "topic", "broker_name", "queue_id"]
    key = [*queue, "consumer_group"]
    first_readers = (
        presence.where("state = 'online'")
        .groupBy(*DAY, "consumer_group")
        .agg(
            F.bool_and(
                F.col("consume_from_where").eqNullSafe("CONSUME_FROM_FIRST_OFFSET")
                & F.col("consume_type").eqNullSafe("CONSUME_PASSIVELY")
            ).alias("starts_at_first")
        )
    )
    known = (
        queues.join(progress.select(*key, "broker_offset", "consumer_offset"), key, "left")
        .join(offsets.select(*queue, "min_offset", "max_offset"), queue, "left")
        .join(first_readers, [*DAY, "consumer_group"], "left")
    )
    # If the committed message was removed, the oldest message is the first one. greatest() ignores nulls.
    first, last = F.greatest("consumer_offset", "min_offset"), F.coalesce("broker_offset", "max_offset")
    after_committed = F.when(last >= first, F.try_subtract(last, first)).when(last < first, 0)
    in_queue = F.when(
        F.col("max_offset") >= F.col("min_offset"), F.try_subtract("max_offset", "min_offset")
    ).when(F.col("max_offset") < F.col("min_offset"), 0)
    starts_at_first = F.col("starts_at_first") & F.col("consumer_offset").isNotNull()
    return known.withColumn(
        "waiting_count",
        F.when(F.col("consumer_offset") > 0, after_committed).when(
            starts_at_first | (in_queue == 0), in_queue
        ),
    )


def of_undetermined_queues(drift: DataFrame) -> DataFrame:
    """Return groups whose owners cannot be computed: parameters or rule are unknown, or no member reports a strategy."""
    is_open = (
        F.col("strategy").isNull()
        & (F.col("group_state") == "online")
        & F.col("is_routed")
        & (
            F.col("unknown_reason").eqNullSafe("strategy_not_reported")
            | ((F.col("state") == "unowned") & (F.col("unasked_client_count") == 0))
        )
    )
    reason = F.when(is_open, "strategy_not_reported").otherwise(F.col("expected_reason"))
    problems = (
        drift.withColumn("expected_reason", reason)
        .where(
            F.col("expected_reason").isin(
                "settings_missing", "strategy_unknown", "release_unknown", "strategy_not_reported"
            )
            # Mixed strategies have a finding of their own.
            | ((F.col("expected_reason") == "member_strategy_unknown") & (F.col("strategy") != MIXED))
        )
        .groupBy(*DAY, "consumer_group", "expected_reason")
        .agg(
            F.max("strategy").alias("strategy"),
            F.count("*").alias("count"),
            F.collect_set("topic").alias("topics"),
            F.max("client_count").alias("member_count"),
        )
    )
    reason = F.col("expected_reason")
    is_unknown = reason.isin("strategy_unknown", "release_unknown")
    is_several = reports_several(F.col("strategy"))
    columns = {
        "queue_count": F.col("count"),
        "topic_count": F.size("topics"),
        "seen_values": F.array_compact(F.array("strategy")),
        "examples": first_n(F.col("topics")),
    }
    evidence: tuple[Column | str, ...] = (
        F.when(
            reason == "member_strategy_unknown", "The rule of some members is known, that of others is not."
        )
        .when(
            reason == "release_unknown", "The members' release is not known, and releases divide differently."
        )
        .otherwise(F.concat(F.lit("Members report the strategy "), "strategy", F.lit("."))),
    )
    return collect_findings(
        problems,
        ("consumer_group",),
        finding_when(
            "settings_missing",
            when=reason.isin("settings_missing", "member_strategy_unknown"),
            severity="info",
            evidence=evidence,
            **columns,
        ),
        finding_when(
            "settings_missing",
            when=reason == "strategy_not_reported",
            severity="info",
            evidence=(
                F.when(
                    F.col("member_count") == 1, "The only member answered, and reports no strategy"
                ).otherwise(
                    F.concat(
                        F.lit("All "),
                        text("member_count"),
                        F.lit(" members answered, and none reports a strategy"),
                    )
                ),
                " (clients in Go and C++ do not).",
            ),
            advice=GIVE_STRATEGY,
            client_total_count=F.col("member_count"),
            **columns,
        ),
        finding_when(
            "strategy_unknown",
            when=is_unknown & ~is_several,
            severity="info",
            evidence=evidence,
            **columns,
        ),
        finding_when(
            "strategy_unknown",
            when=is_unknown & is_several,
            severity="info",
            evidence=("One client id reports the strategies ", F.col("strategy"), "."),
            advice=SEPARATE_PROCESSES,
            **columns,
        ),
    )


def of_shares(fairness: DataFrame) -> DataFrame:
    """Return topics that the effective strategy spreads unevenly, or in which clients own no queue."""
    # Most clients own no queue of a retry topic, because it has one queue per broker. This is normal.
    problems = fairness.where(
        "is_effective and strategy <> 'BROADCASTING' and not startswith(topic, '%RETRY%')"
    )
    most, least = F.col("max_queues_per_client"), F.col("min_queues_per_client")
    has_more_clients = F.col("client_count") > F.col("queue_count")
    columns = {
        "client_total_count": F.col("client_count"),
        "queue_total_count": F.col("queue_count"),
        "seen_values": F.array("strategy"),
    }
    return collect_findings(
        problems,
        ("consumer_group", "topic"),
        finding_when(
            "idle_clients",
            when=(F.col("idle_client_count") > 0) & F.col("queue_count").isNotNull(),
            severity="info",
            evidence=(
                text("idle_client_count"),
                " of ",
                counted(F.col("client_count"), "client", "clients"),
                F.when(F.col("idle_client_count") == 1, " owns none of ").otherwise(" own none of "),
                counted(F.col("queue_count"), "queue", "queues"),
                ".",
            ),
            likely_cause=F.when(has_more_clients, "more_clients_than_queues"),
            client_count=F.col("idle_client_count"),
            **columns,
        ),
        finding_when(
            "load_imbalanced",
            when=(F.col("max_over_mean") >= _UNFAIR_MAX_OVER_MEAN) & (most - least > 1),
            severity="warning",
            evidence=(
                "One client owns ",
                counted(most, "queue", "queues"),
                ", another ",
                least.cast("string"),
                ", the mean is ",
                F.format_number("mean_queues_per_client", 2),
                ".",
            ),
            max_queues_per_client=most,
            mean_queues_per_client=F.col("mean_queues_per_client"),
            min_queues_per_client=least,
            **columns,
        ),
    )
