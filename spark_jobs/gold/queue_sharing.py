"""Compute `gold.queue_sharing`: expected readers, observed readers and progress of each queue that members pop.

Belongs here: rows of topics without single owners. Does not belong here: the choice of these topics (`subscriptions`), and the
broker's rule (`strategies.sharing`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.system_topics import RETRY_PREFIX
from spark_jobs.assignment.members import ids_where
from spark_jobs.assignment.subscriptions import is_grpc_id
from spark_jobs.day_key import DAY
from spark_jobs.gold.ownership_drift import ANY_QUEUE, held
from strategies import MessageQueue
from strategies.sharing import expected_readers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

_QUEUE: Final = (*DAY, "consumer_group", "topic", "broker_name", "queue_id")
_SUBSCRIPTION: Final = (*DAY, "consumer_group", "topic")
_READERS_DDL: Final = "array<struct<broker_name: string, queue_id: int, expected_reader_ids: array<string>>>"


def queue_sharing(silver: Mapping[str, DataFrame], subscriptions: DataFrame) -> DataFrame:
    """Return one row per queue that members pop: `DAY` and the table's own columns.

    Args:
        silver: The silver tables by name.
        subscriptions: See `subscriptions.subscriptions`.
    """
    holders = held(silver).where("not is_released")
    popped = (
        holders.where("is_pop")
        .groupBy(*_SUBSCRIPTION)
        .agg(F.collect_set(F.struct("broker_name", "queue_id", "holder_id")).alias("pops"))
    )
    pulled = (
        holders.where("not is_pop")
        .groupBy(*_QUEUE)
        .agg(F.array_sort(F.collect_set("holder_id")).alias("puller_ids"))
    )
    # A row-by-row Python function is fast enough, because few groups pop.
    # The function has no type hints, because Spark would infer another kind of function from them.
    readers = F.udf(lambda *columns: _readers(*columns), _READERS_DDL)  # noqa: PLW0108
    of_queue = (
        subscriptions.where("group_state = 'online' and route_state = 'known'")
        .join(popped, list(_SUBSCRIPTION), "left")
        .where("division_reason <=> 'pop_mode' or pops is not null")
        .select(
            *_SUBSCRIPTION,
            "request_mode",
            "request_mode_source",
            "pop_share_count",
            "pops",
            F.transform(
                F.filter("brokers", lambda broker: broker["queue_count"] > 0),
                lambda broker: broker["broker_name"],
            ).alias("route_brokers"),
            ids_where(
                lambda member: (
                    ~member["fetches_by"].eqNullSafe("pull")
                    & ~member["is_grpc"]
                    & (member["client_state"] == "online")
                )
            ).alias("answered"),
            F.explode(
                readers.asNondeterministic()(
                    F.col("brokers.broker_name"),
                    F.col("brokers.queue_count"),
                    "member_ids",
                    F.transform("variants", _reading_facts),
                    F.filter("proxied_ids", is_grpc_id),
                    F.exists("proxied_ids", lambda client_id: ~is_grpc_id(client_id)),
                    F.col("division_reason").eqNullSafe("pop_mode"),
                    "pop_share_count",
                    F.coalesce("is_server_off", F.lit(col=False)),
                )
            ).alias("queue"),
        )
        .select("*", "queue.*")
    )
    progress = silver["consume_progress"]
    offsets = progress.select(*_QUEUE, "broker_offset", "consumer_offset", "pull_offset")
    joined = (
        of_queue.join(pulled, list(_QUEUE), "left")
        .join(offsets, list(_QUEUE), "left")
        .join(_retry_backlog(progress), list(_SUBSCRIPTION), "left")
        .join(_brokers_with_offsets(silver["export_record"]), [*DAY, "consumer_group"], "left")
        .join(_order_locks(silver["queue_order_lock"]), list(_QUEUE), "left")
        .withColumn("observed", _observed_reader_ids())
    )
    expected = F.col("expected_reader_ids")
    handed_out = F.col("pull_offset")
    # A message is retried on its own broker, so a broker without an answer may have any number of them.
    is_backlog_complete = F.size(F.array_except("route_brokers", "brokers_with_offsets")) == 0
    return joined.select(
        *_QUEUE,
        "request_mode",
        "request_mode_source",
        "pop_share_count",
        expected,
        F.when(expected.isNotNull(), F.size(expected)).alias("sharing_degree"),
        F.when((F.size("answered") > 0) | (F.size("observed") > 0), F.col("observed")).alias(
            "observed_reader_ids"
        ),
        F.when(expected.isNotNull(), F.size(F.array_except(expected, "answered"))).alias(
            "unobserved_reader_count"
        ),
        F.coalesce("puller_ids", F.array().cast("array<string>")).alias("puller_ids"),
        F.col("consumer_offset").alias("committed_offset"),
        handed_out.alias("handed_out_offset"),
        _distance(F.col("consumer_offset"), handed_out).alias("in_flight_count_at_most"),
        _distance(handed_out, F.col("broker_offset")).alias("ready_count"),
        F.when(is_backlog_complete, F.col("retry_backlog_count")).alias("retry_backlog_count"),
        "order_blocked_until",
        "redelivery_count",
    )


def _distance(start: Column, end: Column) -> Column:
    """Return the number of messages between two offsets, 0 if the end is before the start; null if unknown or above 2^63 - 1."""
    return F.when(end < start, F.lit(0).cast("bigint")).otherwise(F.try_subtract(end, start))


def _reading_facts(member: Column) -> Column:
    """Return the fields of a member that determine its queues."""
    return F.struct(
        member["strategy"].alias("strategy"),
        member["fetches_by"].alias("fetches_by"),
        member["is_grpc"].alias("is_grpc"),
        member["is_subscribed"].alias("is_subscribed"),
    )


def _readers(  # noqa: PLR0913, PLR0917 - one argument for each column
    broker_names: Sequence[str],
    queue_counts: Sequence[int],
    member_ids: Sequence[str],
    members: Sequence[Any],
    proxied_grpc_ids: Sequence[str],
    has_other_proxied: bool,  # noqa: FBT001 - Spark gives no names
    is_shared: bool,  # noqa: FBT001
    share: int | None,
    is_server_off: bool,  # noqa: FBT001
) -> list[tuple[str, int, list[str] | None]]:
    """Return the readable queues in Java's order, each with the members that may read it; None instead if these are unknown.

    Args:
        broker_names: Brokers of the route, in Java's order.
        queue_counts: Number of readable queues of each broker.
        member_ids: Client ids in Java's order, an id once per connection.
        members: See `_reading_facts`; parallel to member_ids.
        proxied_grpc_ids: gRPC clients that only proxies list.
        has_other_proxied: Whether proxies list other clients too, whose queues are unknown.
        is_shared: Whether the group pops the topic.
        share: `popShareQueueNum`; None if unknown.
        is_server_off: Whether the brokers have `serverLoadBalancerEnable=false`.
    """
    queues = [
        MessageQueue("", broker_name, queue_id)
        for broker_name, count in zip(broker_names, queue_counts, strict=True)
        for queue_id in range(count)
    ]
    readers: Sequence[list[str] | None] = [None] * len(queues)
    subscribed = [
        (client_id, member)
        for client_id, member in zip(member_ids, members, strict=True)
        if member["is_subscribed"]
    ]
    poppers = {
        client_id: member["strategy"]
        for client_id, member in subscribed
        if member["fetches_by"] == "pop" and not member["is_grpc"]
    }
    unanswered = [client_id for client_id, member in subscribed if member["fetches_by"] is None]
    strategies = set(poppers.values())
    # Members that could not be asked are assumed to behave like the others if these agree.
    is_unanimous = len(strategies) == 1 and all(member["fetches_by"] != "pull" for _, member in subscribed)
    if unanswered and is_unanimous:
        poppers |= dict.fromkeys(unanswered, next(iter(strategies)))
    if is_shared and not has_other_proxied and (is_unanimous or not unanswered):
        readers = (
            expected_readers(
                queues,
                member_ids,
                poppers,
                -1 if share is None else share,
                [*(client_id for client_id, member in subscribed if member["is_grpc"]), *proxied_grpc_ids],
                server_load_balancer_enable=not is_server_off,
            )
            or readers
        )
    return [
        (str(queue.broker_name), queue.queue_id, queue_readers)
        for queue, queue_readers in zip(queues, readers, strict=True)
    ]


def _observed_reader_ids() -> Column:
    """Return the clients whose pop process table contains the queue, or all queues of its broker."""
    pops = F.filter(
        F.coalesce(
            "pops", F.array().cast("array<struct<broker_name: string, queue_id: int, holder_id: string>>")
        ),
        lambda pop: (
            (pop["broker_name"] == F.col("broker_name"))
            & pop["queue_id"].isin(F.col("queue_id"), F.lit(ANY_QUEUE))
        ),
    )
    return F.array_sort(F.array_distinct(F.transform(pops, lambda pop: pop["holder_id"])))


def _order_locks(locks: DataFrame) -> DataFrame:
    """Return for each FIFO queue the end of its block (null if it is not blocked), and the redelivery count of its first message."""
    return locks.select(
        *_QUEUE,
        F.when(F.col("blocked_until") > F.col("captured_at"), F.col("blocked_until")).alias(
            "order_blocked_until"
        ),
        "redelivery_count",
    )


def _brokers_with_offsets(records: DataFrame) -> DataFrame:
    """Return the brokers that answered about each group's offsets: `DAY`; consumer_group, brokers_with_offsets."""
    return (
        records.where("kind = 'consume_stats' and state = 'payload'")
        .groupBy(*DAY, "consumer_group")
        .agg(F.collect_set("broker_name").alias("brokers_with_offsets"))
    )


