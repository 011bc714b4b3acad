"""Write computed tables to the staging areas of their days, as Parquet.

A stage has no Delta log, which would only cost time (see docs/adr/0006). `rebalance_ledger.warehouse.publish` commits the staged files
to the published Delta tables as they are, so small files are merged here. The rows of many days are written at once, and each
day's files go to its own stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from rebalance_ledger.progress import logged
from rebalance_ledger.storage.engines import file_system_of
from rebalance_ledger.warehouse.arrow_schema import arrow_type
from rebalance_ledger.warehouse.layout import OFFSET_READINGS, StagingArea
from spark_jobs.day_key import DAY
from spark_jobs.rows import in_one_part_if_small, no_rows, parquet_files, read_files, read_parquet
from spark_jobs.session import spark_schema, thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.tables import Table

DayStages: TypeAlias = Mapping[tuple[str, date], StagingArea]
"""The stage of each day that is computed, by its cluster and ds."""

_MERGED_BYTES: Final = 16 * 1024 * 1024


def write_tables(
    spark: SparkSession, stages: DayStages, tables: Iterable[Table], rows: Mapping[str, DataFrame]
) -> dict[str, DataFrame]:
    """Write tables to the stages and return them as they were written.

    Later steps read the written rows, so that their plans are short and their results describe the rows that are published.
    """
    with thread_pool(spark) as pool:
        written = {
            table.name: pool.submit(write_table, spark, stages, table, rows[table.name]) for table in tables
        }
        return {name: done.result() for name, done in written.items()}


def write_table(spark: SparkSession, stages: DayStages, table: Table, rows: DataFrame) -> DataFrame:
    """Write one staged table and return it as it was written."""
    columns = [column.name for column in table.all_columns]
    with logged(table.qualified_name) as work:
        ordered = rows if rows.schema.names == columns else rows.select(*columns)
        folder = _write_by_day(spark, stages, ordered, lambda stage: stage.table(table))
        # From the footers of the files: no row is read.
        work.row_count = sum(_row_count(stage.table(table)) for stage in stages.values())
    return read_parquet(spark, spark_schema(table), folder)


def write_readings(spark: SparkSession, stages: DayStages, rows: DataFrame) -> DataFrame:
    """Write the rows of `offset_file_snapshots.readings`, which the gate reads too, and return them as they were written."""
    with logged(OFFSET_READINGS):
        folder = _write_by_day(spark, stages, rows, lambda stage: stage.offset_readings)
    return read_parquet(spark, rows.schema, folder)


def write_work(spark: SparkSession, stages: DayStages, name: str, rows: DataFrame) -> DataFrame:
    """Write an intermediate result that several steps read, and return it as it was written.

    Args:
        spark: The session.
        stages: The days' stages; the result for all days is written to the first one.
        name: Name of the result.
        rows: Its rows.
    """
    folder = first_stage(stages).work(name)
    _in_one_task_if_small(spark, stages, rows).write.mode("overwrite").parquet(folder)
    return read_parquet(spark, rows.schema, folder)


def stage_files(spark: SparkSession, stages: DayStages, table: Table, files: Sequence[str]) -> DataFrame:
    """Stage the rows of Parquet files with the columns of a table and others, and return the table.

    Args:
        spark: The session.
        stages: The days' stages.
        table: The table.
        files: Files with the rows of all days, which fit into memory. They must exist as long as the table is read.
    """
    schema = staged_schema(table)
    with logged(table.qualified_name) as work:
        rows = read_files(files, schema.names) if files else schema.empty_table()
        _stage_rows(stages, rows, lambda stage: stage.table(table))
        work.row_count = rows.num_rows
    return read_parquet(spark, spark_schema(table), *files) if files else no_rows(spark, spark_schema(table))


def staged_schema(table: Table) -> pa.Schema:
    """Return the schema of a table's staged files: every column is nullable, as in files that Spark writes."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in table.all_columns])


def _write_by_day(
    spark: SparkSession, stages: DayStages, rows: DataFrame, folder_of: Callable[[StagingArea], str]
) -> str:
    """Write rows to the stages of their days, a small day in one file.

    Returns:
        A folder with the rows of all days, because one folder is read faster than one for each day.

    Raises:
        RuntimeError: A row belongs to none of the days.
    """
    if len(stages) == 1:
        folder = folder_of(first_stage(stages))
        rows = _in_one_task_if_small(spark, stages, rows)
        rows.write.mode("overwrite").parquet(folder)
        _merge_small_files(folder)
        return folder
    # Spark would take longer to write a small file for each day than to compute the rows.
    written = f"{first_stage(stages).work('by_day')}/{uuid4()}"
    rows.write.parquet(written)
    file_system, path = file_system_of(written)
    _stage_rows(stages, pads.dataset(path, format="parquet", filesystem=file_system).to_table(), folder_of)
    return written


def _stage_rows(stages: DayStages, rows: pa.Table, folder_of: Callable[[StagingArea], str]) -> None:
    """Write rows to the stages of their days, in one file each.

    Raises:
        RuntimeError: A row belongs to none of the days.
    """
    row_count = 0
    for (cluster, ds), stage in stages.items():
        of_day = rows.filter((pads.field(DAY[0]) == cluster) & (pads.field(DAY[1]) == ds))
        row_count += of_day.num_rows
        file_system, folder = file_system_of(folder_of(stage))
        file_system.create_dir(folder)
        pq.write_table(of_day, f"{folder}/part-{uuid4()}.parquet", filesystem=file_system)
    if row_count != rows.num_rows:
        raise RuntimeError(f"{folder_of(first_stage(stages))} would miss rows of days that are not computed.")


def _in_one_task_if_small(spark: SparkSession, stages: DayStages, rows: DataFrame) -> DataFrame:
    """Return the same rows, in one task if they are of one small day: each part of a union would be a task, which costs more than its rows.

    The tasks of several days use all cores.
    """
    return in_one_part_if_small(spark, rows) if len(stages) == 1 else rows


def _merge_small_files(folder: str) -> None:
    """Merge the files of a folder into one if they are small: each of Spark's tasks writes a file of its own."""
    file_system, path = file_system_of(folder)
    files = parquet_files(file_system, [path])
    if len(files) <= 1 or sum(file.size for file in files) > _MERGED_BYTES:
        return
    paths = [file.path for file in files]
    rows = pads.dataset(paths, format="parquet", filesystem=file_system).to_table()
    pq.write_table(rows, f"{path}/part-merged-{uuid4()}.parquet", filesystem=file_system)
    for small_file in paths:
        file_system.delete_file(small_file)


def _row_count(folder: str) -> int:
    file_system, path = file_system_of(folder)
    return int(pads.dataset(path, format="parquet", filesystem=file_system).count_rows())


def first_stage(stages: DayStages) -> StagingArea:
    """Return the stage that has the intermediate results of all days."""
    return next(iter(stages.values()))
