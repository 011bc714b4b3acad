"""Collect the evidence for and against the absence of a group that is online at no broker.

A broker does not know the clients of a proxy, so its answer "not online" (`ResponseCode.CONSUMER_NOT_ONLINE`, 206) is no proof.

Belongs here: a group at all brokers and proxies. Does not belong here: the members that the brokers of one topic list
(`subscriptions`).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.system_groups import PROXY_HEARTBEAT_GROUP, SYSTEM_GROUP_PREFIX, SYSTEM_GROUPS
from rebalance_ledger.rocketmq.system_topics import RETRY_PREFIX
from rebalance_ledger.tables.silver.consume_progress import CONSUME_PROGRESS
from spark_jobs.day_key import DAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from spark_jobs.baseline import BaselineRows

_GROUP: Final = "consumer_group"
_GROUP_KEY: Final = (*DAY, _GROUP)
_BROKER_KEY: Final = (*DAY, "broker_name")
_QUEUE_KEY: Final = (*_GROUP_KEY, "topic", "broker_name", "queue_id")


def is_users_group() -> Column:
    """Return whether the row's group belongs to an application, not to RocketMQ itself."""
    group = F.col(_GROUP)
    return ~group.isin(*sorted(SYSTEM_GROUPS)) & ~group.startswith(SYSTEM_GROUP_PREFIX)


def absence(silver: Mapping[str, DataFrame], baseline: BaselineRows) -> DataFrame:
    """Return the evidence on each group's absence, one row per group that a broker or proxy was asked about, or that has progress.

    Columns: `DAY`; consumer_group; is_online_at_a_broker; has_unasked_broker: see `_unasked_brokers`; may_have_hidden_members:
    whether a proxy did not report its members of the group; absence_doubt: why the group may be online although every broker
    answered that it is not (a value of `group_state_reason`), or null; is_unmoved_since_baseline: whether both days
    have the offsets of all queues with progress, of at least one, and none has moved.

    Args:
        silver: The silver tables by name.
        baseline: The rows of the days' baselines.
    """
    groups = (
        silver["group_presence"]
        .select(*_GROUP_KEY)
        .union(silver["proxy_presence"].select(*_GROUP_KEY))
        .union(silver["consume_progress"].select(*_GROUP_KEY))
        .distinct()
    )
    presence = (
        silver["group_presence"]
        .groupBy(*_GROUP_KEY)
        .agg(F.max(F.col("state") == "online").alias("is_online_at_a_broker"))
    )
    progress = _progress(silver["consume_progress"], baseline)
    joined = (
        with_answers_of_proxies(silver, groups.join(presence, list(_GROUP_KEY), "left"))
        .join(_unasked_brokers(silver, groups), list(_GROUP_KEY), "left")
        .join(_pop_retried(silver), list(_GROUP_KEY), "left")
        .join(progress, list(_GROUP_KEY), "left")
    )
    no = F.lit(col=False)
    has_no_answer = F.col("answered_proxy_count") == 0
    doubt = (
        F.when(F.col("may_have_hidden_members"), "may_be_behind_a_proxy")
        .when(F.coalesce("is_pop_retried", no) & has_no_answer, "pop_retry_topic_exists")
        .when(F.coalesce("is_in_flight", no), "messages_in_flight")
        .when(F.coalesce("is_moved", no), "offsets_moved")
    )
    return joined.select(
        *_GROUP_KEY,
        F.coalesce("is_online_at_a_broker", no).alias("is_online_at_a_broker"),
        F.coalesce("has_unasked_broker", no).alias("has_unasked_broker"),
        "may_have_hidden_members",
        doubt.alias("absence_doubt"),
        F.coalesce("is_unmoved", no).alias("is_unmoved_since_baseline"),
    )


