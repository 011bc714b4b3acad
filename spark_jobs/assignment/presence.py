"""Decide whether a group that is online at no broker is offline: collect the evidence for and against it.

A broker does not know the clients of a proxy, so its answer "not online" (code 206) is no proof by itself. What belongs
here: one group, all brokers and proxies. What does not: whom a topic's own brokers list (`subscriptions`).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.system_groups import PROXY_HEARTBEAT_GROUP, SYSTEM_GROUP_PREFIX, SYSTEM_GROUPS
from rebalance_ledger.tables.silver.consume_progress import CONSUME_PROGRESS
from spark_jobs.day_key import DAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from spark_jobs.baseline import BaselineRows

_GROUP: Final = "consumer_group"
_OF_GROUP: Final = (*DAY, _GROUP)
_OF_BROKER: Final = (*DAY, "broker_name")
_QUEUE: Final = (*_OF_GROUP, "topic", "broker_name", "queue_id")
_RETRY_PREFIX: Final = "%RETRY%"


def is_users_group() -> Column:
    """Return whether the row's group is one of applications and not RocketMQ's own."""
    group = F.col(_GROUP)
    return ~group.isin(*sorted(SYSTEM_GROUPS)) & ~group.startswith(SYSTEM_GROUP_PREFIX)


def absence(silver: Mapping[str, DataFrame], before: BaselineRows) -> DataFrame:
    """Return what is known of each group's absence, one row per group that a broker was asked about or has progress of.

    Columns: `DAY`; consumer_group; is_online_at_a_broker; has_unasked_broker; may_have_hidden_members: whether there are
    proxies that did not say who of the group is theirs; absence_doubt: why it cannot be called offline although
    every broker says so (see `group_state_reason`), or null; is_unmoved_since_baseline: whether the progress of some queue
    is known of the baseline day too, and no committed offset has moved since.
    """
    groups = (
        silver["group_presence"]
        .select(*_OF_GROUP)
        .union(silver["consume_progress"].select(*_OF_GROUP))
        .distinct()
    )
    presence = (
        silver["group_presence"]
        .groupBy(*_OF_GROUP)
        .agg(F.max(F.col("state") == "online").alias("is_online_at_a_broker"))
    )
    progress = _progress(silver["consume_progress"], before)
    joined = (
        groups.join(presence, list(_OF_GROUP), "left")
        .join(_unasked_brokers(silver, groups), list(_OF_GROUP), "left")
        .join(_proxies(silver), list(_OF_GROUP), "left")
        .join(F.broadcast(_all_proxies(silver)), list(DAY), "left")
        .join(_pop_retried(silver), list(_OF_GROUP), "left")
        .join(progress, list(_OF_GROUP), "left")
    )
    no = F.lit(col=False)
    answered = F.coalesce("answered_proxy_count", F.lit(0))
    proxy_count = F.coalesce(F.greatest("known_proxy_count", "connected_proxy_count"), F.lit(0))
    is_hidden = (answered < proxy_count) | F.coalesce("is_a_proxy_unfound", no)
    doubt = (
        F.when(is_hidden, "may_be_behind_a_proxy")
        .when(F.coalesce("is_pop_retried", no) & (answered == 0), "pop_retry_topic_exists")
        .when(F.coalesce("is_in_flight", no), "messages_in_flight")
        .when(F.coalesce("is_moved", no), "offsets_moved")
    )
    return joined.select(
        *_OF_GROUP,
        F.coalesce("is_online_at_a_broker", no).alias("is_online_at_a_broker"),
        F.coalesce("has_unasked_broker", no).alias("has_unasked_broker"),
        is_hidden.alias("may_have_hidden_members"),
        doubt.alias("absence_doubt"),
        ((F.coalesce("same_queue_count", F.lit(0)) > 0) & ~F.coalesce("is_moved", no)).alias(
            "is_unmoved_since_baseline"
        ),
    )


def _unasked_brokers(silver: Mapping[str, DataFrame], groups: DataFrame) -> DataFrame:
    """Return the groups of which a registered broker gave no answer (has_unasked_broker), where it may have the group at all.

    A broker registers no member of a group that it has no configuration of. One that no name server lists any more has no
    clients to speak of. Where no name server reported its brokers, the brokers that were asked count.
    """
    at_broker = [*_OF_GROUP, "broker_name"]
    answers = silver["group_presence"].select(*at_broker, (F.col("state") != "unknown").alias("is_answered"))
    registered = silver["broker"].select(*_OF_BROKER).distinct()
    reads = (
        silver["export_record"]
        .where("kind = 'broker_subscription_group' and state = 'payload'")
        .select(*_OF_BROKER)
        .distinct()
    )
    configured = silver["subscription_group"].select(*at_broker).distinct()
    without = (
        groups.join(F.broadcast(reads), list(DAY))
        .join(configured, at_broker, "left_anti")
        .withColumn("is_impossible", F.lit(col=True))
    )
    pairs = groups.join(F.broadcast(registered), list(DAY)).unionByName(
        answers.select(*at_broker).join(F.broadcast(registered.select(*DAY)), list(DAY), "left_anti")
    )
    is_answered = F.coalesce("is_answered", F.lit(col=False)) | F.coalesce("is_impossible", F.lit(col=False))
    return (
        pairs.join(answers, at_broker, "left")
        .join(without, at_broker, "left")
        .groupBy(*_OF_GROUP)
        .agg(F.max(~is_answered).alias("has_unasked_broker"))
    )


def _proxies(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Count the proxies that answered whether a group is online (answered_proxy_count)."""
    return (
        silver["proxy_presence"]
        .where("state <> 'unknown'")
        .groupBy(*_OF_GROUP)
        .agg(F.count_distinct("proxy").alias("answered_proxy_count"))
    )


