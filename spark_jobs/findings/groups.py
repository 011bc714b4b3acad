"""Findings about a group as a whole: members, strategies, subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rebalance_ledger.tables import QUEUE_ASSIGNMENT
from rebalance_ledger.tables.finding_advice import (
    ADVICE,
    ASK_PROXIES,
    AWAIT_CONNECTIONS,
    AWAIT_OFFSETS,
    DELETE_GROUP,
)
from spark_jobs.assignment.members import (
    ids_where,
    repeated_ids,
    shared_client_ids,
    strategies_where,
    unsubscribed_ids,
)
from spark_jobs.day_key import DAY
from spark_jobs.findings.export import failed_questions
from spark_jobs.findings.finding_builder import (
    collect_findings,
    counted,
    finding_when,
    first_n,
    join_first_n,
    sources,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from spark_jobs.baseline import BaselineRows

_MEANING_OF_REASON: Final[Mapping[str, str]] = {
    "broker_not_asked": "a broker could not be asked",
    "online_at_other_brokers": "they are at brokers outside of a topic's route",
    "may_be_behind_a_proxy": "no broker lists any, but there are proxies that did not answer",
    "pop_retry_topic_exists": "no broker lists any, but the group has a retry topic of POP, as groups behind a proxy have",
    "messages_in_flight": "no broker lists any, but messages are handed out that are not consumed yet",
    "offsets_moved": "no broker lists any, but its offsets have moved since the baseline day: it stopped since then, or it "
    "consumes through a proxy",
}
"""Value of `group_state_reason` -> its meaning as part of a sentence."""


def _meaning_of_reason(reason: Column) -> Column:
    meanings = F.create_map(*(F.lit(word) for pair in _MEANING_OF_REASON.items() for word in pair))
    return F.coalesce(F.try_element_at(meanings, reason), reason)


def of_groups(subscriptions: DataFrame, records: DataFrame, baseline: BaselineRows) -> DataFrame:
    """Return problems in the answers of a group's members, and in the answers of brokers about the group.

    Args:
        subscriptions: See `subscriptions.subscriptions`.
        records: `silver.export_record`.
        baseline: The rows of the days' baselines.
    """
    failed = failed_questions(records).where("kind in ('consumer_connection', 'consumer_running_info')")
    is_of_broker = F.col("kind") == "consumer_connection"
    is_refused = F.col("likely_cause").eqNullSafe("permission_denied")
    failures = failed.groupBy(*DAY, "consumer_group").agg(
        F.collect_set(F.when(is_of_broker, F.struct("broker_name", "likely_cause"))).alias("silent_sources"),
        F.bool_and(is_of_broker | is_refused).alias("is_refused"),
        F.min(F.when(is_of_broker, F.col("error_message"))).alias("message"),
    )
    # gRPC clients do not support the request, and clients of a proxy cannot be reached.
    unasked = ids_where(lambda member: (member["client_state"] == "unknown") & member["is_askable"])
    reports = F.array_distinct(
        F.filter(
            F.transform("variants", lambda member: member["strategy"]), lambda strategy: strategy.isNotNull()
        )
    )
    every = strategies_where(lambda _: F.lit(col=True))
    # By topic, because a group that pops one topic pulls its retry topic with its own strategy, which is not a mixture.
    mixed = F.when((F.size(reports) > 1) & F.col("division_reason").isNull(), every)
    groups = (
        subscriptions.groupBy(*DAY, "consumer_group")
        .agg(
            F.array_sort(F.array_distinct(F.flatten(F.collect_set(mixed)))).alias("strategies"),
            F.collect_set("group_state").alias("states"),
            F.array_sort(F.collect_set("group_state_reason")).alias("reasons"),
            F.max("is_unmoved_since_baseline").alias("is_unmoved_since_baseline"),
            F.max("baseline_ds").alias("baseline_ds"),
            F.max("member_list_count").alias("list_count"),
            F.array_distinct(F.flatten(F.collect_set("member_ids"))).alias("members"),
            F.array_distinct(F.flatten(F.collect_set(unasked))).alias("unasked"),
            F.count("*").alias("topic_count"),
        )
        .join(failures, [*DAY, "consumer_group"], "left")
        .join(_was_offline(baseline), [*DAY, "consumer_group"], "left")
    )
    is_absent_since_baseline = F.coalesce("was_offline", F.lit(col=False)) & F.col(
        "is_unmoved_since_baseline"
    )
    has_unknown = F.array_contains("states", "unknown")
    is_broadcasting = F.array_contains("states", "broadcasting")
    member_count = F.size("members")
    return collect_findings(
        groups,
        ("consumer_group",),
        finding_when(
            "mixed_strategies",
            when=~is_broadcasting & (F.size("strategies") > 1),
            severity="critical",
            evidence=("Members report ", F.array_join("strategies", " and "), "."),
            client_total_count=member_count,
            value_count=F.size("strategies"),
            seen_values=first_n(F.col("strategies")),
        ),
        finding_when(
            "group_offline",
            when=F.array_contains("states", "offline") & (F.size("states") == 1),
            severity="warning",
            evidence=(
                "No member is connected to any broker or proxy; the group has progress in ",
                counted(F.col("topic_count"), "topic", "topics"),
                ".",
                F.when(
                    is_absent_since_baseline,
                    F.concat(
                        F.lit(" It was offline on "),
                        text("baseline_ds"),
                        F.lit(" too, and no offset of it has moved since."),
                    ),
                ).otherwise(""),
            ),
            # Recommend deletion only after two days without members: on one day, the group may be in deployment.
            advice=F.when(
                is_absent_since_baseline,
                DELETE_GROUP,
            ).otherwise(ADVICE["group_offline"]),
            topic_count=F.col("topic_count"),
        ),
        finding_when(
            "members_unknown",
            when=has_unknown,
            severity="warning",
            evidence=(
                "It is unknown whether members are connected: ",
                join_first_n(F.transform("reasons", _meaning_of_reason)),
                F.when(
                    F.array_contains("reasons", "broker_not_asked") & F.col("message").isNotNull(),
                    F.concat(F.lit(" ("), F.col("message"), F.lit(")")),
                ).otherwise(""),
                ".",
            ),
            advice=F.when(
                F.array_contains("reasons", "broker_not_asked"),
                ADVICE["members_unknown"],
            )
            .when(
                F.array_contains("reasons", "may_be_behind_a_proxy"),
                ASK_PROXIES,
            )
            .otherwise(AWAIT_OFFSETS),
            cause_sources=F.when(
                F.col("reasons") == F.array(F.lit("broker_not_asked")), F.col("silent_sources")
            ),
            topic_count=F.col("topic_count"),
            seen_values=first_n(F.col("reasons")),
        ),
        finding_when(
            "client_unreachable",
            when=F.size("unasked") > 0,
            severity="warning",
            evidence=(
                F.size("unasked").cast("string"),
                " of ",
                counted(member_count, "member", "members"),
                " could not be asked what they hold: ",
                join_first_n(F.col("unasked")),
                ".",
            ),
            # A member can be asked through any broker, so these lines contain no broker.
            cause_sources=F.when(
                F.col("is_refused"), sources(F.array(F.lit(None).cast("string")), "permission_denied")
            ),
            client_count=F.size("unasked"),
            client_total_count=member_count,
            examples=first_n(F.col("unasked")),
        ),
        finding_when(
            "member_lists_differ",
            when=F.col("list_count") > 1,
            severity="warning",
            evidence=("Brokers give ", text("list_count"), " different member lists."),
            client_total_count=member_count,
            value_count=F.col("list_count"),
        ),
    )


def _was_offline(baseline: BaselineRows) -> DataFrame:
    """Return the groups of the baseline day: `DAY`; consumer_group; was_offline: whether the group was offline on that day."""
    has_offline_queue = F.count_if(F.col("reason") == "group_offline") > 0
    return (
        baseline.rows(QUEUE_ASSIGNMENT)
        .groupBy(*DAY, "consumer_group")
        .agg((has_offline_queue & (F.count_if("is_effective") == 0)).alias("was_offline"))
    )


def of_members(subscriptions: DataFrame) -> DataFrame:
    """Return client ids that several processes share, or may share."""
    online = subscriptions.where("group_state in ('online', 'broadcasting')")
    problems = (
        online.select(*DAY, "consumer_group", "group_state", F.inline(shared_client_ids()))
        .unionByName(
            online.select(*DAY, "consumer_group", "group_state", F.inline(repeated_ids())),
            allowMissingColumns=True,
        )
        .groupBy(*DAY, "consumer_group", "client_id")
        .agg(
            F.max("process_count").alias("process_count"),
            F.max("connection_count").alias("connection_count"),
            F.max("group_state").alias("state"),
        )
    )
    is_certain = F.col("process_count").isNotNull()
    return collect_findings(
        problems,
        ("consumer_group", "client_id"),
        finding_when(
            "duplicate_client_id",
            when=F.lit(col=True),
            severity=F.when(is_certain & (F.col("state") == "online"), "critical").otherwise("warning"),
            evidence=(
                F.when(
                    is_certain, F.concat(text("process_count"), F.lit(" processes share this client id."))
                ).otherwise(
                    F.concat(
                        F.lit("Every broker that lists this client id lists it at least "),
                        text("connection_count"),
                        F.lit(
                            " times: several processes share it, or one has connections that died unnoticed."
                        ),
                    )
                ),
            ),
            advice=F.when(
                is_certain,
                ADVICE["duplicate_client_id"],
            ).otherwise(AWAIT_CONNECTIONS),
            process_count=F.col("process_count"),
            value_count=F.when(~is_certain, F.col("connection_count")),
        ),
    )


def of_disabled_groups(
    subscriptions: DataFrame, subscription_group: DataFrame, presence: DataFrame
) -> DataFrame:
    """Return groups with members that brokers are configured to give no messages (`PullMessageProcessor`, `PopMessageProcessor`).

    Args:
        subscriptions: See `subscriptions.subscriptions`.
        subscription_group: `silver.subscription_group`.
        presence: `silver.group_presence`.
    """
    key = [*DAY, "consumer_group"]
    connected = subscriptions.where("group_state in ('online', 'broadcasting')").select(*key).distinct()
    # A pull with a subscription of its own, as lite pull consumers send it, is not checked for broadcasting.
    broadcasting = presence.where(
        "state = 'online' and message_model = 'BROADCASTING' and consume_type = 'CONSUME_PASSIVELY'"
    ).select(*key, "broker_name", F.lit(col=True).alias("is_broadcasting"))
    is_disabled = F.col("is_consume_enabled").eqNullSafe(F.lit(col=False))
    is_broadcast_refused = F.col("is_broadcasting").eqNullSafe(F.lit(col=True)) & F.col(
        "is_broadcast_enabled"
    ).eqNullSafe(F.lit(col=False))
    refuses = is_disabled | is_broadcast_refused
    problems = (
        subscription_group.join(connected, key, "left_semi")
        .join(broadcasting, [*key, "broker_name"], "left")
        .groupBy(*key)
        .agg(
            F.collect_set(F.when(refuses, F.col("broker_name"))).alias("refusing"),
            F.bool_and(refuses).alias("is_everywhere"),
            F.bool_or(is_disabled).alias("is_disabled"),
            F.bool_or(is_broadcast_refused).alias("is_broadcast_refused"),
        )
    )
    settings = F.array_compact(
        F.array(
            F.when(F.col("is_broadcast_refused"), "consumeBroadcastEnable=false"),
            F.when(F.col("is_disabled"), "consumeEnable=false"),
        )
    )
    return collect_findings(
        problems,
        ("consumer_group",),
        finding_when(
            "consumption_disabled",
            when=F.size("refusing") > 0,
            severity=F.when(F.col("is_everywhere"), "critical").otherwise("warning"),
            evidence=(
                F.when(F.col("is_everywhere"), "All brokers").otherwise("Some brokers"),
                " that have its configuration give its members no messages (",
                F.array_join(settings, ", "),
                "): ",
                join_first_n(F.col("refusing")),
                ".",
            ),
            value_count=F.size("refusing"),
            seen_values=first_n(settings),
            examples=first_n(F.col("refusing")),
        ),
    )


def of_subscriptions(subscriptions: DataFrame, client_subscription: DataFrame) -> DataFrame:
    """Return topics to which members of a group subscribe differently, although brokers keep one subscription per group and topic."""
    subscription_key = [*DAY, "consumer_group", "topic"]
    expressions = (
        client_subscription.groupBy(*subscription_key)
        .agg(F.collect_set(_filter_of("expression_type", "expression")).alias("filters"))
        .select(*subscription_key, F.transform("filters", lambda one: one["text"]).alias("expressions"))
        .where("size(expressions) > 1")
    )
    problems = (
        subscriptions.where("group_state in ('online', 'broadcasting')")
        .select(
            *subscription_key,
            "group_state",
            F.size(F.array_distinct("member_ids")).alias("member_count"),
            unsubscribed_ids().alias("unsubscribed"),
        )
        .join(expressions, subscription_key, "left")
    )
    is_partial = (F.size("unsubscribed") > 0) & (F.size("unsubscribed") < F.col("member_count"))
    different_expressions = F.coalesce("expressions", F.array().cast("array<string>"))
    expression_count = F.greatest(F.size(different_expressions), F.lit(1))
    return collect_findings(
        problems,
        ("consumer_group", "topic"),
        finding_when(
            "subscriptions_differ",
            when=is_partial | (F.size(different_expressions) > 0),
            severity=F.when(F.col("group_state") == "online", "critical").otherwise("warning"),
            evidence=(
                F.when(
                    F.size("unsubscribed") == 0,
                    F.concat(
                        F.when(F.col("member_count") == 1, "The only member subscribes").otherwise(
                            F.concat(F.lit("The "), text("member_count"), F.lit(" members subscribe"))
                        ),
                        F.lit(" to the topic with "),
                        F.size(different_expressions).cast("string"),
                        F.lit(" filter expressions: "),
                        join_first_n(different_expressions),
                    ),
                ).otherwise(
                    F.concat(
                        F.size("unsubscribed").cast("string"),
                        F.lit(" of "),
                        counted(F.col("member_count"), "member", "members"),
                        F.when(F.size("unsubscribed") == 1, " does").otherwise(" do"),
                        F.lit(" not subscribe to the topic; the others use "),
                        counted(expression_count, "filter expression", "filter expressions"),
                    )
                ),
                ".",
            ),
            client_count=F.size("unsubscribed"),
            client_total_count=F.col("member_count"),
            value_count=expression_count,
            seen_values=first_n(different_expressions),
            examples=first_n(F.col("unsubscribed")),
        ),
    )


def _filter_of(expression_type: str, expression: str) -> Column:
    """Return what a broker filters by: struct of matches_all and text, which is equal for expressions that let the same messages through.

    RocketMQ splits tags at `||`, and ignores spaces, empty parts, order and repetitions (`FilterAPI.buildSubscriptionData`).
    """
    is_by_tag = F.coalesce(F.col(expression_type), F.lit("")).isin("", "TAG")
    matches_all = is_by_tag & F.coalesce(F.col(expression), F.lit("")).isin("", "*")
    # Java trims all control characters.
    parts = F.transform(
        F.split(expression, r"\|\|"),
        lambda part: F.regexp_replace(part, r"^[\x00-\x20]+|[\x00-\x20]+$", ""),
    )
    tags = F.array_sort(F.array_distinct(F.filter(parts, lambda part: part != "")))
    return F.struct(
        matches_all.alias("matches_all"),
        F.when(matches_all, "*")
        .when(is_by_tag, F.array_join(tags, " || "))
        .otherwise(F.concat_ws(" ", expression_type, expression))
        .alias("text"),
    )
