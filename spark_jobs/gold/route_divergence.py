"""Compute `gold.route_divergence`: differences between the routes of name servers and the broker's own configuration.

Belongs here: comparing answers. Does not belong here: which answer the ledger uses (`routes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.system_topics import REPLY_TOPIC_SUFFIX, SELF_TEST_TOPIC
from spark_jobs.assignment.routes import NO_TOPIC_ROUTE, has_own_name
from spark_jobs.day_key import DAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

_TOPIC: Final = (*DAY, "topic")
_BROKER: Final = (*DAY, "broker_name")


_ROUTE_COLUMNS: Final = (
    "perm",
    "read_queue_count",
    "write_queue_count",
    "subscribe_queue_count",
    "order_topic_conf",
)
_CONFIG_COLUMNS: Final = ("perm", "read_queue_count", "write_queue_count")

_BETWEEN_NAMESERVERS: Final = {
    "read_queues": "read_queue_count",
    "write_queues": "write_queue_count",
    "perm": "perm",
    "order_conf": "order_topic_conf",
}
_AGAINST_CONFIG: Final = {
    "config_read_queues": "read_queue_count",
    "config_write_queues": "write_queue_count",
    "config_perm": "perm",
}


def route_divergence(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return one row per topic, broker and name server: `DAY` and the table's own columns.

    Args:
        silver: The silver tables by name.
    """
    answers = (
        _brokers_of_topics(silver)
        .join(_asked(silver["export_record"]), list(_TOPIC))
        .join(F.broadcast(_addresses(silver["broker"])), list(_BROKER), "left")
        .join(F.broadcast(_brokers_with_configs(silver["export_record"])), list(_BROKER), "left")
        .join(F.broadcast(_brokers_with_own_topics(silver)), list(_BROKER), "left")
        .withColumns(_between_nameservers())
    )
    by_nameserver = answers.select("*", F.explode("asked").alias("at")).withColumns(_of_this_nameserver())
    compared = by_nameserver.withColumn("differences", _differences())
    return compared.select(
        *_TOPIC,
        "broker_name",
        F.col("at.nameserver").alias("nameserver"),
        F.when(~F.col("at.is_answer"), "unknown")
        .when(F.size("differences") > 0, "differs")
        .otherwise("same")
        .alias("state"),
        "differences",
        "is_read_affected",
        F.when(F.col("at.is_answer"), F.col("route").isNotNull()).alias("is_routed"),
        *(F.col("route")[name].alias(name) for name in _ROUTE_COLUMNS),
        F.col("own_addresses").alias("broker_addrs"),
        F.coalesce("is_config_known", F.lit(col=False)).alias("is_config_known"),
        *(F.col("config")[name].alias(f"config_{name}") for name in _CONFIG_COLUMNS),
        F.size("answered").alias("nameserver_count"),
        F.when(F.col("at.is_answer"), _agreeing_count()).alias("agreeing_nameserver_count"),
    )