def _all_proxies(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Count the proxies, as far as the export shows them: one row per day, none where it shows nothing of them.

    Columns: `DAY`; known_proxy_count (asked about any group); connected_proxy_count (most connections at one broker of the
    group by which proxies hear of each other); is_a_proxy_unfound (a broker has that group, or may have it, and did not
    tell its clients). Null stands for 0 and false.
    """

    def of_syncer(table: str) -> DataFrame:
        return silver[table].where(F.col(_GROUP) == PROXY_HEARTBEAT_GROUP)

    known = silver["proxy_presence"].groupBy(*DAY).agg(F.count_distinct("proxy").alias("known_proxy_count"))
    # Proxies of one host have one client id, and each has one connection to a broker.
    connected = (
        of_syncer("consumer_connection")
        .groupBy(*_OF_BROKER)
        .count()
        .groupBy(*DAY)
        .agg(F.max("count").alias("connected_proxy_count"))
    )
    answers = of_syncer("group_presence").select(*_OF_BROKER, "state")
    unfound = (
        of_syncer("subscription_group")
        .select(*_OF_BROKER)
        .distinct()
        .join(answers, list(_OF_BROKER), "full")
        .groupBy(*DAY)
        .agg(F.max(F.coalesce("state", F.lit("unknown")) == "unknown").alias("is_a_proxy_unfound"))
    )
    return known.join(connected, list(DAY), "full").join(unfound, list(DAY), "full")


def _pop_retried(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the groups that have a retry topic of POP: `%RETRY%<group>_<topic>` (V1), `%RETRY%<group>+<topic>` (V2).

    `%RETRY%a_b` is as well the plain retry topic of a group `a_b`, and no trace of a group `a` where there is one.
    """
    topics = (
        silver["topic_config"]
        .select(*DAY, "topic")
        .union(silver["export_record"].where("kind = 'nameserver_route'").select(*DAY, "topic"))
        .where(F.col("topic").startswith(_RETRY_PREFIX))
        .distinct()
    )
    pairs = reduce(
        lambda left, right: left.union(right),
        (
            silver[table].select(*_OF_GROUP, "topic")
            for table in ("consume_progress", "subscription", "client_subscription", "proxy_subscription")
        ),
    )
    names = (
        pairs.where(~F.col("topic").startswith(_RETRY_PREFIX))
        .distinct()
        .select(
            *_OF_GROUP,
            F.explode(
                F.array(
                    *(
                        F.concat(F.lit(_RETRY_PREFIX), F.col(_GROUP), F.lit(separator), F.col("topic"))
                        for separator in ("_", "+")
                    )
                )
            ).alias("topic"),
        )
    )
    plain = (
        pairs.select(*_OF_GROUP)
        .union(silver["subscription_group"].select(*_OF_GROUP))
        .select(*DAY, F.concat(F.lit(_RETRY_PREFIX), F.col(_GROUP)).alias("topic"))
    )
    return (
        names.join(topics, [*DAY, "topic"], "left_semi")
        .join(plain, [*DAY, "topic"], "left_anti")
        .select(*_OF_GROUP, F.lit(col=True).alias("is_pop_retried"))
        .distinct()
    )


def _progress(now: DataFrame, before: BaselineRows) -> DataFrame:
    """Return what the committed offsets of each group show.

    Columns: `DAY`; consumer_group; is_in_flight: messages of a queue are handed out and not consumed, unless its offsets
    stood just so on the baseline day, when no lease can have lasted; is_moved: a committed offset is another than on that
    day, or a later message was consumed; same_queue_count: queues that both days have.
    """
    offsets = ("consumer_offset", "pull_offset", "last_consumed_at")
    old = before.rows(CONSUME_PROGRESS).select(
        *_QUEUE, *(F.col(name).alias(f"old_{name}") for name in offsets)
    )
    no = F.lit(col=False)
    is_same = F.col("consumer_offset").eqNullSafe(F.col("old_consumer_offset"))
    stood_still = is_same & F.col("pull_offset").eqNullSafe(F.col("old_pull_offset"))
    is_handed_out = F.coalesce(F.col("pull_offset") > F.col("consumer_offset"), no)
    is_later = F.coalesce(F.col("last_consumed_at") > F.col("old_last_consumed_at"), no)
    is_compared = F.col("old_consumer_offset").isNotNull()
    return (
        now.join(old, list(_QUEUE), "left")
        .groupBy(*_OF_GROUP)
        .agg(
            F.max(is_handed_out & ~stood_still).alias("is_in_flight"),
            F.max(is_compared & (~is_same | is_later)).alias("is_moved"),
            F.count_if(is_compared).alias("same_queue_count"),
        )
    )
