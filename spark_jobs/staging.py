"""Writing a computed day to its stage, and measuring there what the gate will judge.

The stage is Parquet: it is written whole, read whole and thrown away, so a Delta log would only cost time (see
docs/adr/0006). What readers see is Delta, and is written by `rebalance_ledger.warehouse.publish`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.dataset as pads
from pyspark.sql import functions as F

from expectations.suites.configured_rule import CONFIGURED_RULE_SCHEMA, configured_rules
from expectations.suites.metrics import METRIC_SCHEMA, METRIC_STATEMENTS, SHARED_VIEWS
from rebalance_ledger.storage.engines import file_system_of
from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, SILVER_TABLES, TABLES_OF_GROUPS
from rebalance_ledger.warehouse.staging import write_excluded_groups
from spark_jobs.baseline import COMPARED_TABLES
from spark_jobs.progress import logged
from spark_jobs.session import in_one_part_if_small, literal_path, read_parquet, spark_schema, thread_pool

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import date

    from pyspark.sql import DataFrame, Row, SparkSession

    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.settings import ClusterSettings
    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import StagingArea
    from spark_jobs.baseline import BaselineRows


def write_tables(
    spark: SparkSession, stage: StagingArea, tables: Iterable[Table], rows: Mapping[str, DataFrame]
) -> dict[str, DataFrame]:
    """Write some staged tables and return them as they were written.

    What follows reads the written rows: its plan is short, and what it says is said of what will be published.
    """
    with thread_pool(spark) as pool:
        written = {
            table.name: pool.submit(write_table, spark, stage, table, rows[table.name]) for table in tables
        }
        return {name: done.result() for name, done in written.items()}


def write_table(spark: SparkSession, stage: StagingArea, table: Table, rows: DataFrame) -> DataFrame:
    """Write one staged table and return it as it was written."""
    columns = [column.name for column in table.all_columns]
    with logged(table.qualified_name) as work:
        rows.select(*columns).write.mode("overwrite").parquet(stage.table(table))
        file_system, path = file_system_of(stage.table(table))
        # From the footers of the files: no row is read.
        work.row_count = pads.dataset(path, format="parquet", filesystem=file_system).count_rows()
    return read_parquet(spark, spark_schema(table), stage.table(table))


def write_work(
    spark: SparkSession, stage: StagingArea, name: str, rows: DataFrame, *, folder_by: str | None = None
) -> DataFrame:
    """Write an intermediate result that several steps read, and return it as it was written.

    Args:
        spark: the session.
        stage: where to.
        name: of the result.
        rows: its rows.
        folder_by: a column of few values: who asks for one of them reads its rows alone.
    """
    rows.write.mode("overwrite").partitionBy(*filter(None, [folder_by])).parquet(stage.work(name))
    return read_parquet(spark, rows.schema, stage.work(name))


def show_export_lines(spark: SparkSession, export_directory: str, manifest: Manifest) -> None:
    """Register the view of the lines that the gate reads by itself, before `write_metrics`."""
    paths = {file.path: file.kind for file in manifest.envelope_files}
    if paths:
        # Only "\n" ends a line, as in the manifest's counts; Spark would end one at a lone "\r" too.
        lines = spark.read.option("lineSep", "\n").text(
            [literal_path(f"{export_directory}/{path}") for path in paths]
        )
        kinds = F.create_map(*(F.lit(text) for item in paths.items() for text in item))
        rows = in_one_part_if_small(
            spark, lines.select(kinds[F.col("_metadata.file_name")].alias("kind"), "value")
        )
    else:
        rows = spark.createDataFrame([], "kind string, value string")
    rows.createOrReplaceTempView("export_line")


def write_metrics(
    spark: SparkSession,
    stage: StagingArea,
    staged: Mapping[str, DataFrame],
    manifest: Manifest,
    cluster: str,
    ds: date,
    before: BaselineRows | None,
    settings: ClusterSettings,
) -> list[dict[str, Any]]:
    """Metric the rows as they were written, by the gate's own SQL, write the numbers beside them, and return them."""
    for table in COMPARED_TABLES:
        of_before = before.rows[table.name] if before else spark.createDataFrame([], spark_schema(table))
        of_before.createOrReplaceTempView(f"baseline_{table.name}")
    baseline_ds = before.ds if before else None
    run = "cluster string, ds date, baseline_ds date"
    spark.createDataFrame([(cluster, ds, baseline_ds)], run).createOrReplaceTempView("run")
    files = [(file.path, file.kind, file.line_count, file.error_count) for file in manifest.envelope_files]
    schema = "path string, kind string, line_count bigint, error_count bigint"
    spark.createDataFrame(files, schema).createOrReplaceTempView("manifest_file")
    rules = spark.createDataFrame(configured_rules(settings), CONFIGURED_RULE_SCHEMA)
    rules.createOrReplaceTempView("configured_rule")
    return _measure(spark, stage, staged, (), stage.gate_metric)


def write_metrics_without_quarantined(
    spark: SparkSession, stage: StagingArea, staged: Mapping[str, DataFrame], excluded_groups: Collection[str]
) -> None:
    """Metric the same rows once more as if some groups were not there, after `write_metrics`."""
    _measure(spark, stage, staged, excluded_groups, stage.gate_metric_without_quarantined)
    write_excluded_groups(stage, excluded_groups)


def _measure(
    spark: SparkSession,
    stage: StagingArea,
    staged: Mapping[str, DataFrame],
    excluded_groups: Collection[str],
    place: str,
) -> list[dict[str, Any]]:
    """Run the gate's statements over the staged rows without some groups' and write what they give."""
    show_without(spark, staged, excluded_groups)
    with thread_pool(spark) as pool:

        def written(name: str) -> None:
            write_work(spark, stage, name, spark.table(name)).createOrReplaceTempView(name)

        shared = {name: pool.submit(written, name) for name in SHARED_VIEWS}

        def measured(statement: str) -> list[Row]:
            for name, view in shared.items():
                if name in statement:
                    view.result()
            with logged("metrics of the gate"):
                return spark.sql(statement).collect()

        rows = [row for rows in pool.map(measured, METRIC_STATEMENTS) for row in rows]
    spark.createDataFrame(rows, METRIC_SCHEMA).coalesce(1).write.mode("overwrite").parquet(place)
    return [row.asDict(recursive=True) for row in rows]


def show_without(
    spark: SparkSession, staged: Mapping[str, DataFrame], excluded_groups: Collection[str]
) -> None:
    """Register the views of a day's tables, of the groups that they are without, and those that statements share."""
    groups = spark.createDataFrame([(group,) for group in excluded_groups], "consumer_group string")
    groups.createOrReplaceTempView("excluded_group")
    for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES):
        rows = staged[table.name]
        if excluded_groups and table in TABLES_OF_GROUPS:
            rows = rows.join(F.broadcast(groups), "consumer_group", "left_anti").select(*rows.columns)
        rows.createOrReplaceTempView(f"{table.layer}_{table.name}")
    for name, query in SHARED_VIEWS.items():
        spark.sql(query).createOrReplaceTempView(name)
