"""Whether a group that no broker has online is offline: the answers and traces that prove it or forbid to say so.

A broker does not know the clients of a proxy, so its answer "not online" (code 206) is no proof by itself. What belongs
here: one group, all brokers and proxies. What does not: whom a topic's own brokers list (`subscriptions`).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.system_groups import PROXY_HEARTBEAT_GROUP, SYSTEM_GROUP_PREFIX, SYSTEM_GROUPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from spark_jobs.baseline import BaselineRows

_GROUP: Final = "consumer_group"
_QUEUE: Final = (_GROUP, "topic", "broker_name", "queue_id")
_RETRY_PREFIX: Final = "%RETRY%"


def is_users_group() -> Column:
    """Return whether the row's group is one of applications and not RocketMQ's own."""
    group = F.col(_GROUP)
    return ~group.isin(*sorted(SYSTEM_GROUPS)) & ~group.startswith(SYSTEM_GROUP_PREFIX)


def absence(silver: Mapping[str, DataFrame], before: BaselineRows | None) -> DataFrame:
    """Return what is known of each group's absence, one row per group that a broker was asked about or has progress of.

    Columns: consumer_group; is_online_at_a_broker; has_unasked_broker; may_have_hidden_members: whether there are proxies that did
    not say who of the group is theirs; absence_doubt: why it cannot be called offline although
    every broker says so (see `group_state_reason`), or null; is_absent_since_baseline: whether it was offline on
    the baseline day too, and no committed offset has moved since.
    """
    groups = (
        silver["group_presence"].select(_GROUP).union(silver["consume_progress"].select(_GROUP)).distinct()
    )
    presence = (
        silver["group_presence"]
        .groupBy(_GROUP)
        .agg(F.max(F.col("state") == "online").alias("is_online_at_a_broker"))
    )
    progress = _progress(silver["consume_progress"], before)
    joined = (
        groups.join(presence, _GROUP, "left")
        .join(_unasked_brokers(silver, groups), _GROUP, "left")
        .join(_proxies(silver), _GROUP, "left")
        .crossJoin(F.broadcast(_all_proxies(silver)))
        .join(_pop_retried(silver), _GROUP, "left")
        .join(progress, _GROUP, "left")
    )
    no = F.lit(col=False)
    answered = F.coalesce("answered_proxy_count", F.lit(0))
    is_hidden = (answered < F.greatest("known_proxy_count", "connected_proxy_count")) | F.col(
        "is_a_proxy_unfound"
    )
    doubt = (
        F.when(is_hidden, "may_be_behind_a_proxy")
        .when(F.coalesce("is_pop_retried", no) & (answered == 0), "pop_retry_topic_exists")
        .when(F.coalesce("is_in_flight", no), "messages_in_flight")
        .when(F.coalesce("is_moved", no), "offsets_moved")
    )
    return joined.select(
        _GROUP,
        F.coalesce("is_online_at_a_broker", no).alias("is_online_at_a_broker"),
        F.coalesce("has_unasked_broker", no).alias("has_unasked_broker"),
        is_hidden.alias("may_have_hidden_members"),
        doubt.alias("absence_doubt"),
        (
            F.coalesce("was_offline", no)
            & (F.coalesce("same_queue_count", F.lit(0)) > 0)
            & ~F.coalesce("is_moved", no)
        ).alias("is_absent_since_baseline"),
    )


def _unasked_brokers(silver: Mapping[str, DataFrame], groups: DataFrame) -> DataFrame:
    """Return the groups of which a registered broker gave no answer (has_unasked_broker), where it may have the group at all.

    A broker registers no member of a group that it has no configuration of. One that no name server lists any more has no
    clients to speak of. Where no name server reported its brokers, the brokers that were asked count.
    """
    answers = silver["group_presence"].select(
        _GROUP, "broker_name", (F.col("state") != "unknown").alias("is_answered")
    )
    registered = silver["broker"].select("broker_name").distinct()
    reads = (
        silver["export_record"]
        .where("kind = 'broker_subscription_group' and state = 'payload'")
        .select("broker_name")
        .distinct()
    )
    configured = silver["subscription_group"].select(_GROUP, "broker_name").distinct()
    without = (
        groups.crossJoin(F.broadcast(reads))
        .join(configured, [_GROUP, "broker_name"], "left_anti")
        .withColumn("is_impossible", F.lit(col=True))
    )
    pairs = groups.crossJoin(F.broadcast(registered)).unionByName(
        answers.select(_GROUP, "broker_name").join(
            F.broadcast(registered.limit(1).select(F.lit(col=True).alias("is_registered"))),
            F.col("is_registered"),
            "left_anti",
        )
    )
    is_answered = F.coalesce("is_answered", F.lit(col=False)) | F.coalesce("is_impossible", F.lit(col=False))
    return (
        pairs.join(answers, [_GROUP, "broker_name"], "left")
        .join(without, [_GROUP, "broker_name"], "left")
        .groupBy(_GROUP)
        .agg(F.max(~is_answered).alias("has_unasked_broker"))
    )


def _proxies(silver: Mapping[str, DataFrame]) -> DataFrame:
    """How many proxies answered whether a group is online (answered_proxy_count)."""
    return (
        silver["proxy_presence"]
        .where("state <> 'unknown'")
        .groupBy(_GROUP)
        .agg(F.count_distinct("proxy").alias("answered_proxy_count"))
    )


def _all_proxies(silver: Mapping[str, DataFrame]) -> DataFrame:
    """One row: how many proxies there are, as far as the export shows.

    Columns: known_proxy_count (asked about any group); connected_proxy_count (most connections at one broker of the group by which proxies hear of
    each other); is_a_proxy_unfound (a broker has that group, or may have it, and did not tell its clients).
    """

    def of_syncer(table: str) -> DataFrame:
        return silver[table].where(F.col(_GROUP) == PROXY_HEARTBEAT_GROUP)

    known = silver["proxy_presence"].agg(F.count_distinct("proxy").alias("known_proxy_count"))
    # Proxies of one host have one client id, and each has one connection to a broker.
    connected = (
        of_syncer("consumer_connection")
        .groupBy("broker_name")
        .count()
        .agg(F.coalesce(F.max("count"), F.lit(0)).alias("connected_proxy_count"))
    )
    answers = of_syncer("group_presence").select("broker_name", "state")
    unfound = (
        of_syncer("subscription_group")
        .select("broker_name")
        .distinct()
        .join(answers, "broker_name", "full")
        .agg(
            F.coalesce(F.max(F.coalesce("state", F.lit("unknown")) == "unknown"), F.lit(col=False)).alias(
                "is_a_proxy_unfound"
            )
        )
    )
    return known.crossJoin(connected).crossJoin(unfound)


def _pop_retried(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the groups that have a retry topic of POP: `%RETRY%<group>_<topic>` (V1), `%RETRY%<group>+<topic>` (V2).

    `%RETRY%a_b` is as well the plain retry topic of a group `a_b`, and no trace of a group `a` where there is one.
    """
    topics = (
        silver["topic_config"]
        .select("topic")
        .union(silver["export_record"].where("kind = 'nameserver_route'").select("topic"))
        .where(F.col("topic").startswith(_RETRY_PREFIX))
        .distinct()
    )
    pairs = reduce(
        lambda left, right: left.union(right),
        (
            silver[table].select(_GROUP, "topic")
            for table in ("consume_progress", "subscription", "client_subscription", "proxy_subscription")
        ),
    )
    names = (
        pairs.where(~F.col("topic").startswith(_RETRY_PREFIX))
        .distinct()
        .select(
            _GROUP,
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
        pairs.select(_GROUP)
        .union(silver["subscription_group"].select(_GROUP))
        .select(F.concat(F.lit(_RETRY_PREFIX), F.col(_GROUP)).alias("topic"))
    )
    return (
        names.join(topics, "topic", "left_semi")
        .join(plain, "topic", "left_anti")
        .select(_GROUP, F.lit(col=True).alias("is_pop_retried"))
        .distinct()
    )


def _progress(now: DataFrame, before: BaselineRows | None) -> DataFrame:
    """What the committed offsets of each group show.

    Columns: is_in_flight: messages of a queue are handed out and not consumed, unless its offsets stood just so on the baseline
    day, when no lease can have lasted; is_moved: a committed offset is another than on that day, or a later message was
    consumed; same_queue_count: queues that both days have; was_offline: the ledger called the group offline on that day.
    """
    offsets = ("consumer_offset", "pull_offset", "last_consumed_at")
    if before is None:
        old = now.limit(0).select(*_QUEUE, *(F.col(name).alias(f"old_{name}") for name in offsets))
        was = now.limit(0).select(_GROUP, F.lit(col=False).alias("was_offline"))
    else:
        old = before.rows["consume_progress"].select(
            *_QUEUE, *(F.col(name).alias(f"old_{name}") for name in offsets)
        )
        was = (
            before.rows["queue_assignment"]
            .groupBy(_GROUP)
            .agg(
                (
                    (F.count_if(F.col("reason") == "group_offline") > 0) & (F.count_if("is_effective") == 0)
                ).alias("was_offline")
            )
        )
    no = F.lit(col=False)
    is_same = F.col("consumer_offset").eqNullSafe(F.col("old_consumer_offset"))
    stood_still = is_same & F.col("pull_offset").eqNullSafe(F.col("old_pull_offset"))
    is_handed_out = F.coalesce(F.col("pull_offset") > F.col("consumer_offset"), no)
    is_later = F.coalesce(F.col("last_consumed_at") > F.col("old_last_consumed_at"), no)
    is_compared = F.col("old_consumer_offset").isNotNull()
    return (
        now.join(old, list(_QUEUE), "left")
        .groupBy(_GROUP)
        .agg(
            F.max(is_handed_out & ~stood_still).alias("is_in_flight"),
            F.max(is_compared & (~is_same | is_later)).alias("is_moved"),
            F.count_if(is_compared).alias("same_queue_count"),
        )
        .join(was, _GROUP, "left")
    )
