"""The reader's view: the published days, and for each table the version that the publications record.

A day is written table by table, and its row in `gold.publication` is last. A snapshot opens `publication` first, and every other table at
the version that its log records (see `state`). It shows only days with a publication, so a day that a killed run left incomplete is
invisible in every table.

Does not belong here: SQL (`query`), and writing (`publish`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from rebalance_ledger.storage.engines import storage_options
from rebalance_ledger.storage.location import is_object_store
from rebalance_ledger.tables import ALL_TABLES
from rebalance_ledger.tables.gold.gate_result import GATE_RESULT
from rebalance_ledger.tables.gold.publication import PUBLICATION
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.content import Content
from rebalance_ledger.warehouse.damage import naming_damage
from rebalance_ledger.warehouse.data_files import (
    data_files,
    dataset_of,
    days_of,
    files_of_days,
    rows_in_memory,
    rows_of,
)
from rebalance_ledger.warehouse.errors import NoWarehouseError, QueryError, one_line
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.state import State, read_state

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import date

    import duckdb

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.data_files import DataFile

_PUBLICATIONS_READ_FIRST = 32
"""Number of the newest publications that are read before all others; one is nearly always sufficient."""
_MOST_ROWS_IN_MEMORY = 200_000
"""Rows of a table that are read as a whole. Files say little about memory: equal rows of 60 days needed 171 times the size of their file."""


class _OpenTable:
    """A Delta table at one version, as files that Arrow can read: those of all clusters, or of one."""

    def __init__(self, uri: str, options: dict[str, str] | None, cluster: str | None) -> None:
        self.uri = uri
        self._cluster = cluster
        self._options = options
        try:
            self._delta = DeltaTable(uri, storage_options=options)
            self._refuse_unknown_features()
            self._refuse_empty_commit()
        except TableNotFoundError:
            raise
        except (DeltaError, OSError, ValueError) as error:
            raise QueryError(f"{uri} cannot be opened as a Delta table: {one_line(str(error))}.") from error

    def _refuse_unknown_features(self) -> None:
        """Refuse a table with unknown features, because an ignored deletion vector or column mapping would give wrong rows."""
        reader_version = self._delta.protocol().min_reader_version
        if reader_version > 1:
            raise QueryError(
                f"{self.uri} asks for a reader of Delta protocol {reader_version}, and the ledger writes and reads "
                "protocol 1: read it with Spark, or publish its days again into a new warehouse."
            )

    def _refuse_empty_commit(self) -> None:
        """Refuse an empty file in the log, for example after a power loss, because Delta reads it as a version without changes."""
        if is_object_store(self.uri):  # There an object is whole, or not there.
            return
        commit = Path(self.uri, "_delta_log", f"{self.version:020}.json")
        if commit.exists() and commit.stat().st_size == 0:
            raise QueryError(
                f"{commit} is empty, and so {self.uri} cannot be read at version {self.version}: bring the file back from a copy, "
                "or remove it and publish the newest day of this table again (`ledger backfill`)."
            )

    @property
    def version(self) -> int:
        """The Delta version that is open."""
        return int(self._delta.version())

    def go_back_to(self, version: int) -> None:
        """Open an earlier version."""
        try:
            self._delta.load_as_version(version)
        except (DeltaError, OSError) as error:
            raise QueryError(
                f"{self.uri} cannot be opened at version {version}, which its publication names: {one_line(str(error))}."
            ) from error

    @cached_property
    def files(self) -> list[DataFile]:
        """The files of this version."""
        with naming_damage(f"The log of {self.uri}"):
            return data_files(self._delta, cluster=self._cluster)

    @cached_property
    def days(self) -> frozenset[ClusterDay]:
        """The days that this version has rows of."""
        read = dataset_of(self.uri, pa.schema([]), [file for file in self.files if not file.day])
        with naming_damage(self.uri, [read]):
            return days_of(self.uri, self.files)

    def state(self, tables: Iterable[Table]) -> State:
        """Return the state of the other tables that the log of this one, `publication`, records."""
        return read_state(self._delta, tables)


def _refuse_unreadable(warehouse: Warehouse) -> None:
    """Refuse a warehouse without read permission; delta-rs reports its tables as missing.

    Raises:
        QueryError: A folder cannot be read.
    """
    if is_object_store(warehouse.root):
        return
    for folder in (Path(warehouse.root), Path(warehouse.published(PUBLICATION)).parent):
        try:
            next(folder.iterdir(), None)
        except PermissionError as error:
            raise QueryError(
                f"{folder} cannot be read: {error.strerror}. Use an account that can read the warehouse, or change the permissions."
            ) from error
        except OSError:
            return


class Snapshot:
    """The published tables of a warehouse, in one consistent state.

    Args:
        root: Root of the warehouse, a local path or a URI.
        cluster: The cluster whose days the snapshot has; None for all clusters. With years of history, the names of all files take more
            memory and time than the queries of one cluster.

    Raises:
        NoWarehouseError: `root` has no published and no refused day.
        QueryError: An existing table cannot be read.
    """

    def __init__(self, root: str, cluster: str | None = None) -> None:
        self._warehouse = Warehouse.at(root)
        self._cluster = cluster
        self._options = storage_options(self._warehouse.root)
        self._publication = self._open(self._warehouse.published(PUBLICATION))
        if self._publication is None and self._open(self._warehouse.quarantine(GATE_RESULT)) is None:
            _refuse_unreadable(self._warehouse)
            raise NoWarehouseError(
                f"There is no warehouse at {root}: publish a day first with `make run` or with "
                f"`ledger run --cluster C --ds D --warehouse {root}`, or name another with --warehouse."
            )
        self._named_version: dict[str, int] = {}
        self._published: dict[Table, PublishedTable] = {}
        self._state = (
            self._publication.state(ALL_TABLES)
            if self._publication
            else State({}, is_current=True, definitions=None)
        )

    @property
    def root(self) -> str:
        """The warehouse's root, a path or a URI."""
        return self._warehouse.root

    @cached_property
    def days(self) -> frozenset[ClusterDay]:
        """Every published day."""
        return self._publication.days if self._publication else frozenset()

    def compared_days(
        self, ds: date | None, compare_ds: date | None
    ) -> tuple[frozenset[ClusterDay], frozenset[ClusterDay]]:
        """Return a published day of each cluster, and the day that it is compared with.

        Args:
            ds: The day; None for the newest published day of each cluster.
            compare_ds: The other day; None for the newest published one before the first.
        """
        published: dict[str, list[date]] = defaultdict(list)
        for day in sorted(self.days):
            published[day.cluster].append(day.ds)
        newest, baseline = set(), set()
        for cluster, all_ds in published.items():
            chosen = all_ds[-1] if ds is None else ds
            position = bisect_left(all_ds, chosen)
            if position == len(all_ds) or all_ds[position] != chosen:
                continue
            newest.add(ClusterDay(cluster, chosen))
            if compare_ds in all_ds:
                baseline.add(ClusterDay(cluster, compare_ds))
            elif compare_ds is None and position:
                baseline.add(ClusterDay(cluster, all_ds[position - 1]))
        return frozenset(newest), frozenset(baseline)

    def newest_day_before(self, cluster: str, ds: date) -> ClusterDay | None:
        """Return the newest published day of a cluster before a day; None if there is none."""
        return max((day for day in self.days if day.cluster == cluster and day.ds < ds), default=None)

    def published(self, table: Table) -> PublishedTable:
        """Return a published table at this snapshot's version; empty, with its columns, if no publication names it."""
        if table not in self._published:
            self._published[table] = self._open_published(table)
        return self._published[table]

    def _open_published(self, table: Table) -> PublishedTable:
        schema = arrow_schema(table)
        if table is PUBLICATION:
            return PublishedTable(schema, self._publication, self.days)
        opened = self._open(self._warehouse.published(table))
        if opened is None:
            return PublishedTable(schema, None, self.days)
        version = self._version(table, opened.version)
        if version is None:
            return PublishedTable(schema, None, self.days)
        if version < opened.version:
            opened.go_back_to(version)
        return PublishedTable(schema, opened, self.days)

    def quarantined_gate_results(self) -> PublishedTable:
        """Return the verdicts on refused days, of all days at the newest version, because they belong to no publication."""
        opened = self._open(self._warehouse.quarantine(GATE_RESULT))
        days = opened.days if opened else frozenset()
        return PublishedTable(arrow_schema(GATE_RESULT), opened, days)

    def row_counts(self) -> dict[str, dict[ClusterDay, int]]:
        """Return the row count of each published day, by the qualified name of the table."""
        counts: dict[str, dict[ClusterDay, int]] = defaultdict(dict)
        for row in self._read_publications(self._publication_files, ["cluster", "ds", "tables"]):
            day = ClusterDay(row["cluster"], row["ds"])
            counts[PUBLICATION.qualified_name][day] = 1
            for table in row["tables"]:
                counts[table["table_name"]][day] = table["row_count"]
        return dict(counts)

    def named_contents(self, day: ClusterDay) -> dict[str, Content]:
        """Return the publication's entry for each table, by qualified name."""
        rows = self._read_publications(files_of_days(self._publication_files, {day}), ["tables"], {day})
        return {
            table["table_name"]: Content(table["row_count"], table["content_hash"])
            for row in rows
            for table in row["tables"]
        }

    @property
    def _publication_files(self) -> list[DataFile]:
        return self._publication.files if self._publication else []

    def _open(self, uri: str) -> _OpenTable | None:
        try:
            return _OpenTable(uri, self._options, self._cluster)
        except TableNotFoundError:
            return None

    def _version(self, table: Table, newest_version: int) -> int | None:
        """Return the version of a table that the publications name; None if none names it."""
        name = table.qualified_name
        recorded = self._state.versions.get(name)
        if self._state.is_current or recorded == newest_version:
            return recorded
        return max(
            (
                version
                for version in (recorded, self._version_by_rows(name, newest_version))
                if version is not None
            ),
            default=None,
        )

    def _version_by_rows(self, name: str, newest_version: int) -> int | None:
        """Return the greatest version that a row of `publication` records for a table; None if no row has the table.

        This is for warehouses of releases that record no state. The search ends at a row with the table's newest version.
        """
        while self._unread and self._named_version.get(name) != newest_version:
            for row in self._read_publications(self._unread.pop(0), ["tables"]):
                for named in row["tables"]:
                    of_row, version = named["table_name"], named["delta_version"]
                    self._named_version[of_row] = max(version, self._named_version.get(of_row, version))
        return self._named_version.get(name)

    @cached_property
    def _unread(self) -> list[list[DataFile]]:
        """Files of `publication` that `_version_by_rows` has not read yet."""
        newest_first = sorted(self._publication_files, key=lambda file: file.modified_ms, reverse=True)
        return [newest_first[:_PUBLICATIONS_READ_FIRST], newest_first[_PUBLICATIONS_READ_FIRST:]]

    def _read_publications(
        self, files: list[DataFile], columns: list[str], days: Collection[ClusterDay] | None = None
    ) -> list[dict[str, Any]]:
        if self._publication is None:
            return []
        dataset = dataset_of(self._publication.uri, arrow_schema(PUBLICATION), files, days=days)
        with naming_damage(self._publication.uri, [dataset]):
            rows: list[dict[str, Any]] = dataset.to_table(columns=columns).to_pylist()
        return rows


