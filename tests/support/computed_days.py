"""Computes days in the shared Spark session, and reads staged and published data without Spark."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as pads
from deltalake import DeltaTable

from rebalance_ledger.pipeline import steps
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.tables import ALL_TABLES
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.query import query
from rebalance_ledger.warehouse.staging import newest_stage

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import SparkSession

    from rebalance_ledger.warehouse.layout import StagingArea

ROOT = Path(__file__).resolve().parents[2]
SAMPLE_EXPORTS = ROOT / "samples" / "exports"
SETTINGS_FILE = ROOT / "conf" / "ledger.yaml"
TABLES = {table.name: table for table in ALL_TABLES}

Row = dict[str, Any]


def compute(spark: SparkSession, day: Day) -> None:
    """Run the stages `verify` and `build` without closing the session, which `steps.build` would close."""
    from spark_jobs.build import build

    steps.verify(day)
    build(
        spark,
        exports=day.exports,
        warehouse=day.warehouse,
        settings=day.settings,
        cluster=day.cluster,
        ds=day.ds,
    )


def compute_and_publish(spark: SparkSession, *days: Day) -> None:
    """Run days of one warehouse and settings through all stages, in order, computed in parallel."""
    from spark_jobs.side_by_side import SideBySide

    with closing(SideBySide(spark, days[0].exports, days[0].warehouse)) as builder:
        for position, day in enumerate(days, start=1):
            steps.verify(day)
            ahead = [(later.cluster, later.ds) for later in days[position:]]
            settings = {each.cluster: each.settings for each in days}
            builder.build((day.cluster, day.ds), settings, ahead)
            steps.gate(day)
            steps.publish(day)


def staged_rows(stage: StagingArea, table: str) -> list[Row]:
    """Return the staged rows of a table, without a JVM."""
    definition = TABLES[table]
    rows: list[Row] = (
        pads.dataset(stage.table(definition), schema=arrow_schema(definition), format="parquet")
        .to_table()
        .to_pylist()
    )
    return rows


def newest(day: Day) -> StagingArea:
    """Return the day's newest complete stage."""
    return newest_stage(day.warehouse, day.cluster, day.ds)


def copy_stage(day: Day, place: Path) -> Day:
    """Copy the staged day into its own warehouse, for a test that corrupts or publishes it."""
    copied = Day(day.cluster, day.ds, day.exports, Warehouse.at(str(place)), day.settings_file)
    shutil.copytree(
        day.warehouse.attempts(day.cluster, day.ds), copied.warehouse.attempts(day.cluster, day.ds)
    )
    return copied


def asked(warehouse: Warehouse, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows that `ledger sql` would return."""
    with query(warehouse.root, sql) as result:
        return [tuple(row) for row in result.rows]


def published_state(warehouse: Warehouse) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return the Delta version and data files of each published table; equal results before and after mean that nothing changed."""
    state = {}
    for table in ALL_TABLES:
        place = warehouse.published(table)
        if DeltaTable.is_deltatable(place):
            delta = DeltaTable(place)
            state[table.qualified_name] = (int(delta.version()), tuple(sorted(delta.file_uris())))
    return state


def sample_day(ds: date, warehouse: Warehouse) -> Day:
    """Return a day of the bundled sample."""
    return Day("shop-prod", ds, SAMPLE_EXPORTS, warehouse, SETTINGS_FILE)
