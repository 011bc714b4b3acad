"""Compute `gold.producer_spread`: how producers' round robin spreads a topic over its brokers, and the effect of a lost broker.

The publish list of each name server is in silver; if they differ, `routes` decides which one is used. Belongs here: which
topics have rows, and why a broker gets no messages. Does not belong here: the round robin (`strategies.producer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.routes import PERM_WRITE
from rebalance_ledger.rocketmq.system_topics import REPLY_TOPIC_SUFFIX
from spark_jobs.assignment.routes import elected_routes, has_own_name
from spark_jobs.day_key import DAY
from strategies.batch import offsets
from strategies.producer import spread_batch

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    from pyspark.sql import Column, DataFrame

_SPREAD_FIELDS: Final = (
    "share",
    "retried_share_while_lost",
    "largest_share_after_loss",
    "load_ratio_after_loss",
)
_SPREAD_DDL: Final = f"array<struct<{','.join(f'{name}:double' for name in _SPREAD_FIELDS)}>>"


def producer_spread(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return one row per topic and broker: `DAY` and the table's own columns.

    Args:
        silver: The silver tables by name; `topic_route` and `broker` are read.
    """

    @F.arrow_udf(_SPREAD_DDL)  # type: ignore[attr-defined,untyped-decorator]  # PySpark 4.1 exports it without a type
    def spreads(place_counts: pa.Array, run_counts: pa.Array) -> pa.Array:
        return spread_lists(place_counts, run_counts)

    routed = _topics_of_applications(silver["topic_route"], silver["broker"]).select(
        *DAY,
        "topic",
        "nameserver",
        "broker_name",
        "publish_queue_count",
        "publish_run_count",
        "publish_unread_count",
        "is_in_route",
        "has_master",
        F.col("perm").bitwiseAND(PERM_WRITE).alias("write_permission"),
        (F.col("perm").isNull() & F.col("is_in_route")).alias("is_logical"),
        (F.coalesce("order_topic_conf", F.lit("")) != "").alias("is_ordered"),
    )
    extra_columns = (
        "publish_run_count",
        "publish_unread_count",
        "is_in_route",
        "has_master",
        "write_permission",
        "is_logical",
        "is_ordered",
    )
    is_live = F.exists("brokers", lambda broker: broker["is_logical"] & (broker["queue_count"] > 0))
    lists = (
        elected_routes(routed, "publish_queue_count", *extra_columns)
        .withColumn("is_static", F.coalesce(is_live, F.lit(col=False)))
        .withColumn("reasons", F.transform("brokers", _reason))
        .withColumn("spreads", spreads(_numbers("queue_count"), _numbers("publish_run_count")))
    )
    live_count = F.size(F.filter("reasons", lambda reason: reason.isNull()))
    by_broker = lists.select(
        *DAY,
        "topic",
        "is_static",
        live_count.alias("live_count"),
        F.col("answer_count").alias("publish_list_count"),
        F.explode(F.arrays_zip("brokers", "reasons", "spreads")).alias("of"),
    ).select("*", "of.brokers.*", F.col("of.reasons").alias("reason"), "of.spreads.*")
    return _rows(by_broker)


def _topics_of_applications(topic_route: DataFrame, broker: DataFrame) -> DataFrame:
    """Exclude RocketMQ's own topics, to which no application writes."""
    own_names = broker.select(
        *DAY,
        F.explode(
            F.array(
                "broker_name",
                "broker_cluster_name",
                F.concat("broker_cluster_name", F.lit(REPLY_TOPIC_SUFFIX)),
            )
        ).alias("topic"),
    ).distinct()
    return topic_route.where(~has_own_name()).join(F.broadcast(own_names), [*DAY, "topic"], "left_anti")


def _numbers(name: str) -> Column:
    return F.transform("brokers", lambda broker: F.coalesce(broker[name], F.lit(0)))


def _reason(broker: Column) -> Column:
    is_listed = broker["queue_count"] > 0
    return (
        F.when(broker["queue_count"].isNull(), "bad_order_configuration")
        .when(is_listed & ~broker["is_in_route"], "not_in_route")
        .when(is_listed & broker["is_ordered"] & ~broker["has_master"], "no_master")
        .when(is_listed, None)
        .when(broker["is_ordered"], "not_in_order_configuration")
        .when(F.col("is_static"), "behind_logical_queues")
        .when(broker["write_permission"] == 0, "no_write_permission")
        .when(~broker["has_master"], "no_master")
        .otherwise("no_write_queues")
    )


def _rows(by_broker: DataFrame) -> DataFrame:
    count = F.col("queue_count")
    is_known = count.isNotNull() & ~F.col("is_static")
    is_written = F.col("reason").isNull()
    is_only = is_written & (F.col("live_count") == 1)
    has_others = is_known & ~is_only
    # The share of a broker behind a static topic depends on the mapping of logical queues, which is unknown.
    share = F.when(F.col("reason").eqNullSafe("behind_logical_queues"), None).otherwise(F.col("share"))
    source = (
        F.when(F.col("is_ordered"), "order_configuration")
        .when(F.col("is_static"), "static_topic")
        .otherwise("route")
    )
    # A logical broker without queues in the publish list has no row.
    return by_broker.where(~F.col("is_logical") | (count > 0)).select(
        *DAY,
        "topic",
        "broker_name",
        source.alias("publish_source"),
        count.alias("writable_queue_count"),
        share.alias("share"),
        F.when(count > 0, share / count).alias("share_per_queue"),
        F.when(is_written, share * F.col("publish_unread_count") / count).alias("unread_share"),
        F.when(is_known, is_only).alias("is_only_writable_broker"),
        *(F.when(has_others, F.col(name)).alias(name) for name in _SPREAD_FIELDS[1:]),
        "publish_list_count",
        "reason",
    )


def spread_lists(place_counts: pa.Array, run_counts: pa.Array) -> pa.Array:
    """Apply `strategies.producer.spread_batch` to an Arrow batch.

    Args:
        place_counts: R lists of int, one number for each broker of a topic.
        run_counts: R lists of int, parallel to place_counts.

    Returns:
        R lists of structs of the four numbers of `SpreadBatch`, with null for NaN.
    """
    broker_offsets = offsets(_integers(pc.list_value_length(place_counts)))
    batch = spread_batch(
        broker_offsets, _integers(pc.list_flatten(place_counts)), _integers(pc.list_flatten(run_counts))
    )
    columns = [pa.array(getattr(batch, name), from_pandas=True) for name in _SPREAD_FIELDS]
    return pa.ListArray.from_arrays(
        pa.array(broker_offsets, pa.int32()), pa.StructArray.from_arrays(columns, _SPREAD_FIELDS)
    )


def _integers(values: pa.Array) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
