"""Large and small days use different query plans from medium days, with the same tables as result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import StructType

from rebalance_ledger.driver_options import LARGE_EXPORT_BYTES
from spark_jobs.rows import read_parquet
from spark_jobs.session import SMALL_EXPORT_BYTES, suited_to

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SETTINGS = (
    "spark.sql.codegen.wholeStage",
    "spark.sql.codegen.factoryMode",
    "spark.sql.shuffle.partitions",
)


def settings(spark: SparkSession) -> list[str]:
    return [str(spark.conf.get(name)) for name in SETTINGS]


def test_a_large_day_uses_codegen_and_more_shuffle_partitions_and_the_next_day_does_not(
    spark: SparkSession,
) -> None:
    of_small_days = settings(spark)

    with suited_to(spark, LARGE_EXPORT_BYTES - 1):
        assert settings(spark) == of_small_days
    with suited_to(spark, 1_603_000_000):
        assert settings(spark) == ["true", "FALLBACK", "16"]
    assert settings(spark) == of_small_days


def test_nothing_of_a_small_day_is_shuffled(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "rows")
    spark.range(100).selectExpr("id", "id % 7 AS key").repartition(3).write.parquet(place)
    of_other_days = settings(spark)

    with suited_to(spark, SMALL_EXPORT_BYTES - 1):
        rows = read_parquet(spark, StructType.fromDDL("id bigint, key bigint"), place)
        counted = rows.groupBy("key").count().join(rows, "key")
        plan = counted._jdf.queryExecution().executedPlan().toString()
        assert "Exchange" not in plan
        assert counted.count() == 100
    with suited_to(spark, SMALL_EXPORT_BYTES):
        assert settings(spark) == of_other_days
        assert read_parquet(spark, rows.schema, place).rdd.getNumPartitions() > 1
    assert settings(spark) == of_other_days


def test_a_small_day_on_a_cluster_is_planned_once_and_interpreted(spark: SparkSession) -> None:
    of_a_cluster = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
    }
    of_this_machine = {name: str(spark.conf.get(name)) for name in of_a_cluster}
    for name, value in of_a_cluster.items():
        spark.conf.set(name, value)
    try:
        with suited_to(spark, SMALL_EXPORT_BYTES - 1):
            counted = spark.range(100).groupBy("id").count()
            plan = counted._jdf.queryExecution().executedPlan().toString()
            assert "Adaptive" not in plan
            assert "*(" not in plan  # the mark of generated code
        assert {name: spark.conf.get(name) for name in of_a_cluster} == of_a_cluster
    finally:
        for name, value in of_this_machine.items():
            spark.conf.set(name, value)


def test_a_large_day_keeps_a_larger_configured_number_of_partitions(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 64)
    try:
        with suited_to(spark, 1_603_000_000):
            assert spark.conf.get("spark.sql.shuffle.partitions") == "64"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
