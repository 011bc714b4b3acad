"""The Parquet files of a Delta table at one version, by cluster and day.

Belongs here: which files a day has, and reading them with Arrow. Does not belong here: which version a reader sees (`snapshot`,
`state`), commits (`commits`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from datetime import date, timedelta
from functools import reduce
from operator import and_, or_
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from rebalance_ledger.storage.engines import file_system_of
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.sandbox import connect

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from deltalake import DeltaTable

_ALL_DAYS: Final = (date.min, date.max)
_MOST_DAYS_LISTED: Final = 366
_MOST_REMEMBERED_BYTES: Final = 64 * 1024**2
_remembered: Final[dict[tuple[str, str], tuple[pa.Table, int]]] = {}
"""URI of a table and path of a file -> its rows and their bytes, the least recently read first; see `rows_in_memory`."""
_remembering: Final = Lock()
_DAY_FIELDS: Final = (pa.field("cluster", pa.string()), pa.field("ds", pa.date32()))


class DataFile(NamedTuple):
    """A Parquet file of a table: rows of one day, or of several days that maintenance has merged.

    Attributes:
        logged_path: Path in the table's folder, URL-encoded as in Delta's log.
        cluster: Cluster of all rows.
        first_ds: Lower bound of the days of the rows.
        last_ds: Upper bound of the days of the rows.
        modified_ms: Time of the last change, in epoch milliseconds.
        size_bytes: Size of the file.
        row_count: Number of its rows; None if the log does not have it.
    """

    logged_path: str
    cluster: str
    first_ds: date
    last_ds: date
    modified_ms: int
    size_bytes: int
    row_count: int | None

    @property
    def path(self) -> str:
        """Its path below the table."""
        return unquote(self.logged_path)

    @property
    def day(self) -> ClusterDay | None:
        """The day of its rows; None if it may have rows of several days."""
        return ClusterDay(self.cluster, self.first_ds) if self.first_ds == self.last_ds else None


def data_files(
    delta: DeltaTable, day: ClusterDay | None = None, *, cluster: str | None = None
) -> list[DataFile]:
    """Return the files of a table's open version, those that may have rows of one day, or those of one cluster.

    The bounds of `ds` are in each file's statistics. In tables of earlier releases, `ds` is a partition column.
    """
    actions = pa.table(delta.get_add_actions(flatten=True))
    bounds = ("partition.ds",) * 2 if "partition.ds" in actions.column_names else ("min.ds", "max.ds")
    names = ("path", "partition.cluster", *bounds, "modification_time", "size_bytes", "num_records")
    actions = actions.select([name for name in dict.fromkeys(names) if name in actions.column_names])
    of_cluster = day.cluster if day else cluster
    if of_cluster is not None:
        actions = actions.filter(pc.equal(actions["partition.cluster"], pa.scalar(of_cluster)))
    columns = (
        actions[name].to_pylist() if name in actions.column_names else [None] * len(actions) for name in names
    )
    files = [
        DataFile(path, name, first, last, time, size, row_count)
        if first and last
        else DataFile(path, name, *_ALL_DAYS, time, size, row_count)
        for path, name, first, last, time, size, row_count in zip(*columns, strict=True)
    ]
    return files_of_days(files, {day}) if day else files


def files_of_days(files: Iterable[DataFile], days: Collection[ClusterDay]) -> list[DataFile]:
    """Return the files that may have rows of some days."""
    days = frozenset(days)
    all_ds = _ds_by_cluster(days)

    def may_have_some(file: DataFile) -> bool:
        of_cluster = all_ds.get(file.cluster, [])
        position = bisect_left(of_cluster, file.first_ds)
        return position < len(of_cluster) and of_cluster[position] <= file.last_ds

    return [file for file in files if (file.day in days if file.day else may_have_some(file))]


def days_of(uri: str, files: Iterable[DataFile]) -> frozenset[ClusterDay]:
    """Return the days that some files of a table have rows of; only files with several days are read."""
    files = list(files)
    days = {file.day for file in files if file.day}
    several = [file for file in files if not file.day]
    if several:
        rows = dataset_of(uri, pa.schema(_DAY_FIELDS), several).to_table()
        days |= set(map(ClusterDay, rows["cluster"].to_pylist(), rows["ds"].to_pylist()))
    return frozenset(days)


def _ds_by_cluster(days: Iterable[ClusterDay]) -> dict[str, list[date]]:
    """Return the days of each cluster, in order."""
    all_ds: dict[str, list[date]] = defaultdict(list)
    for day in sorted(days):
        all_ds[day.cluster].append(day.ds)
    return all_ds


def dataset_of(
    uri: str,
    schema: pa.Schema,
    files: Iterable[DataFile],
    dictionary_columns: Collection[str] = (),
    days: Collection[ClusterDay] | None = None,
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
        days: The days whose rows the dataset has; None for all rows of the files.
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
    files = list(files)
    conditions: dict[tuple[str, date, date], pads.Expression] = {}
    fragments = []
    for file in files:
        bounds = (file.cluster, file.first_ds, file.last_ds)
        condition = conditions.get(bounds)
        if condition is None:
            condition = conditions[bounds] = _condition(file)
        fragments.append(parquet.make_fragment(file.path, filesystem=root, partition_expression=condition))
    dataset = pads.FileSystemDataset(fragments, schema, parquet, root)
    if days is None or not any(_may_have_others(file, days) for file in files):
        return dataset
    return dataset.filter(_condition_of_days(days))


def rows_in_memory(
    uri: str, schema: pa.Schema, files: Iterable[DataFile], days: Collection[ClusterDay]
) -> pa.Table:
    """Return the rows of some days in small files, without reading a file again that this process has read before.

    Files never change, and the reports of successive days read the same ones. At most `_MOST_REMEMBERED_BYTES` are kept.

    Args:
        uri: URI of the table.
        schema: Columns to read, including cluster and ds; columns that a file does not have are null.
        files: Files of the table that may have rows of the days.
        days: The days.
    """
    files = list(files)
    with _remembering:
        unread = [file for file in files if (uri, file.path) not in _remembered]
        fragments = dataset_of(uri, schema, unread).get_fragments()
        for file, fragment in zip(unread, fragments, strict=True):
            rows = fragment.to_table(schema=schema)
            _remembered[uri, file.path] = rows, rows.nbytes
        rows_of_files = []
        for file in files:
            rows, _ = _remembered[uri, file.path] = _remembered.pop((uri, file.path))
            rows_of_files.append(
                rows.filter(_condition_of_days(days)) if _may_have_others(file, days) else rows
            )
        while sum(size_bytes for _, size_bytes in _remembered.values()) > _MOST_REMEMBERED_BYTES:
            del _remembered[next(iter(_remembered))]
    return pa.concat_tables([schema.empty_table(), *rows_of_files])


def _condition_of_days(days: Collection[ClusterDay]) -> pads.Expression:
    """Return the condition that a row is of one of some days."""
    return reduce(
        or_,
        (
            (pads.field("cluster") == cluster) & pads.field("ds").isin(pa.array(all_ds, pa.date32()))
            for cluster, all_ds in _ds_by_cluster(days).items()
        ),
        pads.scalar(False),  # noqa: FBT003  # Arrow's scalar takes its value only
    )


def _condition(file: DataFile) -> pads.Expression:
    """Return what all rows of a file have in common."""
    of_cluster = pads.field("cluster") == file.cluster
    if file.day:
        return of_cluster & (pads.field("ds") == file.first_ds)
    if (file.first_ds, file.last_ds) == _ALL_DAYS:
        return of_cluster
    return of_cluster & (pads.field("ds") >= file.first_ds) & (pads.field("ds") <= file.last_ds)


def _may_have_others(file: DataFile, days: Collection[ClusterDay]) -> bool:
    """Return whether a file may have rows of other days than these."""
    if file.day:
        return file.day not in days
    day_count = (file.last_ds - file.first_ds).days + 1
    return day_count > _MOST_DAYS_LISTED or any(
        ClusterDay(file.cluster, file.first_ds + timedelta(days=number)) not in days
        for number in range(day_count)
    )


def rows_of(
    uri: str,
    schema: pa.Schema,
    files: Iterable[DataFile],
    day: ClusterDay,
    wanted: Mapping[str, Collection[str]],
    reader: duckdb.DuckDBPyConnection,
) -> pa.Table:
    """Return the rows of a day in which the given columns have one of the wanted values.

    DuckDB reads files on a disk, because it decodes the other columns only for matching rows; Arrow decodes whole row groups. Arrow
    reads files in an object store.

    Args:
        uri: URI of the table.
        schema: Columns to read; columns that a file does not have are null.
        files: Files of the table that may have rows of the day.
        day: The day.
        wanted: String column -> accepted values.
        reader: See `connect_reader`.
    """
    files = list(files)
    file_system, path = file_system_of(uri)
    if any(not values for values in wanted.values()):
        return schema.empty_table()
    if not isinstance(file_system, pafs.LocalFileSystem):
        with_ds = pa.schema([*schema, *(field for field in _DAY_FIELDS if field.name not in schema.names)])
        conditions = (pc.field(name).isin(list(values)) for name, values in wanted.items())
        return dataset_of(uri, with_ds, files, days={day}).to_table(
            columns=schema.names, filter=reduce(and_, conditions)
        )
    parts = [schema.empty_table()]
    for file in files:
        rows = reader.read_parquet(str(Path(path, file.path).absolute()), hive_partitioning=False)
        if file.day is None:
            rows = rows.filter(duckdb.ColumnExpression("ds") == duckdb.ConstantExpression(day.ds))
        of_day = day._asdict()
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
    return connect(enable_external_access="true")
