"""Commits to the published tables: one writer at a time, whole days, and the restoration of interrupted publications.

Each table's day is replaced by one Delta commit, which removes its files and adds the new ones. Only delta-rs commits, so no JVM is
started and each table has one writer. A table's day that has not changed is not written, so a plain re-run changes no row and no version.

Belongs here: what every writer needs, independent of the rows. Does not belong here: which rows a day gets (`publish`,
`rollback`), and what readers see (`snapshot`).
"""

from __future__ import annotations

import fcntl
import json
import time
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import RemoveAction

from rebalance_ledger.storage.engines import file_system_of, storage_options
from rebalance_ledger.storage.location import is_object_store
from rebalance_ledger.tables import (
    COMPUTED_GOLD_TABLES,
    GATE_RESULT,
    PUBLICATION,
    QUARANTINED_GROUP,
    SILVER_TABLES,
)
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.content import STREAMED, Content, content_of
from rebalance_ledger.warehouse.damage import ENGINE_ERRORS, find_damage, naming_damage
from rebalance_ledger.warehouse.data_files import data_files, dataset_of, days_of
from rebalance_ledger.warehouse.errors import WriteError, one_line
from rebalance_ledger.warehouse.evolution import (
    NO_HOOKS,
    PARTITION_COLUMNS,
    bring_up_to_date,
    description,
    refuse_other_types,
)
from rebalance_ledger.warehouse.staged_files import (
    StagedFiles,
    footers_of,
    give_to_table,
    have_types_of,
    rows_of_files,
    write_to_table,
)
from rebalance_ledger.warehouse.state import State, definitions_hash, read_state, state_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from deltalake import CommitProperties
    from deltalake.transaction import AddAction

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.data_files import DataFile
    from rebalance_ledger.warehouse.layout import Warehouse

    EnsureHeld = Callable[[], None]

PUBLISHED_TABLES: tuple[Table, ...] = (
    *SILVER_TABLES,
    *COMPUTED_GOLD_TABLES,
    QUARANTINED_GROUP,
    GATE_RESULT,
)
"""The tables of a day, in the order in which they are published; `publication` follows them."""

COMMITS_PER_CHECKPOINT: Final = 50
"""Commits after which a checkpoint is written: opening a table reads the last checkpoint and all later commits."""
_COMMITS_PER_SMALL_CHECKPOINT: Final = 10
_SMALL_CHECKPOINT_VERSIONS: Final = 500
"""Up to this version, checkpoints are cheap: one of 16 versions took the time of reading ninety commits."""


@contextmanager
def writer_lock(warehouse: Warehouse) -> Iterator[EnsureHeld]:
    """Exclude other writers by a file lock on a disk or a lease in an object store.

    Concurrent commits to a table are not safe on a local file system. In an object store they are (see `storage_options`), but a
    publication is more than one commit: a writer first restores what an interrupted one has changed.

    Yields:
        A function that raises OSError if the lock is lost; called before each commit.

    Raises:
        WriteError: Something could not be written. Readers see the previous state, and a later attempt may succeed.
    """
    if is_object_store(warehouse.root):
        from rebalance_ledger.storage.lease import hold_lease  # noqa: PLC0415  # a disk needs no client of object stores

        with _translate_write_errors(warehouse), hold_lease(warehouse.root) as lease:
            yield lease.check
        return
    lock_file = Path(warehouse.lock_file)
    with _translate_write_errors(warehouse):
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        with lock_file.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield _held_by_the_kernel


def _held_by_the_kernel() -> None:
    """Do nothing: the kernel holds a file lock until its process ends."""


@contextmanager
def _translate_write_errors(warehouse: Warehouse) -> Iterator[None]:
    """Translate errors of disks, stores and other writers to `WriteError`."""
    try:
        yield
    except (DeltaError, OSError, duckdb.Error, pa.ArrowException) as error:
        raise WriteError(
            f"{warehouse.root} cannot be written: {one_line(str(error).split('. Detail:')[0])}. Published tables are unchanged for "
            "readers; fix the cause and run the command again."
        ) from error


