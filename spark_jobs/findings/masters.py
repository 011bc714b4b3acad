"""Findings about brokers without a master."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from spark_jobs.day_key import DAY
from spark_jobs.findings.finding_builder import collect_findings, counted, finding_when, first_n, join_first_n

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MASTER_ID: Final = 0

_ACTING_MASTER_DIFFERENCES: Final = ("config_perm", "config_write_queues")
"""Differences between route and configuration if a slave acts as master, because it accepts no messages."""


def masterless(brokers: DataFrame) -> DataFrame:
    """Return the brokers for which every name server lists only slaves: `DAY`; broker_name; slaves: array<string>."""
    slave = F.concat(F.lit("id "), F.col("broker_id").cast("string"), F.lit(" at "), F.col("broker_addr"))
    return (
        brokers.groupBy(*DAY, "broker_name")
        .agg(
            F.min("broker_id").alias("least_id"),
            F.array_sort(F.collect_set(slave)).alias("slaves"),
        )
        .where(F.col("least_id") != _MASTER_ID)
        .select(*DAY, "broker_name", "slaves")
    )


def follows_from_no_master(differences: Column, is_masterless: Column) -> Column:
    """Return whether the only differences between route and configuration are those of a slave that acts as master."""
    others = F.array_except(differences, F.array(*map(F.lit, _ACTING_MASTER_DIFFERENCES)))
    return is_masterless & (F.size(others) == 0)


def of_masters(brokers: DataFrame, divergence: DataFrame) -> DataFrame:
    """Return the brokers without a master, with the topics that have queues on them."""
    topics = (
        divergence.where("is_routed").groupBy(*DAY, "broker_name").agg(F.collect_set("topic").alias("topics"))
    )
    problems = masterless(brokers).join(topics, [*DAY, "broker_name"], "left")
    count = F.coalesce(F.size("topics"), F.lit(0))
    return collect_findings(
        problems,
        ("broker_name",),
        finding_when(
            "broker_without_master",
            when=F.lit(col=True),
            severity="warning",
            evidence=(
                "No name server lists a master (broker id 0) of this broker, only ",
                join_first_n(F.col("slaves")),
                ". It takes no messages for ",
                counted(count, "topic", "topics"),
                # PullMessageProcessor.rejectRequest since 5.0.0. No export has the release of a broker.
                "; whether a slave serves pulls is unknown: its release and slaveReadEnable decide.",
            ),
            topic_count=count,
            value_count=F.size("slaves"),
            seen_values=first_n(F.col("slaves")),
            examples=first_n(F.col("topics")),
        ),
    )
