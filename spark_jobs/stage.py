"""Writing a computed day to its stage, and measuring there what the gate will judge.

The stage is Parquet: it is written whole, read whole and thrown away, so a Delta log would only cost time (see
docs/adr/0006). What readers see is Delta, and is written by `warehouse.publish`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from expectations.measures import MEASURE_SCHEMA, MEASURE_STATEMENTS
from spark_jobs.compared_day import COMPARED_TABLES
from spark_jobs.session import literal_path, spark_schema
from tables import COMPUTED_GOLD_TABLES, SILVER_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.compared_day import ComparedRows
    from tables import Table
    from topology.manifest import Manifest
    from warehouse.layout import Stage

_WRITERS = 4
"""Tables written at a time: enough to keep the cores busy while other writes wait for their commit."""


def write_tables(
    spark: SparkSession, stage: Stage, tables: Iterable[Table], rows: Mapping[str, DataFrame]
) -> dict[str, DataFrame]:
    """Write some staged tables and return them as they were written.

    What follows reads the written rows: its plan is short, and what it says is said of what will be published.
    """
    with ThreadPoolExecutor(_WRITERS) as pool:
        written = {table.name: pool.submit(_write, spark, rows[table.name], table, stage) for table in tables}
        return {name: done.result() for name, done in written.items()}


def _write(spark: SparkSession, rows: DataFrame, table: Table, stage: Stage) -> DataFrame:
    columns = [column.name for column in table.all_columns]
    rows.select(*columns).write.mode("overwrite").parquet(stage.table(table))
    return spark.read.schema(spark_schema(table)).parquet(literal_path(stage.table(table)))


def write_work(spark: SparkSession, stage: Stage, name: str, rows: DataFrame) -> DataFrame:
    """Write an intermediate result that several steps read, and return it as it was written."""
    rows.write.mode("overwrite").parquet(stage.work(name))
    return spark.read.schema(rows.schema).parquet(literal_path(stage.work(name)))


def write_measures(
    spark: SparkSession,
    stage: Stage,
    staged: Mapping[str, DataFrame],
    manifest: Manifest,
    cluster: str,
    ds: date,
    before: ComparedRows | None,
) -> None:
    """Measure the rows as they were written, by the gate's own SQL, and write the numbers beside them."""
    for table in COMPARED_TABLES:
        of_before = before.rows[table.name] if before else spark.createDataFrame([], spark_schema(table))
        of_before.createOrReplaceTempView(f"before_{table.name}")
    for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES):
        staged[table.name].createOrReplaceTempView(f"{table.layer}_{table.name}")
    compared_ds = before.ds if before else None
    run = "cluster string, ds date, compared_ds date"
    spark.createDataFrame([(cluster, ds, compared_ds)], run).createOrReplaceTempView("run")
    files = [(file.path, file.kind, file.line_count, file.error_count) for file in manifest.envelope_files]
    schema = "path string, kind string, line_count bigint, error_count bigint"
    spark.createDataFrame(files, schema).createOrReplaceTempView("manifest_file")
    with ThreadPoolExecutor(_WRITERS) as pool:
        measured = pool.map(lambda statement: spark.sql(statement).collect(), MEASURE_STATEMENTS)
        rows = [tuple(row) for rows in measured for row in rows]
    spark.createDataFrame(rows, MEASURE_SCHEMA).coalesce(1).write.mode("overwrite").parquet(
        stage.gate_measure
    )
