"""The rows of the newest earlier published day that a day is compared with.

Belongs here: reading them. Does not belong here: which day that is and which tables (`rebalance_ledger.warehouse.baseline`), and what
is compared (`assignment_churn`, `presence`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.types import StructType

from rebalance_ledger.warehouse.baseline import COMPARED_TABLES
from spark_jobs.session import read_parquet, spark_schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.baseline import EarlierDay


class BaselineRows(NamedTuple):
    """The earlier day and its rows: the tables' own columns, by the table's name."""

    ds: date
    rows: Mapping[str, DataFrame]


def baseline_rows(spark: SparkSession, earlier: EarlierDay) -> BaselineRows:
    """Read the rows of the earlier day, which stay the same whatever is published meanwhile."""

    def read(table: Table) -> DataFrame:
        own = StructType([field for field in spark_schema(table) if field.name not in {"cluster", "ds"}])
        files = earlier.files[table]
        if not files:
            return spark.createDataFrame([], own)
        return read_parquet(spark, own, *files)

    return BaselineRows(earlier.ds, {table.name: read(table) for table in COMPARED_TABLES})
