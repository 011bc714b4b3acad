"""Computes days in the shared Spark session, and reads what was staged and published without one."""

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
    """Run the stages `verify` and `build`; the session stays open, which `steps.build` would close."""
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
    """Run days of one warehouse and settings through all stages, in order, computed side by side."""
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
    """Return the day's newest whole stage."""
    return newest_stage(day.warehouse, day.cluster, day.ds)


def copy_stage(day: Day, place: Path) -> Day:
    """Copy the staged day into a warehouse of its own, for a test that spoils or publishes it."""
    copied = Day(day.cluster, day.ds, day.exports, Warehouse.at(str(place)), day.settings_file)
    shutil.copytree(
        day.warehouse.attempts(day.cluster, day.ds), copied.warehouse.attempts(day.cluster, day.ds)
    )
    return copied


def asked(warehouse: Warehouse, sql: str) -> list[tuple[Any, ...]]:
    """Return what `ledger sql` would answer."""
    with query(warehouse.root, sql) as result:
        return [tuple(row) for row in result.rows]


def published_state(warehouse: Warehouse) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return, for each published table, its Delta version and data files; if they are equal before and after, nothing was touched."""
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
