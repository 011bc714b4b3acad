"""A build reads the rows of its baseline day from published Delta tables at the versions that the publication names."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from rebalance_ledger.tables import QUARANTINED_GROUP, QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse.baseline import COMPARED_TABLES, newest_earlier_day
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from spark_jobs.baseline import BaselineRows
from spark_jobs.rows import read_delta
from tests.support.merged_days import merge_and_remove
from tests.support.staging_fixtures import MONDAY, TUESDAY, owners, stage_day

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

    from rebalance_ledger.tables import Table

pytestmark = pytest.mark.spark

HOSTILE = "shop' %2F*{a}"
"""A cluster name that needs escaping as a folder, as a partition value and as a literal."""


def _not_computed(table: Table) -> DataFrame:
    raise AssertionError(table.name)


def test_rows_are_those_of_the_version_that_was_named(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse.at(str(tmp_path / "warehouse"))
    for cluster, client_ids in ((HOSTILE, ("c1", "c2")), ("other", ("c3",))):
        stage_day(warehouse, MONDAY, cluster=cluster, queue_assignment=owners(*client_ids))
        publish(warehouse, cluster, MONDAY)
    earlier = newest_earlier_day(warehouse, HOSTILE, TUESDAY, COMPARED_TABLES)
    assert earlier is not None
    stage_day(warehouse, MONDAY, cluster=HOSTILE, run_id="again", queue_assignment=owners("c4"))
    publish(warehouse, HOSTILE, MONDAY)

    before = BaselineRows(spark, warehouse, {(HOSTILE, TUESDAY): earlier}, {}, _not_computed)

    rows = before.rows(QUEUE_ASSIGNMENT).collect()
    assert sorted((row["cluster"], row["ds"], row["client_id"]) for row in rows) == [
        (HOSTILE, TUESDAY, "c1"),
        (HOSTILE, TUESDAY, "c2"),
    ]
    assert before.rows(QUARANTINED_GROUP).count() == 0


def test_rows_are_the_same_after_the_files_of_the_day_were_merged_and_removed(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse = Warehouse.at(str(tmp_path / "warehouse"))
    wednesday = TUESDAY + timedelta(days=1)
    for ds, client_id in ((MONDAY, "c1"), (TUESDAY, "c2")):
        stage_day(warehouse, ds, cluster=HOSTILE, queue_assignment=owners(client_id))
        publish(warehouse, HOSTILE, ds)

    def rows_of_tuesday() -> list[Row]:
        earlier = newest_earlier_day(warehouse, HOSTILE, wednesday, COMPARED_TABLES)
        assert earlier is not None
        compared = BaselineRows(spark, warehouse, {(HOSTILE, wednesday): earlier}, {}, _not_computed)
        rows: list[Row] = compared.rows(QUEUE_ASSIGNMENT).collect()
        return rows

    before = rows_of_tuesday()
    merge_and_remove(warehouse)

    assert [row["client_id"] for row in before] == ["c2"]
    assert rows_of_tuesday() == before


def test_a_column_that_a_table_does_not_have_yet_is_null(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "table")
    write_deltalake(place, pa.table({"name": ["old"]}))
    write_deltalake(place, pa.table({"name": ["new"], "count": [1]}), mode="append", schema_mode="merge")
    schema = StructType([StructField("count", IntegerType()), StructField("name", StringType())])

    rows = read_delta(spark, schema, place, 0).collect()

    assert [row.asDict() for row in rows] == [{"count": None, "name": "old"}]
