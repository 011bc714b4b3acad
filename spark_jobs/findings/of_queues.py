"""What is unwell in the queues of a group: who owns them, and how many each client has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from spark_jobs.findings.case import ADVICE_BY_CAUSE, advice_for, case, few, found, listed, text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNFAIR_MAX_OVER_MEAN = 2.0
"""From here on one client carries at least twice its share."""

_CAUSES_THAT_PASS: Final = ("not_yet_rebalanced",)
"""Causes that go by themselves, so nobody is woken for them."""


def of_queues(drift: DataFrame) -> DataFrame:
    """The queues that are not owned as they should be, by group, topic, state and cause."""
    queue = F.concat_ws("/", "broker_name", "queue_id")
    # All queues of an offline group are unowned: that is one finding of the group.
    is_news = ~F.col("likely_cause").eqNullSafe("group_offline")
    seen = (
        drift.where(F.col("state").isin("unowned", "multi_owned", "foreign_owner") & is_news)
        .groupBy("consumer_group", "topic", "state", "likely_cause")
        .agg(
            F.count("*").alias("count"),
            F.collect_set(queue).alias("queues"),
            F.collect_set("expected_reason").alias("reasons"),
            F.array_distinct(F.flatten(F.collect_set("observed_client_ids"))).alias("owners"),
            F.max(F.col("group_state") == "broadcasting").alias("is_broadcasting"),
            F.max("client_count").alias("member_count"),
        )
    )
    cause = F.col("likely_cause")
    because = F.when(cause.isNull(), "").otherwise(F.concat(F.lit(" ("), cause, F.lit(")")))
    queues = (because, ": ", listed(F.col("queues")), ".")
    is_unowned = F.col("state") == "unowned"
    is_foreign = F.col("state") == "foreign_owner"
    is_frozen = is_foreign & cause.eqNullSafe("route_vanished")
    columns = {
        "likely_cause": cause,
        "queue_count": F.col("count"),
        "client_total_count": F.col("member_count"),
        "seen_values": few(F.col("reasons")),
        "examples": few(F.col("queues")),
    }
    holders = columns | {"client_count": F.size("owners")}
    urgent = F.when(F.coalesce(cause.isin(*_CAUSES_THAT_PASS), F.lit(col=False)), "warning").otherwise(
        "critical"
    )
    return found(
        seen,
        ("consumer_group", "topic"),
        case(
            "queue_unowned",
            when=is_unowned & ~F.col("is_broadcasting"),
            severity=urgent,
            evidence=(text("count"), " queues have no owner", *queues),
            advice=advice_for(
                cause, "Nobody reads these queues: compare the clients' process tables with the assignment."
            ),
            **columns,
        ),
        case(
            "queue_unread_by_member",
            when=is_unowned & F.col("is_broadcasting"),
            severity="warning",
            evidence=(
                text("count"),
                " queues are not read by every member of this broadcasting group",
                *queues,
            ),
            advice=advice_for(
                cause,
                "Compare the clients' process tables (mqadmin consumerStatus) and restart the odd ones.",
            ),
            **holders,
        ),
        case(
            "queue_owned_twice",
            when=F.col("state") == "multi_owned",
            severity=urgent,
            evidence=(
                text("count"),
                " queues have more than one owner",
                *queues[:-1],
                " by ",
                listed(F.col("owners")),
                ".",
            ),
            advice=advice_for(
                cause,
                "Messages of these queues are consumed more than once: find what the owners see differently.",
            ),
            **holders,
        ),
        case(
            "owner_unexpected",
            when=is_foreign & ~is_frozen,
            severity="warning",
            evidence=(
                text("count"),
                " queues are held by a client that the strategy would not have chosen",
                *queues[:-1],
                " by ",
                listed(F.col("owners")),
                ".",
            ),
            advice=advice_for(
                cause,
                "Within seconds of a change it is normal; else compare routes and member lists of that client.",
            ),
            **holders,
        ),
        case(
            "assignment_frozen",
            when=is_frozen,
            severity="warning",
            evidence=(
                text("count"),
                " queues of a topic without a readable route are still held: ",
                listed(F.col("queues")),
                " by ",
                listed(F.col("owners")),
                ".",
            ),
            advice=ADVICE_BY_CAUSE["route_vanished"],
            **holders,
        ),
    )


def of_untold_queues(drift: DataFrame) -> DataFrame:
    """Groups whose owners cannot be computed: the parameters or the rule are not known, or no member reports a strategy."""
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
    seen = (
        drift.withColumn("expected_reason", reason)
        .where(F.col("expected_reason").isin("settings_missing", "strategy_unknown", "strategy_not_reported"))
        .groupBy("consumer_group", "expected_reason")
        .agg(
            F.max("strategy").alias("strategy"),
            F.count("*").alias("count"),
            F.collect_set("topic").alias("topics"),
            F.max("client_count").alias("member_count"),
        )
    )
    reason = F.col("expected_reason")
    columns = {
        "queue_count": F.col("count"),
        "topic_count": F.size("topics"),
        "seen_values": F.array_compact(F.array("strategy")),
        "examples": few(F.col("topics")),
    }
    evidence = ("Members report the strategy ", F.col("strategy"), ".")
    return found(
        seen,
        ("consumer_group",),
        case(
            "settings_missing",
            when=reason == "settings_missing",
            severity="info",
            evidence=evidence,
            advice="Give its parameters (list, rooms or virtual nodes) in the settings file: no client tells them.",
            **columns,
        ),
        case(
            "settings_missing",
            when=reason == "strategy_not_reported",
            severity="info",
            evidence=(
                "All ",
                text("member_count"),
                " members answered, and none reports a strategy (clients in Go and C++ do not).",
            ),
            advice="Give the group's strategy in the settings file; until then only what is held is known, not who should hold it.",
            client_total_count=F.col("member_count"),
            **columns,
        ),
        case(
            "strategy_unknown",
            when=reason == "strategy_unknown",
            severity="info",
            evidence=evidence,
            advice="Add the strategy by an entry point; see docs/strategies.md.",
            **columns,
        ),
    )


def of_shares(fairness: DataFrame) -> DataFrame:
    """How evenly the strategy in effect spreads the queues of a topic."""
    # A retry topic has one queue per broker, so most clients own none of it: that is no news.
    seen = fairness.where("is_effective and strategy <> 'BROADCASTING' and not startswith(topic, '%RETRY%')")
    most, least = F.col("max_queues_per_client"), F.col("min_queues_per_client")
    has_more_clients = F.col("client_count") > F.col("queue_count")
    columns = {
        "client_total_count": F.col("client_count"),
        "queue_total_count": F.col("queue_count"),
        "seen_values": F.array("strategy"),
    }
    return found(
        seen,
        ("consumer_group", "topic"),
        case(
            "clients_idle",
            when=(F.col("idle_client_count") > 0) & F.col("queue_count").isNotNull(),
            severity="info",
            evidence=(
                text("idle_client_count"),
                " of ",
                text("client_count"),
                " clients own none of the ",
                text("queue_count"),
                " queues.",
            ),
            advice="Add queues to the topic or take clients away; idle clients add nothing but cost.",
            likely_cause=F.when(has_more_clients, "more_clients_than_queues"),
            client_count=F.col("idle_client_count"),
            **columns,
        ),
        case(
            "load_unfair",
            when=(F.col("max_over_mean") >= _UNFAIR_MAX_OVER_MEAN) & (most - least > 1),
            severity="warning",
            evidence=(
                "One client owns ",
                most.cast("string"),
                " queues, another ",
                least.cast("string"),
                ", the mean is ",
                F.format_number("mean_queues_per_client", 2),
                ".",
            ),
            advice="Compare the strategies in assignment_fairness; AVG differs by one queue at most.",
            max_queues_per_client=most,
            mean_queues_per_client=F.col("mean_queues_per_client"),
            min_queues_per_client=least,
            **columns,
        ),
    )