class PublishedTable:
    """One table of a snapshot."""

    def __init__(self, schema: pa.Schema, opened: _OpenTable | None, days: Collection[ClusterDay]) -> None:
        self._schema = schema
        self._opened = opened
        self._days = days

    def dataset(
        self, days: Collection[ClusterDay] | None = None, dictionary_columns: Collection[str] = ()
    ) -> pads.Dataset:
        """Return the rows of some published days, or of all of them, as an Arrow dataset; see `dataset_of`."""
        if self._opened is None:
            return pads.dataset(self._schema.empty_table())
        chosen = frozenset(self._days if days is None else days)
        files = files_of_days(self._opened.files, chosen)
        return dataset_of(self._opened.uri, self._schema, files, dictionary_columns, chosen)

    def in_memory(self, days: Collection[ClusterDay]) -> pa.Table | None:
        """Return the rows of some published days as one table in memory; None if there are too many, or their number is unknown.

        Raises:
            QueryError: A file cannot be read.
        """
        if self._opened is None:
            return self._schema.empty_table()
        files = files_of_days(self._opened.files, days)
        row_counts = [file.row_count for file in files]
        if None in row_counts or sum(filter(None, row_counts)) > _MOST_ROWS_IN_MEMORY:
            return None
        with naming_damage(self._opened.uri, map(self.dataset, [days])):  # Made after an error only.
            return rows_in_memory(self._opened.uri, self._schema, files, days)

    def as_written(self, day: ClusterDay) -> tuple[pads.Dataset, list[str]] | None:
        """Return a published day's rows as the release that published them defined the table; None without a file.

        Returns:
            A dataset, and the table's own columns in the order in which they were written.
        """
        fragment = next(self.dataset([day]).get_fragments(), None)
        if fragment is None or self._opened is None:
            return None
        keys = {"cluster", "ds"}
        own = [field for field in fragment.physical_schema if field.name not in keys]
        schema = pa.schema([*own, *(field for field in self._schema if field.name in keys)])
        files = files_of_days(self._opened.files, {day})
        return dataset_of(self._opened.uri, schema, files, days={day}), [field.name for field in own]

    def rows_of(
        self,
        day: ClusterDay,
        wanted: Mapping[str, Collection[str]],
        names: Collection[str],
        reader: duckdb.DuckDBPyConnection,
    ) -> pa.Table:
        """Return the wanted rows of one published day, with those of some columns that the table has.

        See `data_files.rows_of`.

        Raises:
            QueryError: A file cannot be read.
        """
        schema = pa.schema([field for field in self._schema if field.name in names])
        if self._opened is None:
            return schema.empty_table()
        files = files_of_days(self._opened.files, {day})
        with naming_damage(self._opened.uri, [dataset_of(self._opened.uri, self._schema, files)]):
            return rows_of(self._opened.uri, schema, files, day, wanted, reader)

    def rows(self, days: Collection[ClusterDay], columns: list[str] | None = None) -> list[dict[str, Any]]:
        """Return the rows of some published days in Python's types.

        Raises:
            QueryError: a file cannot be read.
        """
        dataset = self.dataset(days)
        with naming_damage(self._opened.uri if self._opened else "", [dataset]):
            rows: list[dict[str, Any]] = dataset.to_table(columns=columns).to_pylist()
        return rows

    @property
    def version(self) -> int | None:
        """The Delta version that the publications name; None if none names it."""
        return None if self._opened is None else self._opened.version

    def file_uris(self, days: Collection[ClusterDay]) -> tuple[str, ...]:
        """Return the URIs of the Parquet files with the rows of some published days; they may have rows of other days too."""
        if self._opened is None:
            return ()
        return tuple(f"{self._opened.uri}/{file.path}" for file in files_of_days(self._opened.files, days))