def with_answers_of_proxies(silver: Mapping[str, DataFrame], groups: DataFrame) -> DataFrame:
    """Add what is known of each group's members at proxies.

    Adds answered_proxy_count, and may_have_hidden_members: whether a proxy did not report its members of the group.

    Args:
        silver: The silver tables by name.
        groups: `DAY`; consumer_group; any other columns.
    """
    answered_count = F.coalesce("answered_proxy_count", F.lit(0))
    proxy_count = F.coalesce(F.greatest("known_proxy_count", "connected_proxy_count"), F.lit(0))
    is_hidden = (answered_count < proxy_count) | F.coalesce("is_a_proxy_unfound", F.lit(col=False))
    return (
        groups.join(_answered_proxies(silver), list(_GROUP_KEY), "left")
        .join(F.broadcast(_all_proxies(silver)), list(DAY), "left")
        .withColumns({"answered_proxy_count": answered_count, "may_have_hidden_members": is_hidden})
        .drop("known_proxy_count", "connected_proxy_count", "is_a_proxy_unfound")
    )


def _unasked_brokers(silver: Mapping[str, DataFrame], groups: DataFrame) -> DataFrame:
    """Return for each group whether a registered broker that may have its members gave no answer (has_unasked_broker).

    A broker that was not asked about a group has no members of it if its configurations do not contain the group. If it was asked and did
    not answer, this is no proof: before 5.1.1, `ClientManageProcessor.heartBeat` also registers members of groups without a
    configuration. A broker that no name server lists has no clients.

    If no name server reported its brokers, the brokers that were asked count as registered.
    """
    at_broker = [*_GROUP_KEY, "broker_name"]
    answers = silver["group_presence"].select(*at_broker, (F.col("state") != "unknown").alias("is_answered"))
    registered = silver["broker"].select(*_BROKER_KEY).distinct()
    listing_brokers = (
        silver["export_record"]
        .where("kind = 'broker_subscription_group' and state = 'payload'")
        .select(*_BROKER_KEY)
        .distinct()
    )
    configured = silver["subscription_group"].select(*at_broker).distinct()
    without_group = (
        groups.join(F.broadcast(listing_brokers), list(DAY))
        .join(configured, at_broker, "left_anti")
        .withColumn("is_impossible", F.lit(col=True))
    )
    pairs = groups.join(F.broadcast(registered), list(DAY)).unionByName(
        answers.select(*at_broker).join(F.broadcast(registered.select(*DAY)), list(DAY), "left_anti")
    )
    is_answered = F.coalesce("is_answered", "is_impossible", F.lit(col=False))
    return (
        pairs.join(answers, at_broker, "left")
        .join(without_group, at_broker, "left")
        .groupBy(*_GROUP_KEY)
        .agg(F.max(~is_answered).alias("has_unasked_broker"))
    )


