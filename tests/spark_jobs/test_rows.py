"""Rows of files are the same whether Spark reads the files or they are a part of the plan."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812  # the name in PySpark's documentation
from pyspark.sql.types import StructType

from spark_jobs.rows import read_parquet
from spark_jobs.session import SMALL_EXPORT_BYTES, java, spark_session, suited_to

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

DDL = (
    "name string, count bigint, share double, at timestamp, ds date, is_known boolean, tags array<string>, "
    "queue struct<broker_name: string, queue_id: int>"
)


@pytest.fixture
def small_day(spark: SparkSession) -> Iterator[None]:
    with suited_to(spark, SMALL_EXPORT_BYTES - 1):
        yield


def written(spark: SparkSession, folder: Path, row_count: int) -> str:
    """Write rows with every type of a table's columns, and nulls, to several files."""
    rows = spark.range(row_count).select(
        F.concat(F.lit("käse-"), F.col("id").cast("string")).alias("name"),
        F.when(F.col("id") % 2 == 0, F.col("id")).alias("count"),
        (F.col("id") / 3).alias("share"),
        F.timestamp_micros(F.col("id") + 1_763_251_200_000_001).alias("at"),
        F.lit(date(2026, 11, 16)).alias("ds"),
        F.when(F.col("id") % 3 == 0, F.lit(1) == F.lit(1)).alias("is_known"),
        F.when(F.col("id") % 5 != 0, F.array(F.lit("a"), F.lit(None).cast("string"))).alias("tags"),
        F.struct(F.lit("broker-a").alias("broker_name"), F.col("id").cast("int").alias("queue_id")).alias(
            "queue"
        ),
    )
    place = str(folder / "rows")
    rows.repartition(3).write.parquet(place)
    return place


def is_of_plan(rows: DataFrame) -> bool:
    return "LocalTableScan" in rows._jdf.queryExecution().executedPlan().toString()


@pytest.mark.usefixtures("small_day")
def test_a_small_table_of_a_small_day_is_a_part_of_the_plan_with_the_same_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = written(spark, tmp_path, 50)
    rows = read_parquet(spark, StructType.fromDDL(DDL), place)
    of_spark = spark.read.schema(DDL).parquet(place)
    assert is_of_plan(rows)
    assert rows.schema == of_spark.schema
    assert sorted(map(str, rows.collect())) == sorted(map(str, of_spark.collect()))
    assert rows.rdd.getNumPartitions() == 1


@pytest.mark.usefixtures("small_day")
@pytest.mark.parametrize("without_rows", [{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 1, 2}])
def test_files_without_rows_hide_no_row_of_other_files(
    spark: SparkSession, tmp_path: Path, without_rows: set[int]
) -> None:
    files, ids = [], []
    for number in range(3):
        of_file = [] if number in without_rows else [10 * number, 10 * number + 1]
        ids += of_file
        files.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(pa.table({"id": pa.array(of_file, pa.int64())}), files[-1])
    rows = read_parquet(spark, StructType.fromDDL("id bigint"), *files)
    assert sorted(row["id"] for row in rows.collect()) == ids


@pytest.mark.usefixtures("small_day")
def test_a_large_table_of_a_small_day_is_read_from_its_files(spark: SparkSession, tmp_path: Path) -> None:
    place = written(spark, tmp_path, 5_000)
    rows = read_parquet(spark, StructType.fromDDL(DDL), place)
    assert not is_of_plan(rows)
    assert rows.count() == 5_000


def test_tables_of_other_days_are_read_from_their_files(spark: SparkSession, tmp_path: Path) -> None:
    with suited_to(spark, SMALL_EXPORT_BYTES):
        assert not is_of_plan(read_parquet(spark, StructType.fromDDL(DDL), written(spark, tmp_path, 50)))


@pytest.mark.usefixtures("small_day")
def test_an_empty_table_of_a_small_day_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    place = written(spark, tmp_path, 0)
    rows = read_parquet(spark, StructType.fromDDL(DDL), place)
    assert rows.collect() == []
    assert rows.columns == ["name", "count", "share", "at", "ds", "is_known", "tags", "queue"]


def test_a_function_is_looked_up_in_the_jvm_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_session("again")  # A further session of the process has the same JVM.
    sent: list[str] = []
    client = java(spark)._gateway_client
    send = client.send_command

    def record(command: str, *further: bool) -> str:
        sent.append(command)
        return str(send(command, *further))

    F.upper(F.lit("x"))
    monkeypatch.setattr(client, "send_command", record)
    F.upper(F.lit("x"))
    assert sent
    assert not [command for command in sent if command.startswith("r\n")]
