"""The rows of the newest earlier published day that a day is compared with.

Belongs here: which tables are read of it, and reading them. Does not belong here: which day that is (`rebalance_ledger.warehouse.baseline`), and
what is compared (`assignment_churn`, `presence`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql.types import StructType

from rebalance_ledger.tables import OWNERSHIP_DRIFT, QUARANTINED_GROUP, QUEUE_ASSIGNMENT
from rebalance_ledger.tables.silver.consume_progress import CONSUME_PROGRESS
from rebalance_ledger.tables.silver.consumer_connection import CONSUMER_CONNECTION
from spark_jobs.session import read_parquet, spark_schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.baseline import EarlierDay

COMPARED_TABLES: Final[tuple[Table, ...]] = (
    QUEUE_ASSIGNMENT,
    CONSUMER_CONNECTION,
    OWNERSHIP_DRIFT,
    QUARANTINED_GROUP,
    CONSUME_PROGRESS,
)
"""What is read of the earlier day; their hashes are in `publication.compared_content`."""


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
