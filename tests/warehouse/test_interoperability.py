"""Published tables are ordinary Delta tables, with a file for each day and with merged files.

Spark, delta-rs and duckdb read the same rows at the versions in `publication`.
"""

from __future__ import annotations

import shutil
from itertools import chain
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from deltalake import DeltaTable

from rebalance_ledger.tables import ALL_TABLES
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.content import Content, content_of
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.sandbox import connect
from tests.conftest import SAMPLE_DAYS
from tests.support.computed_days import asked, compute_and_publish, published_state, sample_day
from tests.support.merged_days import merge_and_remove

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from rebalance_ledger.tables import Table

    Reader = Callable[[str, int, Table, ClusterDay], pads.Dataset]
    Publications = dict[ClusterDay, list[dict[str, Any]]]

pytestmark = pytest.mark.spark

TABLES = {table.qualified_name: table for table in ALL_TABLES}


@pytest.fixture(scope="module")
def merged_warehouse(sample_warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Return the sample's warehouse after maintenance has merged the files of its days, and removed them."""
    copy = tmp_path_factory.mktemp("merged") / "warehouse"
    merged = Warehouse.at(str(shutil.copytree(sample_warehouse.root, copy)))
    merge_and_remove(merged)
    return merged


@pytest.fixture(scope="module", params=["sample_warehouse", "merged_warehouse"])
def warehouse(request: pytest.FixtureRequest) -> Warehouse:
    """Return a warehouse with a file for each day, or with merged files."""
    made: Warehouse = request.getfixturevalue(request.param)
    return made


@pytest.fixture(scope="module")
def published(warehouse: Warehouse) -> Publications:
    """Return the publications of the warehouse."""
    return publications_of(warehouse)


def publications_of(warehouse: Warehouse) -> Publications:
    """Return day -> the tables of its publication, with name, version, row count and content hash."""
    rows = asked(warehouse, "SELECT cluster, ds, tables FROM publication")
    return {ClusterDay(cluster, ds): tables for cluster, ds, tables in rows}


@pytest.fixture(scope="module")
def newest_versions(published: Publications) -> dict[str, int]:
    """Return table -> the greatest version in `publication`."""
    newest: dict[str, int] = {}
    for of_table in chain.from_iterable(published.values()):
        name, version = of_table["table_name"], of_table["delta_version"]
        newest[name] = max(version, newest.get(name, version))
    return newest


def by_delta_rs(place: str, version: int, _table: Table, _day: ClusterDay) -> pads.Dataset:
    return DeltaTable(place, version=version).to_pyarrow_dataset()


def by_duckdb(place: str, version: int, table: Table, day: ClusterDay) -> pads.Dataset:
    """Read the Parquet files of the day that the Delta log lists."""
    delta = DeltaTable(place, version=version)
    name = day.cluster.replace("'", "''")
    files = delta.file_uris(file_pruning_predicate=f"cluster = '{name}' AND ds = '{day.ds}'")
    schema = arrow_schema(table)
    if not files:
        return pads.dataset(pa.Table.from_pylist([], schema))
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    statement = f"SELECT {names}, $cluster AS cluster, ds FROM read_parquet($files)"  # noqa: S608
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.sql(statement, params={"cluster": day.cluster, "files": files})
        return pads.dataset(rows.to_arrow_table().select(schema.names).cast(schema))


READERS: dict[str, Reader] = {"delta-rs": by_delta_rs, "duckdb": by_duckdb}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_every_reader_finds_what_was_published(
    warehouse: Warehouse, published: Publications, newest_versions: dict[str, int], reader: Reader
) -> None:
    def at_newest_version(place: str, _version: int, table: Table, day: ClusterDay) -> pads.Dataset:
        return reader(place, newest_versions[table.qualified_name], table, day)

    assert_published(warehouse, published, at_newest_version)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_every_reader_finds_a_day_at_the_versions_of_its_publication(
    sample_warehouse: Warehouse, reader: Reader
) -> None:
    assert_published(sample_warehouse, publications_of(sample_warehouse), reader)


@pytest.mark.parametrize("warehouse", ["sample_warehouse"], indirect=True)
def test_spark_finds_what_was_published(
    warehouse: Warehouse, published: Publications, newest_versions: dict[str, int], spark: SparkSession
) -> None:
    """Read only the newest version, which contains the rows of earlier ones, because each read takes Spark a second.

    Spark reads merged files in the last test, and in CI in `test_baseline_rows`.
    """
    rows_of_table: dict[str, pads.Dataset] = {}

    def by_delta_spark(place: str, _version: int, table: Table, _day: ClusterDay) -> pads.Dataset:
        name = table.qualified_name
        if name not in rows_of_table:
            rows = (
                spark.read.format("delta").option("versionAsOf", newest_versions[name]).load(place).toArrow()
            )
            schema = arrow_schema(table)
            rows_of_table[name] = pads.dataset(rows.select(schema.names).cast(schema))
        return rows_of_table[name]

    assert_published(warehouse, published, by_delta_spark)


@pytest.mark.e2e
@pytest.mark.nightly
def test_a_day_has_the_same_rows_after_the_day_that_it_is_compared_with_was_merged(
    merged_warehouse: Warehouse, spark: SparkSession
) -> None:
    before = published_state(merged_warehouse)

    compute_and_publish(spark, sample_day(SAMPLE_DAYS[-1], merged_warehouse))

    assert published_state(merged_warehouse) == before


def assert_published(warehouse: Warehouse, published: Publications, reader: Reader) -> None:
    differing = {}
    row_count = 0
    with connect() as connection:
        for day, tables in published.items():
            for of_table in tables:
                table = TABLES[of_table["table_name"]]
                rows = reader(warehouse.published(table), of_table["delta_version"], table, day)
                found = content_of(connection, table, rows, day)
                row_count += found.row_count
                if found != Content(of_table["row_count"], of_table["content_hash"]):
                    differing[str(day.ds), table.qualified_name] = found

    assert differing == {}
    assert row_count > 10_000
