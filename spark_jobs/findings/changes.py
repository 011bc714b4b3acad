"""Findings about changes since the baseline day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from spark_jobs.day_key import DAY
from spark_jobs.findings.finding_builder import collect_findings, counted, finding_when, first_n

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def of_changes(churn: DataFrame) -> DataFrame:
    """Return the groups whose effective strategy differs from that of the baseline day."""
    problems = (
        churn.where("is_effective and baseline_effective_strategy <> strategy")
        .groupBy(*DAY, "consumer_group", "baseline_effective_strategy", "strategy")
        .agg(
            F.max("baseline_ds").cast("string").alias("baseline_ds"),
            F.collect_set("topic").alias("topics"),
            F.sum("observed_queue_count").cast("int").alias("observed"),
            F.sum("observed_moved_queue_count").cast("int").alias("moved"),
        )
        # One finding for a group, even if the strategies of its topics changed in different ways.
        .groupBy(*DAY, "consumer_group")
        .agg(
            F.array_sort(
                F.collect_set(
                    F.concat_ws(" instead of ", F.col("strategy"), F.col("baseline_effective_strategy"))
                )
            ).alias("changes"),
            F.max("baseline_ds").alias("baseline_ds"),
            F.flatten(F.collect_list("topics")).alias("topics"),
            F.sum("observed").cast("int").alias("observed"),
            F.sum("moved").cast("int").alias("moved"),
        )
    )
    return collect_findings(
        problems,
        ("consumer_group",),
        finding_when(
            "strategy_changed",
            when=F.lit(col=True),
            severity="info",
            evidence=(
                "The strategy in effect is ",
                F.array_join("changes", " and "),
                " on ",
                F.col("baseline_ds"),
                ". ",
                F.when(F.col("observed") == 0, "No owner was observed on both days.").otherwise(
                    F.concat(
                        F.lit("Of the "),
                        counted(F.col("observed"), "queue", "queues"),
                        F.lit(" whose owner was observed on both days, "),
                        counted(F.col("moved"), "has", "have"),
                        F.lit(" another one."),
                    )
                ),
            ),
            queue_count=F.col("moved"),
            queue_total_count=F.col("observed"),
            topic_count=F.size("topics"),
            value_count=F.size("changes"),
            seen_values=first_n(F.col("changes")),
            examples=first_n(F.col("topics")),
        ),
    )
