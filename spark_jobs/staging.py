"""Writing a computed day to its stage.

The stage is Parquet: it is written whole, read whole and thrown away, so a Delta log would only cost time (see
docs/adr/0006). What readers see is Delta, and is written by `rebalance_ledger.warehouse.publish`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.dataset as pads

from rebalance_ledger.progress import logged
from rebalance_ledger.storage.engines import file_system_of
from spark_jobs.session import read_parquet, spark_schema, thread_pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import StagingArea


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