class PublishedTables:
    """The published tables, for the holder of the lock.

    Only `publication` is kept open, because an open table has the names of all files of its history in memory.

    Attributes:
        warehouse: The warehouse.
        versions: Qualified name -> the Delta version that readers see after the next commit to `publication`, for every existing
            table.
        untouched: Qualified names of the tables without a commit since the last publication.
    """

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self.versions: dict[str, int] = {}
        self.untouched: frozenset[str] = frozenset()
        self._written: set[str] = set()

    @cached_property
    def publication(self) -> DeltaTable | None:
        """`publication` at its newest version, or None if it does not exist."""
        return open_table(self.warehouse.published(PUBLICATION))

    def close_publication(self) -> None:
        """Release the memory of `publication`; the next use opens it again."""
        self.__dict__.pop("publication", None)

    @property
    def publication_version(self) -> int:
        """The newest version of `publication`; -1 if it does not exist."""
        return -1 if self.publication is None else int(self.publication.version())

    def open(self, table: Table) -> DeltaTable | None:
        """Return a table at its newest version, or None if it does not exist."""
        return self.publication if table is PUBLICATION else open_table(self.warehouse.published(table))

    def publications(self, day: ClusterDay | None = None) -> list[dict[str, Any]]:
        """Return the newest rows of `publication`; those of one day without `cluster` and `ds`."""
        if self.publication is None:
            return []
        place = self.warehouse.published(PUBLICATION)
        with naming_damage(place):
            dataset = rows_of_version(place, self.publication, PUBLICATION, day)
        columns = None if day is None else [column.name for column in PUBLICATION.columns]
        with naming_damage(place, [dataset]):
            rows: list[dict[str, Any]] = dataset.to_table(columns=columns).to_pylist()
        return rows

    def replace(
        self, table: Table, delta: DeltaTable | None, day: ClusterDay, rows: pads.Dataset | StagedFiles
    ) -> int:
        """Replace the day's rows in a table other than `publication`; return the new version."""
        place = self.warehouse.published(table)
        version = replace_day(delta, place, table, day, rows)
        self.versions[table.qualified_name] = version
        self._written.add(place)
        return version

    def merge(self, table: Table, delta: DeltaTable, groups: Iterable[Sequence[DataFile]]) -> None:
        """Merge files of a table at its newest version, which readers see from then on; see `merge_files`."""
        place = self.warehouse.published(table)
        self._written.add(place)
        if table is PUBLICATION:
            merge_files(delta, place, table, groups, self._state_properties())
            self.close_publication()  # The open table does not show the commit.
        else:
            self.versions[table.qualified_name] = merge_files(delta, place, table, groups)
            self.record_version(table)

    def record(self, day: ClusterDay, row: dict[str, Any]) -> None:
        """Write the day's row of `publication` and, in the same commit, the state; readers see both from then on."""
        place = self.warehouse.published(PUBLICATION)
        rows = rows_of(PUBLICATION, day.cluster, day.ds, [row])
        properties = self._state_properties()
        replace_day(self.publication, place, PUBLICATION, day, rows, properties)
        self.close_publication()  # The open table does not show the commit.
        self._write_checkpoints()

    def record_version(self, table: Table) -> None:
        """Record a table's version in one row of `publication`, in place of the newest one that a row records, and the state.

        The greatest version of all rows is the one to read. Of several rows, the newest day has the smallest file to write again.
        """
        recorded = [
            (of_table["delta_version"], row["ds"], row, of_table)
            for row in self.publications()
            for of_table in row["tables"]
            if of_table["table_name"] == table.qualified_name
        ]
        if recorded:
            *_, row, of_table = max(recorded, key=lambda found: found[:2])
            of_table["delta_version"] = self.versions[table.qualified_name]
            self.record(ClusterDay(row.pop("cluster"), row.pop("ds")), row)

    def record_state(self) -> None:
        """Record the state if it differs from the recorded one, without a row: after maintenance."""
        if self.publication is None:
            return
        state = read_state(self.publication, PUBLISHED_TABLES)
        if state == State(self.versions, is_current=True, definitions=_definitions_hash()):
            return
        self.publication.create_write_transaction(
            [],
            mode="append",
            schema=self.publication.schema(),
            partition_by=self.publication.metadata().partition_columns,
            commit_properties=self._state_properties(),
            post_commithook_properties=NO_HOOKS,
        )
        self.publication.update_incremental()
        self._write_checkpoints()

    def _state_properties(self) -> CommitProperties:
        # A table is created at version 0, without rows.
        return state_properties(max(0, self.publication_version) + 1, self.versions, _definitions_hash())

    def _write_checkpoints(self) -> None:
        """Write checkpoints of the written tables that have many commits since their last one."""
        for place in (*sorted(self._written), self.warehouse.published(PUBLICATION)):
            checkpoint_if_due(place)
        self._written.clear()


