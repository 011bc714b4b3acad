"""Published tables are Delta tables like any other: Spark, delta-rs and duckdb read the same rows at the versions that `publication` names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from deltalake import DeltaTable

from rebalance_ledger.tables import ALL_TABLES
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.content import Content, DayRows, content_of
from tests.support.computed_days import asked

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import Warehouse

    Reader = Callable[[str, int, Table, DayRows], pads.Dataset]

pytestmark = pytest.mark.spark

TABLES = {table.qualified_name: table for table in ALL_TABLES}


@pytest.fixture(scope="module")
def published(sample_warehouse: Warehouse) -> dict[DayRows, list[dict[str, Any]]]:
    """Day -> the tables of its publication: name, version, row count and content hash."""
    rows = asked(sample_warehouse, "SELECT cluster, ds, tables FROM publication")
    return {DayRows(cluster, ds): tables for cluster, ds, tables in rows}


def by_delta_rs(place: str, version: int, _table: Table, _day: DayRows) -> pads.Dataset:
    return DeltaTable(place, version=version).to_pyarrow_dataset()


def by_duckdb(place: str, version: int, table: Table, day: DayRows) -> pads.Dataset:
    """The Parquet files of the day, as the Delta log lists them."""
    delta = DeltaTable(place, version=version)
    files = delta.file_uris(file_pruning_predicate=day.predicate)
    schema = arrow_schema(table)
    if not files:
        return pads.dataset(pa.Table.from_pylist([], schema))
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    statement = f"SELECT {names}, $cluster AS cluster, $ds::DATE AS ds FROM read_parquet($files)"  # noqa: S608
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.sql(statement, params={"cluster": day.cluster, "ds": day.ds, "files": files})
        return pads.dataset(rows.to_arrow_table().select(schema.names).cast(schema))


@pytest.fixture(params=["delta-rs", "duckdb", "delta-spark"])
def reader(request: pytest.FixtureRequest, spark: SparkSession) -> Reader:
    def by_delta_spark(place: str, version: int, table: Table, _day: DayRows) -> pads.Dataset:
        rows = spark.read.format("delta").option("versionAsOf", version).load(place).toArrow()
        schema = arrow_schema(table)
        return pads.dataset(rows.select(schema.names).cast(schema))

    readers: dict[str, Reader] = {
        "delta-rs": by_delta_rs,
        "duckdb": by_duckdb,
        "delta-spark": by_delta_spark,
    }
    return readers[request.param]


def test_every_reader_finds_what_was_published(
    sample_warehouse: Warehouse, published: dict[DayRows, list[dict[str, Any]]], reader: Reader
) -> None:
    differing = {}
    row_count = 0
    with duckdb.connect() as connection:
        for day, tables in published.items():
            for of_table in tables:
                table = TABLES[of_table["table_name"]]
                rows = reader(sample_warehouse.published(table), of_table["delta_version"], table, day)
                found = content_of(connection, table, rows, day)
                row_count += found.row_count
                if found != Content(of_table["row_count"], of_table["content_hash"]):
                    differing[str(day.ds), table.qualified_name] = found

    assert differing == {}
    assert row_count > 10_000
