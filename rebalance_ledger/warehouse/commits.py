"""Commits to the published tables: one writer at a time, a day replaced whole, and half a publication taken back.

Each table's day is replaced by one Delta commit (`replaceWhere` on cluster and ds). delta-rs makes it, and nothing else
does: no JVM to start, and one writer for each table. A table's day that has not changed is not written, so a plain re-run
changes no row and no version.

Belongs here: what every writer needs, independent of the rows. Does not belong here: which rows a day gets (`publish`,
`rollback`), and what readers see (`snapshot`).
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from rebalance_ledger.storage.engines import storage_options
from rebalance_ledger.storage.location import is_object_store
from rebalance_ledger.tables import (
    COMPUTED_GOLD_TABLES,
    GATE_RESULT,
    PUBLICATION,
    QUARANTINED_GROUP,
    SILVER_TABLES,
)
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.content import STREAMED, Content, DayRows, content_of
from rebalance_ledger.warehouse.damage import ENGINE_ERRORS, naming_damage
from rebalance_ledger.warehouse.errors import WriteError, one_line
from rebalance_ledger.warehouse.evolution import (
    PARTITION_COLUMNS,
    bring_up_to_date,
    description,
    refuse_other_types,
    written_schema,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import date

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import Warehouse

    EnsureHeld = Callable[[], None]

PUBLISHED_TABLES: tuple[Table, ...] = (
    *SILVER_TABLES,
    *COMPUTED_GOLD_TABLES,
    QUARANTINED_GROUP,
    GATE_RESULT,
)
"""The tables of a day, in the order in which they are published; `publication` follows them."""


@contextmanager
def writer_lock(warehouse: Warehouse) -> Iterator[EnsureHeld]:
    """Exclude other writers by a file lock on a disk or a lease in an object store.

    Two commits to one table at a time are not safe on a local file system. In an object store they are (see
    `storage_options`), and still a publication is more than a commit: a writer first takes back what another has not
    finished.

    Yields:
        A function that raises OSError if the lock is lost; called before each commit.

    Raises:
        WriteError: something could not be written. Readers see what they saw before, and a later attempt may succeed.
    """
    if is_object_store(warehouse.root):
        from rebalance_ledger.storage.lease import hold_lease  # noqa: PLC0415  # a disk needs no client of object stores

        with _translate_write_errors(warehouse), hold_lease(warehouse.root) as lease:
            yield lease.check
        return
    root = Path(warehouse.root)
    with _translate_write_errors(warehouse):
        root.mkdir(parents=True, exist_ok=True)
        with (root / ".publishing").open("w") as lock:
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
            f"{warehouse.root} cannot be written: {one_line(str(error).split('. Detail:')[0])}. Readers see what they saw before; "
            "correct that and run the same command again."
        ) from error


def prepare_tables(warehouse: Warehouse) -> None:
    """Restore interrupted publications and bring the published tables to this release's definitions.

    Raises:
        StagingError: A table was written with types that this release cannot extend; nothing is changed.
    """
    for table in (*PUBLISHED_TABLES, PUBLICATION):
        delta = open_table(warehouse.published(table))
        if delta is not None:
            refuse_other_types(delta, table)
    # A restore also restores the schema, so it precedes the evolution of the tables.
    _restore_interrupted(warehouse, named_versions(warehouse))
    for table in (*PUBLISHED_TABLES, PUBLICATION):
        delta = open_table(warehouse.published(table))
        if delta is not None:
            bring_up_to_date(delta, table)


def named_versions(warehouse: Warehouse) -> dict[str, int]:
    """Return for each table the newest Delta version that a publication names."""
    versions: dict[str, int] = {}
    for row in all_rows(warehouse, PUBLICATION):
        for table in row["tables"]:
            name = table["table_name"]
            versions[name] = max(versions.get(name, -1), table["delta_version"])
    return versions


def _restore_interrupted(warehouse: Warehouse, named: dict[str, int]) -> None:
    """Restore tables that an interrupted publication has changed.

    No reader has seen the change. Otherwise the next publication would show half of a day.
    """
    for table in PUBLISHED_TABLES:
        delta = open_table(warehouse.published(table))
        if delta is None:
            continue
        version = named.get(table.qualified_name)
        if version is None:
            delta.delete()
        elif delta.version() > version:
            named_delta = DeltaTable(
                warehouse.published(table),
                version=version,
                storage_options=storage_options(warehouse.root),
            )
            # A maintenance commit or an earlier restore is newer too, and has the same files.
            if set(delta.file_uris()) != set(named_delta.file_uris()):
                delta.restore(version)


def replace_changed_tables(
    connection: duckdb.DuckDBPyConnection,
    warehouse: Warehouse,
    day: DayRows,
    rows_of: Mapping[Table, pads.Dataset],
    ensure_held: EnsureHeld,
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Replace the day's rows in every table whose content differs.

    Returns:
        The rows of `publication.tables`, and the qualified names of the tables that were written.
    """
    records = own_rows(warehouse, PUBLICATION, day)
    before = {row["table_name"]: row for row in records[0]["tables"]} if records else {}
    versions: list[dict[str, Any]] = []
    changed: list[str] = []
    for table, rows in rows_of.items():
        content = content_of(connection, table, rows, day)
        previous_content = before.get(table.qualified_name)
        own = _published_content(connection, warehouse, table, day) if previous_content else None
        if previous_content is None or own != content:
            changed.append(table.qualified_name)
            ensure_held()
            version = replace_day(warehouse.published(table), table, day, rows)
        else:
            version = previous_content["delta_version"]
        versions.append({"table_name": table.qualified_name, "delta_version": version, **content._asdict()})
    ensure_held()  # The next commit shows the day to readers.
    return versions, tuple(changed)