def _answered_proxies(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Count the proxies that answered whether a group is online: `DAY`; consumer_group, answered_proxy_count."""
    return (
        silver["proxy_presence"]
        .where("state <> 'unknown'")
        .groupBy(*_GROUP_KEY)
        .agg(F.count_distinct("proxy").alias("answered_proxy_count"))
    )


def _all_proxies(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Count the proxies that the export shows: one row per day, none for a day that shows no proxy.

    Columns: `DAY`; known_proxy_count: proxies that were asked about any group; connected_proxy_count: the most connections that one
    broker has of `PROXY_HEARTBEAT_GROUP`, by which proxies synchronize; is_a_proxy_unfound: a broker has that group, or may have it,
    and did not return its clients. Null means 0 and false.
    """

    def of_heartbeat_group(table: str) -> DataFrame:
        return silver[table].where(F.col(_GROUP) == PROXY_HEARTBEAT_GROUP)

    known = silver["proxy_presence"].groupBy(*DAY).agg(F.count_distinct("proxy").alias("known_proxy_count"))
    # Proxies of one host have one client id, and each has one connection to a broker.
    connected = (
        of_heartbeat_group("consumer_connection")
        .groupBy(*_BROKER_KEY)
        .count()
        .groupBy(*DAY)
        .agg(F.max("count").alias("connected_proxy_count"))
    )
    answers = of_heartbeat_group("group_presence").select(*_BROKER_KEY, "state")
    unfound = (
        of_heartbeat_group("subscription_group")
        .select(*_BROKER_KEY)
        .distinct()
        .join(answers, list(_BROKER_KEY), "full")
        .groupBy(*DAY)
        .agg(F.max(F.coalesce("state", F.lit("unknown")) == "unknown").alias("is_a_proxy_unfound"))
    )
    return known.join(connected, list(DAY), "full").join(unfound, list(DAY), "full")


def _pop_retried(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the groups that have a retry topic of POP: `%RETRY%<group>_<topic>` (V1) or `%RETRY%<group>+<topic>` (V2).

    `%RETRY%a_b` is no evidence of a group `a` if there is a group `a_b`, because it is also the plain retry topic of that group.
    """
    topics = (
        silver["topic_config"]
        .select(*DAY, "topic")
        .union(silver["export_record"].where("kind = 'nameserver_route'").select(*DAY, "topic"))
        .where(F.col("topic").startswith(RETRY_PREFIX))
        .distinct()
    )
    pairs = reduce(
        lambda left, right: left.union(right),
        (
            silver[table].select(*_GROUP_KEY, "topic")
            for table in ("consume_progress", "subscription", "client_subscription", "proxy_subscription")
        ),
    )
    names = (
        pairs.where(~F.col("topic").startswith(RETRY_PREFIX))
        .distinct()
        .select(
            *_GROUP_KEY,
            F.explode(
                F.array(
                    *(
                        F.concat(F.lit(RETRY_PREFIX), F.col(_GROUP), F.lit(separator), F.col("topic"))
                        for separator in ("_", "+")
                    )
                )
            ).alias("topic"),
        )
    )
    plain = (
        pairs.select(*_GROUP_KEY)
        .union(silver["subscription_group"].select(*_GROUP_KEY))
        .select(*DAY, F.concat(F.lit(RETRY_PREFIX), F.col(_GROUP)).alias("topic"))
    )
    return (
        names.join(topics, [*DAY, "topic"], "left_semi")
        .join(plain, [*DAY, "topic"], "left_anti")
        .select(*_GROUP_KEY, F.lit(col=True).alias("is_pop_retried"))
        .distinct()
    )


def _progress(progress: DataFrame, baseline: BaselineRows) -> DataFrame:
    """Return the evidence of consumption in each group's offsets.

    Columns: `DAY`; consumer_group; is_in_flight: messages of a queue are handed out and not consumed, unless its offsets were the
    same on the baseline day, because no message stays handed out for a day; is_moved: a committed offset has changed since that day, or
    a later message was consumed; is_unmoved: both days have the offsets of all queues with progress, and none has changed.
    """
    offsets = ("consumer_offset", "pull_offset", "last_consumed_at")
    baseline_progress = baseline.rows(CONSUME_PROGRESS).select(
        *_QUEUE_KEY, *(F.col(name).alias(f"baseline_{name}") for name in offsets)
    )
    no = F.lit(col=False)
    is_same = F.col("consumer_offset").eqNullSafe(F.col("baseline_consumer_offset"))
    is_unchanged = is_same & F.col("pull_offset").eqNullSafe(F.col("baseline_pull_offset"))
    is_handed_out = F.coalesce(F.col("pull_offset") > F.col("consumer_offset"), no)
    is_later = F.coalesce(F.col("last_consumed_at") > F.col("baseline_last_consumed_at"), no)
    has_baseline = F.col("baseline_consumer_offset").isNotNull()
    is_compared = has_baseline & F.col("is_reported").isNotNull()
    is_moved = is_compared & (~is_same | is_later)
    # Progress of one day only: of a queue that could not be asked for on the other day, or that was consumed for the first time.
    is_of_one_day = F.when(has_baseline, ~is_compared).otherwise(
        ~F.coalesce(F.col("consumer_offset") <= 0, no)
    )
    return (
        progress.withColumn("is_reported", F.lit(col=True))
        .join(baseline_progress, list(_QUEUE_KEY), "full")
        .groupBy(*_GROUP_KEY)
        .agg(
            F.max(is_handed_out & ~is_unchanged).alias("is_in_flight"),
            F.max(is_moved).alias("is_moved"),
            (F.max(is_compared) & ~F.max(is_moved | is_of_one_day)).alias("is_unmoved"),
        )
    )