def prepare_tables(warehouse: Warehouse) -> PublishedTables:
    """Restore interrupted publications, and update the published tables to this release's definitions.

    Tables without a commit since the last publication are not opened.

    Raises:
        StagingError: A table was written with types that this release cannot extend; nothing is changed.
    """
    tables = PublishedTables(warehouse)
    state = (
        read_state(tables.publication, PUBLISHED_TABLES)
        if tables.publication
        else State({}, is_current=False, definitions=None)
    )
    named = dict(state.versions)
    if state.is_current and state.definitions == _definitions_hash():
        checked = [
            table
            for table in PUBLISHED_TABLES
            if has_commit_after(warehouse.published(table), named.get(table.qualified_name, -1))
        ]
    else:
        checked = list(PUBLISHED_TABLES)
        for name, version in _named_versions(tables).items():
            named[name] = max(version, named.get(name, version))
        if tables.publication:
            refuse_other_types(tables.publication, PUBLICATION)
    for table in checked:
        delta = tables.open(table)
        if delta is not None:
            refuse_other_types(delta, table)
    if len(checked) == len(PUBLISHED_TABLES) and tables.publication:
        bring_up_to_date(tables.publication, PUBLICATION)
        tables.publication.update_incremental()
    _restore_interrupted(tables, checked, named)
    names = {table.qualified_name for table in PUBLISHED_TABLES if table not in checked}
    tables.untouched = frozenset(names & named.keys())
    tables.versions |= {name: named[name] for name in tables.untouched}
    return tables


def _named_versions(tables: PublishedTables) -> dict[str, int]:
    """Return for each table the newest Delta version that a row of `publication` records."""
    versions: dict[str, int] = {}
    for row in tables.publications():
        for table in row["tables"]:
            name = table["table_name"]
            versions[name] = max(versions.get(name, -1), table["delta_version"])
    return versions


def has_commit_after(place: str, version: int) -> bool:
    """Return whether a Delta table has a later version than this one, without opening it.

    The commit of the next version exists, unless it was cleaned up; then there is a later checkpoint.
    """
    file_system, path = file_system_of(f"{place}/_delta_log")
    [commit] = file_system.get_file_info([f"{path}/{version + 1:020}.json"])
    return commit.type != pafs.FileType.NotFound or last_checkpoint(place) > version