def replace_day(place: str, table: Table, day: DayRows, rows: pads.Dataset) -> int:
    """Replace the day's rows in a Delta table and return the new version."""
    options = storage_options(place)
    published = open_table(place)
    if published is None:
        published = DeltaTable.create(
            place,
            arrow_schema(table),
            mode="ignore",
            partition_by=PARTITION_COLUMNS,
            name=table.name,
            description=description(table),
            storage_options=options,
        )
    schema = written_schema(published, table)
    reader = pa.RecordBatchReader.from_batches(schema, _checked_batches(rows, schema))
    write_deltalake(place, reader, mode="overwrite", predicate=day.predicate, storage_options=options)
    return version_of(place)


def version_of(place: str) -> int:
    """Return the newest version of a Delta table."""
    return int(DeltaTable(place, storage_options=storage_options(place)).version())


def _checked_batches(rows: pads.Dataset, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows in a schema; columns that the rows lack are null."""
    names = [name for name in schema.names if name in rows.schema.names]
    for batch in rows.to_batches(columns=names, **STREAMED):
        yield pa.RecordBatch.from_arrays(
            [
                batch.column(field.name).cast(field.type)
                if field.name in names
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ],
            schema=schema,
        )


def own_rows(warehouse: Warehouse, table: Table, day: DayRows) -> list[dict[str, Any]]:
    """Return the published rows of a day without `cluster` and `ds`."""
    columns = [column.name for column in table.columns]
    return all_rows(warehouse, table, day.filter, columns)


def all_rows(
    warehouse: Warehouse,
    table: Table,
    condition: pads.Expression | None = None,
    columns: list[str] | None = None,
) -> list[dict[str, Any]]:
    """Return the newest rows of a published table; empty without a table."""
    delta = open_table(warehouse.published(table))
    if delta is None:
        return []
    # With this release's schema: columns that older code did not write are null.
    with naming_damage(warehouse.published(table)):
        dataset = delta.to_pyarrow_dataset(schema=arrow_schema(table))
    with naming_damage(warehouse.published(table), [dataset]):
        rows: list[dict[str, Any]] = dataset.to_table(filter=condition, columns=columns).to_pylist()
    return rows


def _published_content(
    connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, table: Table, day: DayRows
) -> Content | None:
    delta = open_table(warehouse.published(table))
    if delta is None:
        return None
    try:
        return content_of(connection, table, delta.to_pyarrow_dataset(schema=arrow_schema(table)), day)
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
    """Some rows of a day; cluster and ds are put in."""
    whole = [{"cluster": cluster, "ds": ds, **row} for row in rows]
    return pads.dataset(pa.Table.from_pylist(whole, schema=arrow_schema(table)))
