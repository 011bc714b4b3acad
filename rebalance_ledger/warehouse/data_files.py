"""The Parquet files of a Delta table at one version, by cluster and day.

Belongs here: which files a day has, and reading them with Arrow. Does not belong here: which version a reader sees (`snapshot`,
`state`), commits (`commits`).
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from rebalance_ledger.storage.engines import file_system_of
from rebalance_ledger.warehouse.sandbox import SANDBOX_CONFIG

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import date

    from deltalake import DeltaTable

_COLUMNS = ("path", "partition.cluster", "partition.ds", "modification_time")


class PublishedDay(NamedTuple):
    """One day of one cluster."""

    cluster: str
    ds: date


class DataFile(NamedTuple):
    """A Parquet file of a table.

    Attributes:
        logged_path: Path in the table's folder, URL-encoded as in Delta's log.
        day: Partition of the file.
        modified_ms: Time of the last change, in epoch milliseconds.
    """

    logged_path: str
    day: PublishedDay
    modified_ms: int

    @property
    def path(self) -> str:
        """Its path below the table."""
        return unquote(self.logged_path)


def data_files(
    delta: DeltaTable, day: PublishedDay | None = None, *, cluster: str | None = None
) -> list[DataFile]:
    """Return the files of a table's open version, or those of one day or one cluster."""
    actions = pa.table(delta.get_add_actions(flatten=True)).select(_COLUMNS)
    of_cluster = day.cluster if day else cluster
    if of_cluster is not None:
        actions = actions.filter(pc.equal(actions["partition.cluster"], pa.scalar(of_cluster)))
    if day is not None:
        actions = actions.filter(pc.equal(actions["partition.ds"], pa.scalar(day.ds)))
    rows = zip(*(actions[name].to_pylist() for name in _COLUMNS), strict=True)
    return [DataFile(path, PublishedDay(cluster, ds), time) for path, cluster, ds, time in rows]


def dataset_of(
    uri: str, schema: pa.Schema, files: Iterable[DataFile], dictionary_columns: Collection[str] = ()
) -> pads.Dataset:
    """Return files of a table as an Arrow dataset that prunes by cluster and ds before it opens a file.

    `DeltaTable.to_pyarrow_dataset` also passes the statistics of each file, which takes twenty times as long per file and prunes hardly
    more if a day has few files.

    Args:
        uri: URI of the table.
        schema: Columns to read, including cluster and ds; columns that a file does not have are null.
        files: Files of the table.
        dictionary_columns: String columns to read as dictionaries, which takes less than half of the CPU time if few values repeat.
            DuckDB treats both types alike.
    """
    for name in dictionary_columns:
        field = pa.field(name, pa.dictionary(pa.int32(), pa.string()))
        schema = schema.set(schema.get_field_index(name), field)
    file_system, path = file_system_of(uri)
    # This is Arrow's own file system, and not the one of delta-rs, whose reads go through Python. Arrow reads ahead of a query that stops
    # early (`LIMIT`). If such reads were still running when the interpreter ended, it crashed or hung in two of a hundred runs.
    root = pafs.SubTreeFileSystem(path, file_system)
    parquet = pads.ParquetFileFormat(
        dictionary_columns=list(dictionary_columns),
        default_fragment_scan_options=pads.ParquetFragmentScanOptions(pre_buffer=True),
    )
    conditions: dict[PublishedDay, pads.Expression] = {}
    fragments = []
    for file in files:
        condition = conditions.get(file.day)
        if condition is None:
            condition = (pads.field("cluster") == file.day.cluster) & (pads.field("ds") == file.day.ds)
            conditions[file.day] = condition
        fragments.append(parquet.make_fragment(file.path, filesystem=root, partition_expression=condition))
    return pads.FileSystemDataset(fragments, schema, parquet, root)


def rows_of(
    uri: str,
    schema: pa.Schema,
    files: Iterable[DataFile],
    wanted: Mapping[str, Collection[str]],
    reader: duckdb.DuckDBPyConnection,
) -> pa.Table:
    """Return the rows of a table's files in which the given columns have one of the wanted values.

    DuckDB reads files on a disk, because it decodes the other columns only for matching rows; Arrow decodes whole row groups. Arrow
    reads files in an object store.

    Args:
        uri: URI of the table.
        schema: Columns to read; columns that a file does not have are null.
        files: Files of the table.
        wanted: String column -> accepted values.
        reader: See `connect_reader`.
    """
    files = list(files)
    file_system, path = file_system_of(uri)
    if any(not values for values in wanted.values()):
        return schema.empty_table()
    if not isinstance(file_system, pafs.LocalFileSystem):
        return dataset_of(uri, schema, files).to_table(
            filter=reduce(and_, (pc.field(name).isin(list(values)) for name, values in wanted.items()))
        )
    parts = [schema.empty_table()]
    for file in files:
        rows = reader.read_parquet(str(Path(path, file.path).absolute()), hive_partitioning=False)
        of_day = {"cluster": file.day.cluster, "ds": file.day.ds}
        columns = [
            duckdb.ColumnExpression(name)
            if name in rows.columns
            else duckdb.ConstantExpression(of_day.get(name)).alias(name)
            for name in schema.names
        ]
        for name, values in wanted.items():
            rows = rows.filter(duckdb.ColumnExpression(name).isin(*map(duckdb.ConstantExpression, values)))
        parts.append(rows.select(*columns).to_arrow_table().cast(schema))
    return pa.concat_tables(parts)


def connect_reader() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection for `rows_of`; it runs no SQL of users."""
    return duckdb.connect(config=SANDBOX_CONFIG | {"enable_external_access": "true"})