def _brokers_of_topics(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return one row per topic and broker: routes: array<struct<nameserver, …>>; config: the broker's configuration, or null."""
    route = (
        silver["topic_route"]
        .where("is_in_route")
        .select(*_TOPIC, "broker_name", F.struct("nameserver", *_ROUTE_COLUMNS).alias("route"))
    )
    config = silver["topic_config"].select(*_TOPIC, "broker_name", F.struct(*_CONFIG_COLUMNS).alias("config"))
    return (
        route.unionByName(config, allowMissingColumns=True)
        .groupBy(*_TOPIC, "broker_name")
        .agg(F.collect_list("route").alias("routes"), F.max("config").alias("config"))
    )


def _asked(records: DataFrame) -> DataFrame:
    """Return one row per topic: asked: array<struct<nameserver, is_answer>>; answered: the name servers that answered."""
    is_answer = (F.col("state") == "payload") | (F.col("error_code").eqNullSafe(NO_TOPIC_ROUTE))
    by_nameserver = (
        records.where("kind = 'nameserver_route' and topic is not null")
        .groupBy(*_TOPIC, "nameserver")
        .agg(F.max(is_answer).alias("is_answer"))
    )
    return by_nameserver.groupBy(*_TOPIC).agg(
        F.array_sort(F.collect_list(F.struct("nameserver", "is_answer"))).alias("asked"),
        F.collect_set(F.when(F.col("is_answer"), F.col("nameserver"))).alias("answered"),
    )


def _addresses(brokers: DataFrame) -> DataFrame:
    """Return one row per broker, from name servers (`GET_BROKER_CLUSTER_INFO`).

    Columns: `_BROKER`; addresses_by_nameserver: array<struct<nameserver, addresses>>; broker_cluster_names: array<string>.
    """
    address = F.concat_ws("=", "broker_id", "broker_addr")
    return (
        brokers.groupBy(*_BROKER, "nameserver")
        .agg(
            F.array_sort(F.collect_set(address)).alias("addresses"),
            F.collect_set("broker_cluster_name").alias("names"),
        )
        .groupBy(*_BROKER)
        .agg(
            F.collect_list(F.struct("nameserver", "addresses")).alias("addresses_by_nameserver"),
            F.array_distinct(F.flatten(F.collect_list("names"))).alias("broker_cluster_names"),
        )
    )


def _brokers_with_configs(records: DataFrame) -> DataFrame:
    configs = records.where("kind = 'broker_topic_config' and state = 'payload'")
    return configs.select(*_BROKER, F.lit(col=True).alias("is_config_known")).distinct()


def _brokers_with_own_topics(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the brokers whose answer has RocketMQ's own topics: `_BROKER`; has_own_topics.

    `exportMetadata -t` leaves them out. Every broker has `SELF_TEST_TOPIC` from its start on (`TopicConfigManager`, 4.1 to 5.3).
    """
    complete = silver["topic_config"].where(F.col("topic") == SELF_TEST_TOPIC)
    return complete.select(*_BROKER, F.lit(col=True).alias("has_own_topics")).distinct()


def _is_own_topic() -> Column:
    """Return whether a topic is one of RocketMQ's own, of this broker or of its cluster."""
    cluster_names = F.coalesce("broker_cluster_names", F.array())
    reply_topics = F.transform(cluster_names, lambda name: F.concat(name, F.lit(REPLY_TOPIC_SUFFIX)))
    return (
        has_own_name()
        | (F.col("topic") == F.col("broker_name"))
        | F.array_contains(cluster_names, F.col("topic"))
        | F.array_contains(reply_topics, F.col("topic"))
    )


def _between_nameservers() -> dict[str, Column]:
    """Return the differences between the name servers that answered, and whether consumers are affected."""
    is_missing = (F.size("routes") > 0) & (F.size("routes") < F.size("answered"))
    # `routes.perm` is the array of the routes' permissions.
    different = {
        name: F.size(F.array_distinct(F.col("routes")[column])) > 1
        for name, column in _BETWEEN_NAMESERVERS.items()
    }
    addresses = F.array_distinct(F.transform("addresses_by_nameserver", lambda answer: answer["addresses"]))
    readable = F.array_distinct(F.transform("routes", lambda route: route["subscribe_queue_count"]))
    is_missing_to_readers = is_missing & F.exists(readable, lambda count: count > 0)
    return {
        "between": F.array_compact(
            F.array(
                F.when(is_missing, "broker_missing"),
                *(F.when(is_different, name) for name, is_different in different.items()),
                F.when((F.size("routes") > 0) & (F.size(addresses) > 1), "addresses"),
            )
        ),
        "is_read_affected": is_missing_to_readers | (F.size(readable) > 1),
    }


def _of_this_nameserver() -> dict[str, Column]:
    """Return the answer of the row's name server: its route of the topic to the broker (null for none), and the broker's addresses."""
    route = F.filter("routes", lambda route: route["nameserver"] == F.col("at.nameserver"))
    own_answers = F.filter(
        "addresses_by_nameserver", lambda answer: answer["nameserver"] == F.col("at.nameserver")
    )
    return {
        "route": F.get(route, F.lit(0)),
        "own_addresses": F.get(own_answers, F.lit(0))["addresses"],
    }


def _differences() -> Column:
    """Return `differences`; empty if the name server did not answer."""
    is_configured, is_routed = F.col("config").isNotNull(), F.col("route").isNotNull()
    is_comparable = F.coalesce("is_config_known", F.lit(col=False)) & (
        F.coalesce("has_own_topics", F.lit(col=False)) | ~_is_own_topic()
    )
    against_config = F.array_compact(
        F.array(
            F.when(is_comparable & is_routed & ~is_configured, "not_configured"),
            F.when(is_configured & ~is_routed, "not_routed"),
            *(
                F.when(is_configured & (F.col("route")[column] != F.col("config")[column]), name)
                for name, column in _AGAINST_CONFIG.items()
            ),
        )
    )
    no_differences = F.array().cast("array<string>")
    return F.when(F.col("at.is_answer"), F.concat("between", against_config)).otherwise(no_differences)


def _agreeing_count() -> Column:
    """Return the number of name servers that gave the same answer for this topic and broker."""

    def comparable(route: Column) -> Column:
        return F.struct(*(route[name].alias(name) for name in _ROUTE_COLUMNS))

    same = F.filter("routes", lambda route: comparable(route).eqNullSafe(comparable(F.col("route"))))
    without_route_count = F.size("answered") - F.size("routes")
    return F.when(F.col("route").isNull(), without_route_count).otherwise(F.size(same))