def _retry_backlog(progress: DataFrame) -> DataFrame:
    """Count the messages in POP's retry topics `%RETRY%<group>_<topic>` and `%RETRY%<group>+<topic>`, by group and topic.

    The count covers the brokers that answered; it is null if a queue's offsets are not complete, or above 2^63 - 1.
    """
    pairs = progress.select(*_SUBSCRIPTION).distinct()
    names = pairs.select(
        *_SUBSCRIPTION,
        F.explode(
            F.array(
                *(
                    F.concat(F.lit(RETRY_PREFIX), F.col("consumer_group"), F.lit(separator), F.col("topic"))
                    for separator in ("_", "+")
                )
            )
        ).alias("retry_topic"),
    )
    waiting = progress.where("consumer_offset >= 0").select(
        *DAY,
        "consumer_group",
        F.col("topic").alias("retry_topic"),
        # The offset that was committed to a retry topic before it was recreated is beyond its end.
        _distance(F.col("consumer_offset"), F.col("broker_offset")).alias("waiting"),
    )
    return (
        names.join(waiting, [*DAY, "consumer_group", "retry_topic"])
        .groupBy(*_SUBSCRIPTION)
        .agg(
            F.when(F.count("waiting") == F.count("*"), F.try_sum("waiting")).alias("retry_backlog_count"),
        )
    )
