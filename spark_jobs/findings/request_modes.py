"""Findings about request modes: members that fetch a topic by POP and by PULL, and brokers with different settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from spark_jobs.assignment.allocation import SERVER_OFF
from spark_jobs.assignment.members import ids_where, strategies_where
from spark_jobs.assignment.request_modes import is_unknown_to_broker
from spark_jobs.assignment.subscriptions import is_grpc_id
from spark_jobs.day_key import DAY
from spark_jobs.findings.finding_builder import collect_findings, counted, finding_when, first_n, join_first_n

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def of_request_modes(subscriptions: DataFrame) -> DataFrame:
    """Return, by group and topic, members with different request modes, and broker settings that members cannot follow.

    Nothing is known about a topic without a route, or without a queue in it: members read no queue there.
    """
    popping = F.concat(
        ids_where(lambda member: member["fetches_by"].eqNullSafe("pop")),
        F.filter("proxied_ids", is_grpc_id),
    )
    pulling = ids_where(lambda member: member["fetches_by"].eqNullSafe("pull"))

    def keeps_queues(member: Column) -> Column:
        return member["is_broker_assigned"] & is_unknown_to_broker(member["strategy"])

    asking = ids_where(lambda member: member["is_broker_assigned"])
    has_queues = "exists(brokers, broker -> broker.queue_count > 0)"
    problems = subscriptions.where(
        f"group_state = 'online' and not startswith(topic, '%RETRY%') and {has_queues}"
    ).select(
        *DAY,
        "consumer_group",
        "topic",
        "request_state",
        "division_reason",
        popping.alias("popping"),
        pulling.alias("pulling"),
        F.filter("proxied_ids", lambda client_id: ~is_grpc_id(client_id)).alias("proxied"),
        F.size(F.array_distinct("member_ids")).alias("listed_count"),
        ids_where(keeps_queues).alias("keeping"),
        strategies_where(keeps_queues).alias("strategies"),
        asking.alias("asking"),
    )
    is_mixed = (F.size("popping") > 0) & (F.size("pulling") > 0)
    is_split = ~is_mixed & (F.size("proxied") > 0) & (F.col("listed_count") > 0)
    member_count = F.col("listed_count") + F.size("proxied")
    return collect_findings(
        problems,
        ("consumer_group", "topic"),
        finding_when(
            "mixed_request_modes",
            when=is_mixed | is_split,
            severity="critical",
            evidence=(
                F.when(
                    is_mixed,
                    F.concat_ws(
                        "",
                        F.lit("Members that pop: "),
                        F.size("popping").cast("string"),
                        F.lit(" ("),
                        join_first_n(F.col("popping")),
                        F.lit("). Members that pull: "),
                        F.size("pulling").cast("string"),
                        F.lit(" ("),
                        join_first_n(F.col("pulling")),
                        F.lit("). Both read the same queues."),
                    ),
                ).otherwise(
                    F.concat_ws(
                        "",
                        F.lit("Members at brokers: "),
                        _text("listed_count"),
                        F.lit(". Members at proxies: "),
                        F.size("proxied").cast("string"),
                        F.lit(". They divide the queues by different lists of members."),
                    )
                ),
            ),
            client_count=F.when(is_mixed, F.size("popping")).otherwise(F.size("proxied")),
            client_total_count=member_count,
            examples=first_n(F.when(is_mixed, F.col("popping")).otherwise(F.col("proxied"))),
        ),
        finding_when(
            "server_load_balancer_off",
            when=F.col("division_reason").eqNullSafe(SERVER_OFF) & (F.col("listed_count") > 1),
            severity="critical",
            evidence=(
                counted(F.size("asking"), "member leaves", "members leave"),
                " the division to brokers with serverLoadBalancerEnable=false: they give every queue to each that asks.",
            ),
            client_count=F.size("asking"),
            client_total_count=F.col("listed_count"),
            examples=first_n(F.col("asking")),
        ),
        finding_when(
            "request_modes_differ",
            when=(F.size("asking") > 0) & (F.col("request_state") == "differ"),
            severity="warning",
            evidence=(
                "The brokers of the topic have different request modes for ",
                counted(F.size("asking"), "member that asks", "members that ask"),
                " any of them.",
            ),
            client_count=F.size("asking"),
            client_total_count=F.col("listed_count"),
        ),
        finding_when(
            "strategy_unknown_to_broker",
            when=(F.size("keeping") > 0) & ~F.col("division_reason").eqNullSafe(SERVER_OFF),
            severity="warning",
            evidence=(
                counted(F.size("keeping"), "member leaves", "members leave"),
                " the division to the broker, which does not have ",
                F.array_join("strategies", ", "),
                ": they keep the queues that they hold, and take no new ones.",
            ),
            client_count=F.size("keeping"),
            client_total_count=F.col("listed_count"),
            seen_values=first_n(F.col("strategies")),
            examples=first_n(F.col("keeping")),
        ),
    )


def _text(number: str) -> Column:
    return F.col(number).cast("string")
