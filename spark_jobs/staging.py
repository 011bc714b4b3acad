"""Writing a computed day to its stage.

The stage is Parquet, so a Delta log would only cost time (see docs/adr/0006). Its files become those of the published Delta tables, which
`rebalance_ledger.warehouse.publish` commits, so they are of sensible sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from rebalance_ledger.progress import logged
from rebalance_ledger.storage.engines import file_system_of
from spark_jobs.session import read_parquet, spark_schema, thread_pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import StagingArea

_MERGED_BYTES: Final = 16 * 1024 * 1024


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
        _merge_small_files(stage.table(table))
        file_system, path = file_system_of(stage.table(table))
        # From the footers of the files: no row is read.
        work.row_count = pads.dataset(path, format="parquet", filesystem=file_system).count_rows()
    return read_parquet(spark, spark_schema(table), stage.table(table))


def _merge_small_files(folder: str) -> None:
    """Write the rows of a folder into one file if there are few of them: each of Spark's tasks writes a file, however small."""
    file_system, path = file_system_of(folder)
    files = [
        entry
        for entry in file_system.get_file_info(pafs.FileSelector(path))
        if entry.type == pafs.FileType.File and entry.extension == "parquet"
    ]
    if len(files) <= 1 or sum(file.size for file in files) > _MERGED_BYTES:
        return
    places = [file.path for file in files]
    rows = pads.dataset(places, format="parquet", filesystem=file_system).to_table()
    pq.write_table(rows, f"{path}/part-merged-{uuid4()}.parquet", filesystem=file_system)
    for place in places:
        file_system.delete_file(place)


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
