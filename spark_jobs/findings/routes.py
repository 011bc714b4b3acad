"""Findings about routes: missing routes, and differences between name servers and brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rebalance_ledger.rocketmq.system_topics import RETRY_PREFIX
from spark_jobs.day_key import DAY
from spark_jobs.findings.export import unreachable_brokers
from spark_jobs.findings.finding_builder import (
    collect_findings,
    counted,
    finding_when,
    first_n,
    join_first_n,
    sources,
    text,
)
from spark_jobs.findings.masters import follows_from_no_master, masterless

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def of_routes(subscriptions: DataFrame, drift: DataFrame, records: DataFrame) -> DataFrame:
    """Return topics that groups subscribe to and that have no route."""
    # The topic's brokers are known from the queues that clients still hold.
    is_lost = F.coalesce("is_unreachable", F.lit(col=False))
    lost = (
        drift.where("route_state = 'none' and not is_routed")
        .join(unreachable_brokers(records), [*DAY, "broker_name"], "left")
        .groupBy(*DAY, "topic")
        .agg(F.when(F.bool_and(is_lost), F.collect_set("broker_name")).alias("lost_brokers"))
    )
    # A 5.x client whose broker lets it pull also subscribes to POP's retry topics (`RebalanceImpl.updateMessageQueueAssignment`),
    # which may not exist.
    is_of_popping = F.col("topic").startswith(RETRY_PREFIX) & (
        F.col("topic") != F.concat(F.lit(RETRY_PREFIX), "consumer_group")
    )
    topics = subscriptions.where((F.col("route_state") == "none") & ~is_of_popping).groupBy(*DAY, "topic")
    return collect_findings(
        topics.agg(F.collect_set("consumer_group").alias("groups")).join(lost, [*DAY, "topic"], "left"),
        ("topic",),
        finding_when(
            "route_missing",
            when=F.lit(col=True),
            severity="warning",
            evidence=("No name server has a route; subscribed by ", join_first_n(F.col("groups")), "."),
            cause_sources=sources(F.col("lost_brokers"), "connection_failed"),
            group_count=F.size("groups"),
            examples=first_n(F.col("groups")),
        ),
    )


def of_divergent_topics(divergence: DataFrame) -> DataFrame:
    """Return topics for which name servers return different routes."""
    has_other_order = F.array_contains("differences", "order_conf")
    # A name server does not have the broker, and the others agree on its queues.
    is_missing_alone = F.array_contains("differences", "broker_missing") & ~F.arrays_overlap(
        "differences", F.array(F.lit("read_queues"), F.lit("perm"))
    )
    queues = F.concat_ws(
        " ",
        "nameserver",
        "broker_name",
        F.coalesce(F.col("subscribe_queue_count").cast("string"), F.lit("none")),
    )
    problems = (
        divergence.where((F.col("state") == "differs") & (F.col("is_read_affected") | has_other_order))
        .groupBy(*DAY, "topic")
        .agg(
            F.collect_set(F.when(F.col("is_read_affected"), F.col("broker_name"))).alias("brokers"),
            F.collect_set(F.when(F.col("is_read_affected"), queues)).alias("queues"),
            F.collect_set(
                F.when(
                    has_other_order,
                    F.concat_ws(" ", "nameserver", F.coalesce("order_topic_conf", F.lit("none"))),
                )
            ).alias("orders"),
            F.max("nameserver_count").alias("nameserver_count"),
            F.bool_and(is_missing_alone | ~F.col("is_read_affected")).alias("is_missing_alone"),
        )
    )
    return collect_findings(
        problems,
        ("topic",),
        finding_when(
            "route_differs",
            when=F.size("brokers") > 0,
            severity="warning",
            evidence=(
                text("nameserver_count"),
                " name servers give different readable queues on ",
                join_first_n(F.col("brokers")),
                ": ",
                join_first_n(F.col("queues")),
                ".",
            ),
            cause_sources=F.when(F.col("is_missing_alone"), sources(F.col("brokers"))),
            value_count=F.size("queues"),
            seen_values=first_n(F.col("queues")),
            examples=first_n(F.col("brokers")),
        ),
        finding_when(
            "order_conf_differs",
            when=F.size("orders") > 0,
            severity="warning",
            evidence=(
                "Name servers give different order configurations: ",
                join_first_n(F.col("orders")),
                ".",
            ),
            value_count=F.size("orders"),
            seen_values=first_n(F.col("orders")),
        ),
    )


def of_unreadable_order_confs(topic_route: DataFrame) -> DataFrame:
    """Return topics whose order configuration makes producers throw."""
    confs = F.concat_ws(" ", "nameserver", "order_topic_conf")
    problems = (
        topic_route.where("order_topic_conf <> '' and publish_queue_count is null")
        .groupBy(*DAY, "topic")
        .agg(F.collect_set(confs).alias("confs"))
    )
    return collect_findings(
        problems,
        ("topic",),
        finding_when(
            "order_conf_unreadable",
            when=F.lit(col=True),
            severity="warning",
            evidence=("Producers cannot read the order configuration: ", join_first_n(F.col("confs")), "."),
            value_count=F.size("confs"),
            seen_values=first_n(F.col("confs")),
        ),
    )


def of_divergent_brokers(divergence: DataFrame, brokers: DataFrame, records: DataFrame) -> DataFrame:
    """Return brokers for which name servers differ from each other or from the broker's configuration, over all of its topics."""

    def has(*names: str) -> Column:
        return F.arrays_overlap("differences", F.array(*map(F.lit, names)))

    kinds = {
        "missing": has("broker_missing") & ~F.col("is_routed"),
        "written": has("perm", "write_queues") & ~F.col("is_read_affected"),
        "address": has("addresses"),
        # If name servers differ from each other, one of them differs from the broker too; report this once.
        "config": ~F.col("follows_from_no_master")
        & (
            has("not_configured")
            | (has("not_routed") & ~has("broker_missing"))
            | (has("config_perm") & ~has("perm"))
            | (has("config_read_queues") & ~has("read_queues"))
            | (has("config_write_queues") & ~has("write_queues"))
        ),
    }
    sides = F.concat_ws(
        " ",
        F.concat(F.lit("perm "), text("perm")),
        F.concat(F.lit("write "), text("write_queue_count")),
    )
    values = {
        "missing": F.col("nameserver"),
        "written": F.concat_ws(" ", "nameserver", sides),
        "address": F.concat_ws(" ", "nameserver", F.concat_ws(",", "broker_addrs")),
        "config": F.array_join("differences", ", "),
    }
    no_master = masterless(brokers).select(*DAY, "broker_name", F.lit(col=True).alias("is_masterless"))
    is_masterless = F.coalesce("is_masterless", F.lit(col=False))
    problems = (
        divergence.where("state = 'differs'")
        .join(no_master, [*DAY, "broker_name"], "left")
        .withColumn("follows_from_no_master", follows_from_no_master(F.col("differences"), is_masterless))
        .groupBy(*DAY, "broker_name")
        .agg(
            *(
                F.collect_set(F.when(has_difference, F.col("topic"))).alias(f"{kind}_topics")
                for kind, has_difference in kinds.items()
            ),
            *(
                F.collect_set(F.when(kinds[kind], value)).alias(f"{kind}_values")
                for kind, value in values.items()
            ),
        )
        .join(unreachable_brokers(records), [*DAY, "broker_name"], "left")
    )

    def finding(name: str, kind: str, problem: str, cause_sources: Column | None = None) -> Column:
        topics, values = F.col(f"{kind}_topics"), F.col(f"{kind}_values")
        return finding_when(
            name,
            when=F.size(topics) > 0,
            severity="warning",
            evidence=(
                problem,
                counted(F.size(topics), "topic", "topics"),
                " (",
                join_first_n(topics),
                "): ",
                join_first_n(values),
                ".",
            ),
            cause_sources=cause_sources,
            topic_count=F.size(topics),
            value_count=F.size(values),
            seen_values=first_n(values),
            examples=first_n(topics),
        )

    return collect_findings(
        problems,
        ("broker_name",),
        finding(
            "broker_missing_on_nameserver",
            "missing",
            "Some name servers do not send clients to this broker, for ",
            F.when(F.col("is_unreachable"), sources(F.array("broker_name"), "connection_failed")),
        ),
        finding(
            "write_route_differs",
            "written",
            "Name servers give different write queues or permissions, for ",
        ),
        finding(
            "broker_address_differs",
            "address",
            "Name servers give different addresses of this broker, seen with ",
        ),
        finding(
            "route_config_differs",
            "config",
            "The routes on the name servers differ from the broker's configuration, for ",
        ),
    )
