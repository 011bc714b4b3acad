"""`gold.finding`: what is unwell in the cluster, as far as the day's facts show it.

A finding is true, so it is published. A new kind is a function here, a name in the gate's closed list
(`expectations/thresholds.py`) and a paragraph in `docs/findings.md`.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from spark_jobs.allocation import UNTOLD_REASONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

_SUBJECT = ("consumer_group", "topic", "broker_name", "client_id")
_EXAMPLE_COUNT = 5
_UNFAIR_MAX_OVER_MEAN = 2.0
"""From here on one client carries at least twice its share."""

_ANSWERS_THAT_ARE_NO_FAULT = (17, 206, 213)
"""Response codes that answer the question: no route for the topic, group not online, group without progress."""

_CANNOT_TELL = ("group_offline", "member_strategy_unknown", "strategy_failed", *UNTOLD_REASONS)
"""Reasons for an unowned queue that say nothing of the queue; they have findings of their own."""


def finding(
    silver: Mapping[str, DataFrame], subscriptions: DataFrame, assignments: DataFrame, fairness: DataFrame
) -> DataFrame:
    """The table's own columns, from silver, `subscriptions.subscriptions` and the other two gold tables' columns."""
    groups = _groups(subscriptions)
    queues = _effective_queues(assignments)
    kinds = [
        _strategies_mixed(groups),
        _client_id_duplicated(subscriptions),
        _queue_unowned(queues),
        _queue_owned_twice(queues),
        _clients_idle(fairness),
        _load_unfair(fairness),
        _group_not_seen(groups),
        _member_lists_differ(groups),
        _not_computable(queues),
        _route(subscriptions),
        _record_rejected(silver["rejected_record"], silver["export_record"]),
        _source_failed(silver["export_record"]),
    ]
    return reduce(lambda left, right: left.unionByName(right), kinds)


def _row(
    severity: Column | str, kind: Column | str, evidence: Column, advice: Column | str, **subject: Column
) -> list[Column]:
    def literal(value: Column | str) -> Column:
        return F.lit(value) if isinstance(value, str) else value

    nothing = F.lit(None).cast("string")
    return [
        literal(severity).alias("severity"),
        literal(kind).alias("kind"),
        subject.get("consumer_group", nothing).alias("consumer_group"),
        subject.get("topic", nothing).alias("topic"),
        subject.get("broker_name", nothing).alias("broker_name"),
        F.lit(None).cast("int").alias("queue_id"),
        subject.get("client_id", nothing).alias("client_id"),
        evidence.alias("evidence"),
        literal(advice).alias("advice"),
    ]


def _examples(values: Column) -> Column:
    """The first few of a set of texts, in order, as one text."""
    return F.array_join(F.slice(F.array_sort(values), 1, _EXAMPLE_COUNT), ", ")


def _groups(subscriptions: DataFrame) -> DataFrame:
    strategies = F.transform(
        F.filter("variants", lambda variant: variant["strategy"].isNotNull()),
        lambda variant: variant["strategy"],
    )
    return subscriptions.groupBy("consumer_group").agg(
        F.array_sort(F.array_distinct(F.flatten(F.collect_list(strategies)))).alias("strategies"),
        F.collect_set("group_state").alias("states"),
        F.max("member_list_count").alias("member_list_count"),
        F.count("*").alias("topic_count"),
    )


def _effective_queues(assignments: DataFrame) -> DataFrame:
    return (
        assignments.where("is_effective")
        .groupBy("consumer_group", "topic", "strategy", "broker_name", "queue_id")
        .agg(F.count("client_id").alias("owner_count"), F.max("reason").alias("reason"))
        .withColumn("queue", F.concat_ws("/", "broker_name", "queue_id"))
    )


def _strategies_mixed(groups: DataFrame) -> DataFrame:
    return groups.where("not array_contains(states, 'broadcasting') and size(strategies) > 1").select(
        *_row(
            "critical",
            "strategies_mixed",
            F.concat(F.lit("Members report "), F.array_join("strategies", " and "), F.lit(".")),
            "Give every client of the group the same allocateMessageQueueStrategy; restart the odd ones.",
            consumer_group=F.col("consumer_group"),
        )
    )


def _client_id_duplicated(subscriptions: DataFrame) -> DataFrame:
    members = subscriptions.where("group_state in ('online', 'broadcasting')").select(
        "consumer_group",
        "group_state",
        F.explode(F.arrays_zip("member_ids", "variants.connection_count")).alias("member"),
    )
    shared = (
        members.select(
            "consumer_group",
            "group_state",
            F.col("member.member_ids").alias("client_id"),
            "member.connection_count",
        )
        .where("connection_count > 1")
        .groupBy("consumer_group", "client_id")
        .agg(F.max("connection_count").alias("connections"), F.max("group_state").alias("state"))
    )
    return shared.select(
        *_row(
            F.when(F.col("state") == "online", F.lit("critical")).otherwise(F.lit("warning")),
            "client_id_duplicated",
            F.concat(F.col("connections").cast("string"), F.lit(" connections share this client id.")),
            "Give each process an instanceName of its own (or an address of its own): twins take the same queues and "
            "leave others to nobody, and broadcasting twins overwrite each other's offsets.",
            consumer_group=F.col("consumer_group"),
            client_id=F.col("client_id"),
        )
    )


def _queue_unowned(queues: DataFrame) -> DataFrame:
    unowned = queues.where((F.col("owner_count") == 0) & ~F.col("reason").isin(*_CANNOT_TELL))
    return (
        unowned.groupBy("consumer_group", "topic")
        .agg(
            F.count("*").alias("count"),
            F.collect_set("queue").alias("queues"),
            F.collect_set("reason").alias("reasons"),
        )
        .select(
            *_row(
                "critical",
                "queue_unowned",
                F.concat(
                    F.col("count").cast("string"),
                    F.lit(" queues have no owner ("),
                    _examples(F.col("reasons")),
                    F.lit("): "),
                    _examples(F.col("queues")),
                    F.lit("."),
                ),
                "Nobody reads these queues: see the reason in queue_assignment and mend the group's clients.",
                consumer_group=F.col("consumer_group"),
                topic=F.col("topic"),
            )
        )
    )


def _queue_owned_twice(queues: DataFrame) -> DataFrame:
    return (
        queues.where("owner_count > 1 and strategy <> 'BROADCASTING'")
        .groupBy("consumer_group", "topic")
        .agg(F.count("*").alias("count"), F.collect_set("queue").alias("queues"))
        .select(
            *_row(
                "critical",
                "queue_owned_twice",
                F.concat(
                    F.col("count").cast("string"),
                    F.lit(" queues have more than one owner: "),
                    _examples(F.col("queues")),
                    F.lit("."),
                ),
                "Messages of these queues are consumed more than once: bring the group's clients to one strategy.",
                consumer_group=F.col("consumer_group"),
                topic=F.col("topic"),
            )
        )
    )


def _business_topics(fairness: DataFrame) -> DataFrame:
    # A retry topic has one queue per broker, so most clients own none of it: that is no news.
    return fairness.where("is_effective and strategy <> 'BROADCASTING' and not startswith(topic, '%RETRY%')")


def _clients_idle(fairness: DataFrame) -> DataFrame:
    return (
        _business_topics(fairness)
        .where("idle_client_count > 0 and queue_count is not null")
        .select(
            *_row(
                "info",
                "clients_idle",
                F.concat(
                    F.col("idle_client_count").cast("string"),
                    F.lit(" of "),
                    F.col("client_count").cast("string"),
                    F.lit(" clients own none of the "),
                    F.col("queue_count").cast("string"),
                    F.lit(" queues."),
                ),
                "Add queues to the topic or take clients away; idle clients add nothing but cost.",
                consumer_group=F.col("consumer_group"),
                topic=F.col("topic"),
            )
        )
    )


def _load_unfair(fairness: DataFrame) -> DataFrame:
    is_unfair = (F.col("max_over_mean") >= _UNFAIR_MAX_OVER_MEAN) & (
        F.col("max_queues_per_client") - F.col("min_queues_per_client") > 1
    )
    return (
        _business_topics(fairness)
        .where(is_unfair)
        .select(
            *_row(
                "warning",
                "load_unfair",
                F.concat(
                    F.lit("One client owns "),
                    F.col("max_queues_per_client").cast("string"),
                    F.lit(" queues, another "),
                    F.col("min_queues_per_client").cast("string"),
                    F.lit(", the mean is "),
                    F.format_number("mean_queues_per_client", 2),
                    F.lit("."),
                ),
                "Compare the strategies in assignment_fairness; AVG differs by one queue at most.",
                consumer_group=F.col("consumer_group"),
                topic=F.col("topic"),
            )
        )
    )


def _group_not_seen(groups: DataFrame) -> DataFrame:
    is_offline = F.array_contains("states", "offline") & (F.size("states") == 1)
    is_unknown = F.array_contains("states", "unknown")
    return groups.where(is_offline | is_unknown).select(
        *_row(
            "warning",
            F.when(is_unknown, F.lit("members_unknown")).otherwise(F.lit("group_offline")),
            F.when(
                is_unknown, F.lit("No broker of a topic's route could be asked for the members.")
            ).otherwise(
                F.concat(
                    F.lit("No member is connected; the group has progress in "),
                    F.col("topic_count").cast("string"),
                    F.lit(" topics."),
                )
            ),
            F.when(is_unknown, F.lit("See export_record for the errors of the brokers.")).otherwise(
                F.lit(
                    "Start its consumers, or delete the group (mqadmin deleteSubGroup) if it is gone for good."
                )
            ),
            consumer_group=F.col("consumer_group"),
        )
    )


def _member_lists_differ(groups: DataFrame) -> DataFrame:
    return groups.where("member_list_count > 1").select(
        *_row(
            "warning",
            "member_lists_differ",
            F.concat(
                F.lit("Brokers give up to "),
                F.col("member_list_count").cast("string"),
                F.lit(" different member lists."),
            ),
            "Compare mqadmin consumerConnection by broker; a ghost connection goes by itself within two minutes.",
            consumer_group=F.col("consumer_group"),
        )
    )


def _not_computable(queues: DataFrame) -> DataFrame:
    reasons = ("settings_missing", "strategy_unknown")
    return (
        queues.where(F.col("reason").isin(*reasons))
        .groupBy("consumer_group", "reason")
        .agg(F.max("strategy").alias("strategy"))
        .select(
            *_row(
                "info",
                F.col("reason"),
                F.concat(F.lit("Members report the strategy "), F.col("strategy"), F.lit(".")),
                F.when(
                    F.col("reason") == "settings_missing",
                    F.lit(
                        "Give its parameters (list, rooms or virtual nodes) in the settings file: no client tells them."
                    ),
                ).otherwise(F.lit("Add the strategy by an entry point; see docs/strategies.md.")),
                consumer_group=F.col("consumer_group"),
            )
        )
    )


def _route(subscriptions: DataFrame) -> DataFrame:
    topics = subscriptions.groupBy("topic").agg(
        F.max("route_state").alias("route_state"),
        F.max("queue_set_count").alias("queue_set_count"),
        F.collect_set("consumer_group").alias("groups"),
    )
    differs = F.col("queue_set_count") > 1
    return topics.where((F.col("route_state") == "none") | differs).select(
        *_row(
            "warning",
            F.when(differs, F.lit("route_differs")).otherwise(F.lit("route_missing")),
            F.when(
                differs,
                F.concat(
                    F.lit("Name servers give "),
                    F.col("queue_set_count").cast("string"),
                    F.lit(" different queue sets."),
                ),
            ).otherwise(
                F.concat(
                    F.lit("No name server has a route; subscribed by "),
                    _examples(F.col("groups")),
                    F.lit("."),
                )
            ),
            F.when(differs, F.lit("Compare mqadmin topicRoute by name server.")).otherwise(
                F.lit("Clients keep the queues that they hold: bring the broker back or unsubscribe.")
            ),
            topic=F.col("topic"),
        )
    )


def _record_rejected(rejected: DataFrame, records: DataFrame) -> DataFrame:
    of_line = ["file", "line_number"]
    return (
        rejected.join(records.select(*of_line, *_SUBJECT), of_line, "left")
        .groupBy(*_SUBJECT)
        .agg(
            F.count("*").alias("count"), F.collect_set("kind").alias("kinds"), F.min("reason").alias("reason")
        )
        .select(
            *_row(
                "warning",
                "record_rejected",
                F.concat(
                    F.col("count").cast("string"),
                    F.lit(" records of kind "),
                    _examples(F.col("kinds")),
                    F.lit(" could not be read: "),
                    F.col("reason"),
                ),
                "See rejected_record for the text; what depends on it is unknown.",
                **{name: F.col(name) for name in _SUBJECT},
            )
        )
    )


def _source_failed(records: DataFrame) -> DataFrame:
    is_answer = F.coalesce(
        F.col("error_code").isin(*_ANSWERS_THAT_ARE_NO_FAULT), F.lit(col=False)
    ) | F.coalesce(F.col("error_message").contains("> not online"), F.lit(col=False))
    return (
        records.where((F.col("state") == "error") & ~is_answer)
        .groupBy("broker_name")
        .agg(F.count("*").alias("count"), F.min("error_message").alias("message"))
        .select(
            *_row(
                "warning",
                "source_failed",
                F.concat(F.col("count").cast("string"), F.lit(" questions failed: "), F.col("message")),
                "What these sources would have said is unknown, not zero; see export_record where state is error.",
                broker_name=F.col("broker_name"),
            )
        )
    )