def last_checkpoint(place: str) -> int:
    """Return the version of a Delta table's last checkpoint; -1 if it has none."""
    file_system, path = file_system_of(f"{place}/_delta_log/_last_checkpoint")
    try:
        with file_system.open_input_stream(path) as file:
            return int(json.loads(file.read())["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1  # It is a hint only: Delta finds checkpoints without it.


def checkpoint_if_due(place: str) -> None:
    """Write a checkpoint of a table with many commits since the last one, and remove its expired commits.

    delta-rs' own hook would also write a checkpoint for the commit of a killed publisher, and earlier commits that readers still use
    could expire.
    """
    last = last_checkpoint(place)
    interval = COMMITS_PER_CHECKPOINT
    if last < _SMALL_CHECKPOINT_VERSIONS:
        interval = min(interval, _COMMITS_PER_SMALL_CHECKPOINT)
    if has_commit_after(place, last + interval):
        delta = open_table(place)
        if delta is not None:
            delta.create_checkpoint()
            delta.cleanup_metadata()


def _definitions_hash() -> int:
    return definitions_hash((*PUBLISHED_TABLES, PUBLICATION))


def _restore_interrupted(tables: PublishedTables, checked: Iterable[Table], named: dict[str, int]) -> None:
    """Restore tables that an interrupted publication has changed, and update them to their definitions.

    No reader has seen the change; without the restoration, the next publication would show a part of that day.
    """
    for table in checked:
        delta = tables.open(table)
        if delta is None:
            continue
        version = named.get(table.qualified_name)
        if version is None:
            delta.delete(post_commithook_properties=NO_HOOKS)
        elif delta.version() > version:
            place = tables.warehouse.published(table)
            named_delta = DeltaTable(place, version=version, storage_options=storage_options(place))
            # A maintenance commit or an earlier restore is newer too, and has the same files.
            if set(delta.file_uris()) != set(named_delta.file_uris()):
                delta.restore(version, post_commithook_properties=NO_HOOKS)
        delta.update_incremental()
        # A restore also restores the schema, so it precedes the evolution.
        bring_up_to_date(delta, table)
        delta.update_incremental()
        tables.versions[table.qualified_name] = delta.version()


def replace_changed_tables(
    connection: duckdb.DuckDBPyConnection,
    tables: PublishedTables,
    day: ClusterDay,
    rows_of: Mapping[Table, pads.Dataset | StagedFiles],
    ensure_held: EnsureHeld,
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Replace the day's rows in every table whose content differs.

    Returns:
        The rows of `publication.tables`, and the qualified names of the tables that were written.
    """
    records = tables.publications(day)
    tables.close_publication()
    before = {row["table_name"]: row for row in records[0]["tables"]} if records else {}
    versions: list[dict[str, Any]] = []
    changed: list[str] = []
    for table, rows in rows_of.items():
        name = table.qualified_name
        content = rows.content if isinstance(rows, StagedFiles) else content_of(connection, table, rows, day)
        previous_content = before.get(name)
        delta = None
        if previous_content is not None:
            version, delta = previous_content["delta_version"], tables.open(table)
            is_changed = _published_content(connection, tables, table, delta, day) != content
        elif content.row_count == 0 and name in tables.untouched:
            version, is_changed = tables.versions[name], False
        else:
            version, delta, is_changed = -1, tables.open(table), True
        if is_changed:
            changed.append(name)
            ensure_held()
            version = tables.replace(table, delta, day, rows)
        versions.append({"table_name": name, "delta_version": version, **content._asdict()})
    ensure_held()  # The next commit shows the day to readers.
    return versions, tuple(changed)


def replace_day(
    delta: DeltaTable | None,
    place: str,
    table: Table,
    day: ClusterDay,
    rows: pads.Dataset | StagedFiles,
    properties: CommitProperties | None = None,
) -> int:
    """Replace the day's rows in a Delta table and return its new version.

    Staged files become files of the table; other rows are written.

    Args:
        delta: The table at its newest version; None if it does not exist.
        place: Location of the table, which is created if it does not exist.
        table: Its definition.
        day: The day to replace.
        rows: The new rows of the day. Files with other types than the table's are read and written again.
        properties: Further properties of the commit.
    """
    if delta is None:
        delta = DeltaTable.create(
            place,
            arrow_schema(table),
            mode="ignore",
            partition_by=PARTITION_COLUMNS,
            name=table.name,
            description=description(table),
            storage_options=storage_options(place),
        )
    replaced, of_other_days = _without_day(delta, place, table, day)
    of_day = _entries_of_day(rows, place, table, day, _partition_of(delta, day))
    what = f"replace the files of {day.cluster} {day.ds} with the staged ones"
    return _commit_files(delta, place, what, replaced, [*of_other_days, *of_day], properties)


def _entries_of_day(
    rows: pads.Dataset | StagedFiles, place: str, table: Table, day: ClusterDay, partition: Mapping[str, str]
) -> list[AddAction]:
    """Make a day's rows files of a table, which readers ignore until they are committed; return their entries in the commit."""
    if isinstance(rows, StagedFiles):
        footers = footers_of(rows, place, day)
        if have_types_of(footers, table):
            return give_to_table(rows, footers, place, partition)
        rows = rows_of_files(rows.places, table)
    return write_to_table(_batches(rows, arrow_schema(table)), place, partition)


def _without_day(
    delta: DeltaTable, place: str, table: Table, day: ClusterDay
) -> tuple[list[DataFile], list[AddAction]]:
    """Write the rows of other days in files with rows of a day to a new file.

    Returns:
        All files with rows of the day, and the entry of the new file.

    Raises:
        OSError: A file with rows of several days cannot be read.
    """
    files = data_files(delta, day)
    several = [file for file in files if not file.day]
    if not several:
        return files, []
    remedy = "it has rows of other days too, so bring it back from a copy, or publish all days into a new warehouse"
    with _naming_damaged_file(dataset_of(place, arrow_schema(table), several), remedy):
        with_day = [file for file in several if day in days_of(place, [file])]
        other_days = dataset_of(place, arrow_schema(table), with_day).filter(
            pads.field("ds") != pa.scalar(day.ds)
        )
        actions = write_to_table(_batches(other_days, arrow_schema(table)), place, _partition_of(delta, day))
    return [file for file in files if file.day or file in with_day], actions


@contextmanager
def _naming_damaged_file(rows: pads.Dataset, remedy: str) -> Iterator[None]:
    """Replace an error of the block by one with the file of the rows that cannot be read, if there is one, and the solution.

    Raises:
        OSError: The block failed.
    """
    try:
        yield
    except ENGINE_ERRORS as error:
        damage = find_damage([rows])
        if damage is None:
            raise
        raise OSError(f"{damage[0]} cannot be read ({one_line(damage[1])}); {remedy}") from error


def _partition_of(delta: DeltaTable, day: ClusterDay) -> dict[str, str]:
    """Return the partition values of a day's files."""
    values = {"cluster": day.cluster, "ds": day.ds.isoformat()}
    return {name: values[name] for name in delta.metadata().partition_columns}


def merge_files(
    delta: DeltaTable,
    place: str,
    table: Table,
    groups: Iterable[Sequence[DataFile]],
    properties: CommitProperties | None = None,
) -> int:
    """Replace each group of files of one cluster by one file with the same rows; return the new version of the table.

    Args:
        delta: The table at its newest version.
        place: Its location.
        table: Its definition.
        groups: Files of the table; a group has files of one cluster, and of one day if days are partitions.
        properties: Further properties of the commit.

    Raises:
        OSError: A file cannot be read or written, or a merged file does not have the rows of its group.
    """
    actions, merged = [], []
    for group in groups:
        files = sorted(group, key=lambda file: file.first_ds)
        rows = dataset_of(place, arrow_schema(table), files)
        partition = _partition_of(delta, ClusterDay(files[0].cluster, files[0].first_ds))
        with _naming_damaged_file(rows, "bring it back from a copy, or publish its day again"):
            written = write_to_table(_batches(rows, arrow_schema(table)), place, partition, is_change=False)
            expected_count = rows.count_rows()
        row_count = sum(json.loads(action.stats)["numRecords"] for action in written)
        if row_count != expected_count:
            raise OSError(
                f"{place} would have {row_count} of {expected_count} rows in the merged file of {files[0].cluster}"
            )
        actions += written
        merged += files
    what = f"merge {len(merged)} files"
    return _commit_files(delta, place, what, merged, actions, properties, is_change=False)


def _commit_files(
    delta: DeltaTable,
    place: str,
    what: str,
    replaced: Sequence[DataFile],
    actions: Sequence[AddAction],
    properties: CommitProperties | None,
    *,
    is_change: bool = True,
) -> int:
    """Replace files of a table at its newest version; return the new version.

    The open table stays at its version, because an update of it costs as much as opening it again. delta-rs does not notice every
    other writer, so the commit is read and compared.

    Raises:
        OSError: The commit at the next version does not replace exactly these files.
    """
    now_ms = time.time_ns() // 1_000_000
    removals = [RemoveAction(file.path, is_change, now_ms, file.size_bytes) for file in replaced]
    delta.create_write_transaction(
        [*removals, *actions],
        mode="append",
        schema=delta.schema(),
        partition_by=delta.metadata().partition_columns,
        commit_properties=properties,
        post_commithook_properties=NO_HOOKS,
    )
    version = int(delta.version()) + 1
    added, removed = _committed_paths(place, version)
    if (added, removed) != ({action.path for action in actions}, {file.path for file in replaced}):
        raise OSError(f"version {version} of {place} does not {what}")
    return version


def _committed_paths(place: str, version: int) -> tuple[set[str], set[str]]:
    """Return the paths of the files that a version of a Delta table added and removed."""
    file_system, path = file_system_of(f"{place}/_delta_log/{version:020}.json")
    with file_system.open_input_stream(path) as file:
        actions = [json.loads(line) for line in file.read().splitlines()]
    added, removed = (
        {unquote(action[kind]["path"]) for action in actions if kind in action} for kind in ("add", "remove")
    )
    return added, removed


def _batches(rows: pads.Dataset, schema: pa.Schema) -> pa.RecordBatchReader:
    """Return the rows in a schema; columns that the rows lack are null."""
    names = [name for name in schema.names if name in rows.schema.names]
    batches = (
        pa.RecordBatch.from_arrays(
            [
                batch.column(field.name).cast(field.type)
                if field.name in names
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ],
            schema=schema,
        )
        for batch in rows.to_batches(columns=names, **STREAMED)
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def rows_of_version(place: str, delta: DeltaTable, table: Table, day: ClusterDay | None) -> pads.Dataset:
    """Return the rows of a day, or of all days, in a table's open version; columns that older code did not write are null."""
    if day is None:
        return dataset_of(place, arrow_schema(table), data_files(delta))
    return dataset_of(place, arrow_schema(table), data_files(delta, day), days={day})


def _published_content(
    connection: duckdb.DuckDBPyConnection,
    tables: PublishedTables,
    table: Table,
    delta: DeltaTable | None,
    day: ClusterDay,
) -> Content | None:
    if delta is None:
        return None
    try:
        rows = rows_of_version(tables.warehouse.published(table), delta, table, day)
        return content_of(connection, table, rows, day)
    except ENGINE_ERRORS:
        # Unreadable rows are replaced: publishing the day again repairs them.
        return None


def open_table(place: str) -> DeltaTable | None:
    """Return a Delta table at its newest version, or None if it does not exist."""
    try:
        return DeltaTable(place, storage_options=storage_options(place))
    except TableNotFoundError:
        return None


def rows_of(table: Table, cluster: str, ds: date, rows: list[dict[str, Any]]) -> pads.Dataset:
    """Build some rows of a day, with its cluster and ds."""
    whole = [{"cluster": cluster, "ds": ds, **row} for row in rows]
    return pads.dataset(pa.Table.from_pylist(whole, schema=arrow_schema(table)))
