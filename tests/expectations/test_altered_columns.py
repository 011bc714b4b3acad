"""What is said to judge a column (`Expectation.judges`) does: another value in one row of a day that is in order breaks it.

The day is the last of the sample's, as it was computed. Tables of which it has no rows are in the modules of their own suites.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions

from expectations.suites.all_suites import EXPECTATIONS
from expectations.suites.configured_rule import CONFIGURED_RULE_SCHEMA, configured_rules
from expectations.suites.judged_columns import judges_by_column
from expectations.suites.metrics import METRIC_STATEMENTS
from rebalance_ledger.exports.catalog import earlier_exports
from rebalance_ledger.exports.manifest import export_directory, load_manifest
from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, SILVER_TABLES
from spark_jobs.baseline import COMPARED_TABLES
from spark_jobs.session import literal_path, spark_schema
from spark_jobs.silver.offset_file_snapshots import LOOK_BACK_EXPORTS, show_offset_files
from spark_jobs.staging import show_export_lines, show_without
from tests.support.computed_days import newest, sample_day, staged_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column as Sql
    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.tables import Column, Table
    from rebalance_ledger.warehouse.layout import StagingArea, Warehouse

pytestmark = pytest.mark.spark

DAY, DAY_BEFORE = date(2026, 11, 18), date(2026, 11, 17)
TABLES = {table.name: table for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES)}
WITHOUT_ROWS = {
    "rejected_record",
    "memory_offset",
    "queue_order_lock",
    "proxy_presence",
    "proxy_connection",
    "proxy_subscription",
    "message_request_mode",
    "queue_sharing",
}
"""Tables of which the sample has no rows."""
NOT_IN_SAMPLE = {
    # No member deviates, no group is unknown, no broadcasting client tells what it has in memory, no line is repeated.
    "ownership_drift.deviating_client_id",
    "broadcast_offset.memory_offset",
    "export_record.counted_line",
}
JUDGES: dict[str, tuple[str, ...]] = {
    column: judges
    for column, judges in judges_by_column().items()
    if column.partition(".")[0] in TABLES.keys() - WITHOUT_ROWS and column not in NOT_IN_SAMPLE
}
SOME = {
    "assignment_churn.least_move_count",
    "broadcast_offset.lag_message_count",
    "finding.queue_count",
    "producer_spread.share",
    "queue_assignment.queue_id",
    "queue_offset.max_offset",
    "route_divergence.perm",
    "topic_route.read_queue_count",
}
"""Columns of the suites whose measures take little; all are altered at night."""
AT_NIGHT = (pytest.mark.e2e, pytest.mark.nightly)
MOST_ROWS = 3
"""Rows that are tried: of some a wrong value is excused, as of a group whose members nobody knows."""


class Judged:
    """A staged day and the views that the measures read."""

    def __init__(self, spark: SparkSession, warehouse: Warehouse) -> None:
        day = sample_day(DAY, warehouse)
        self.spark = spark
        self.stage: StagingArea = newest(day)
        self.staged = {name: self._read(self.stage, table) for name, table in TABLES.items()}
        before = newest(sample_day(DAY_BEFORE, warehouse))
        for table in COMPARED_TABLES:
            if table.name in TABLES:
                rows = self._read(before, table)
            else:
                rows = spark.createDataFrame([], spark_schema(table))
            rows.createOrReplaceTempView(f"baseline_{table.name}")
        directory = export_directory(day.exports, day.cluster, day.ds)
        manifest = load_manifest(directory)
        show_export_lines(spark, str(directory), manifest)
        earlier = earlier_exports(day.exports, day.cluster, DAY, most=LOOK_BACK_EXPORTS)
        show_offset_files(spark, self.stage, earlier)
        files = [
            (file.path, file.kind, file.line_count, file.error_count) for file in manifest.envelope_files
        ]
        views: dict[str, tuple[list[tuple[Any, ...]], str]] = {
            "run": ([(day.cluster, DAY, DAY_BEFORE)], "cluster string, ds date, baseline_ds date"),
            "manifest_file": (files, "path string, kind string, line_count bigint, error_count bigint"),
        }
        rules = spark.createDataFrame(configured_rules(day.settings), CONFIGURED_RULE_SCHEMA)
        rules.createOrReplaceTempView("configured_rule")
        for name, (rows_of_view, schema) in views.items():
            spark.createDataFrame(rows_of_view, schema).createOrReplaceTempView(name)

    def _read(self, stage: StagingArea, table: Table) -> DataFrame:
        return self.spark.read.schema(spark_schema(table)).parquet(literal_path(stage.table(table)))

    def broken(self, judges: tuple[str, ...], table: Table, rows: DataFrame) -> set[str]:
        """Which of some expectations the day breaks, with other rows of one table."""
        show_without(self.spark, self.staged | {table.name: rows}, ())
        return {
            row["expectation_id"]
            for statement in METRIC_STATEMENTS
            if any(f"'{judge}'" in statement for judge in judges)
            for row in self.spark.sql(statement).collect()
            if row["expectation_id"] in judges
            and row["observed"] > (EXPECTATIONS[row["expectation_id"]].threshold_max or 0.0)
        }

    def altered(self, table: Table, column: Column) -> Iterator[DataFrame]:
        """The table with another value in one row, for one row after the other."""
        rows = sorted(staged_rows(self.stage, table.name), key=str)
        told = [row for row in rows if row[column.name] is not None] or rows
        for row in told[:: max(1, len(told) // MOST_ROWS)][:MOST_ROWS]:
            is_row = functions.lit(col=True)
            for name in table.key:
                is_row = is_row & functions.col(name).eqNullSafe(functions.lit(row[name]))
            value = functions.when(is_row, another(column)).otherwise(functions.col(column.name))
            yield self.staged[table.name].withColumn(column.name, value)


def another(column: Column) -> Sql:
    """Another value than the column's."""
    value = functions.col(column.name)
    match column.type:
        case "string":
            return functions.concat(functions.coalesce(value, functions.lit("")), functions.lit("x"))
        case "boolean":
            return ~functions.coalesce(value, functions.lit(col=False))
        case "timestamp":
            return functions.coalesce(value, functions.lit("2026-11-18").cast("timestamp")) + functions.expr(
                "INTERVAL 1 SECOND"
            )
        case "date":
            return functions.date_add(value, 1)
        case "array<string>":
            return functions.array_append(
                functions.coalesce(value, functions.array().cast("array<string>")), functions.lit("x")
            )
        case _:
            return (functions.coalesce(value, functions.lit(0)) + 1).cast(column.type)


@pytest.fixture(scope="module")
def judged(spark: SparkSession, sample_warehouse: Warehouse) -> Judged:
    return Judged(spark, sample_warehouse)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SOME else AT_NIGHT) for name in sorted(JUDGES)]
)
def test_another_value_breaks_what_judges_the_column(judged: Judged, name: str) -> None:
    table = TABLES[name.partition(".")[0]]
    [column] = [column for column in table.all_columns if column.name == name.partition(".")[2]]

    assert any(judged.broken(JUDGES[name], table, rows) for rows in judged.altered(table, column))


@pytest.mark.e2e
@pytest.mark.nightly
def test_the_day_breaks_none_of_them_as_it_is(judged: Judged) -> None:
    judges = tuple({judge for judges in JUDGES.values() for judge in judges})

    assert judged.broken(judges, TABLES["finding"], judged.staged["finding"]) == set()
