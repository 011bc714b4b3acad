"""DataFrames of files, of published tables, and of rows of this process.

Belongs here: how rows get into a plan, and in how many parts. Does not belong here: the session and its settings (`session`), and what is
written (`staging`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
from pyspark.sql import functions as F

from rebalance_ledger.storage.engines import file_system_of
from spark_jobs.session import is_small, literal_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_PLANNED_ROWS_BYTES: Final = 256 * 1024
"""Largest size of the rows of a table that become a part of a plan. A task contains the rows that it reads, and Spark warns of tasks of
more than 1 MiB."""


def read_parquet(spark: SparkSession, schema: StructType, *places: str) -> DataFrame:
    """Read Parquet files or folders.

    A small day's rows become a part of the plan: to list files, to read their footers, and to send Hadoop's configuration to each task
    takes longer than such rows.
    """
    rows = _rows_of_plan(spark, schema, places)
    if rows is None:
        rows = spark.read.schema(schema).parquet(*map(literal_path, places))
    return in_one_part_if_small(spark, rows)


def _rows_of_plan(spark: SparkSession, schema: StructType, places: Sequence[str]) -> DataFrame | None:
    """Return the rows of files or folders as a part of a plan; None if they are no small day's, or too large."""
    if not is_small(spark):
        return None
    file_system, _ = file_system_of(places[0])
    files = parquet_files(file_system, [file_system_of(place)[1] for place in places])
    if not files or sum(file.size for file in files) > _PLANNED_ROWS_BYTES:
        return None
    rows = _read(file_system, [file.path for file in files], schema.names)
    if rows.nbytes > _PLANNED_ROWS_BYTES:
        return None
    # Files do not record which columns have no nulls, and neither does this. Spark 4.1 loses the rows of a table with an empty chunk
    # (`ArrowConverters`), which a file without rows is.
    return spark.createDataFrame(rows.combine_chunks(), schema.toNullable())


def read_files(
    files: Sequence[str], columns: list[str], condition: pads.Expression | None = None
) -> pa.Table:
    """Return columns of Parquet files to this process, of all rows or of some."""
    file_system, _ = file_system_of(files[0])
    return _read(file_system, [file_system_of(file)[1] for file in files], columns, condition)


def parquet_files(file_system: pafs.FileSystem, paths: Sequence[str]) -> list[pafs.FileInfo]:
    """Return the Parquet files among files and in folders."""
    entries: list[pafs.FileInfo] = []
    for entry in file_system.get_file_info(list(paths)):
        is_folder = entry.type == pafs.FileType.Directory
        entries += file_system.get_file_info(pafs.FileSelector(entry.path)) if is_folder else [entry]
    return [entry for entry in entries if entry.type == pafs.FileType.File and entry.extension == "parquet"]


def _read(
    file_system: pafs.FileSystem,
    paths: list[str],
    columns: list[str],
    condition: pads.Expression | None = None,
) -> pa.Table:
    return pads.dataset(paths, format="parquet", filesystem=file_system).to_table(columns, filter=condition)


def read_delta(spark: SparkSession, schema: StructType, place: str, version: int) -> DataFrame:
    """Read a version of a Delta table; columns that this version does not have yet are null."""
    rows = spark.read.format("delta").option("versionAsOf", version).load(place)
    missing = {
        field.name: F.lit(None).cast(field.dataType.simpleString())
        for field in schema
        if field.name not in rows.columns
    }
    return rows.withColumns(missing).select(*schema.fieldNames())


def from_rows(spark: SparkSession, schema: pa.Schema, rows: Iterable[tuple[Any, ...]]) -> DataFrame:
    """Return rows of this process as a DataFrame.

    They go to the JVM as an Arrow table. A list of rows would be read by Spark's Python workers, which takes a second where they first
    have to start.
    """
    columns: Iterable[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(schema)
    return spark.createDataFrame(pa.table([list(column) for column in columns], schema=schema))


def no_rows(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return an empty DataFrame; Spark removes it, and what is joined with it, from a plan."""
    columns = [f"CAST(NULL AS {field.dataType.simpleString()}) AS `{field.name}`" for field in schema]
    return spark.range(1).where(F.lit(col=False)).selectExpr(*columns)


def in_one_part_if_small(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """Return the same rows; those of a small day in one partition, so that Spark does not shuffle them to group or join."""
    return rows.coalesce(1) if is_small(spark) else rows
