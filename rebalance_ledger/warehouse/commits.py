"""Commits to the published tables: one writer at a time, a day replaced whole, and half a publication taken back.

Each table's day is replaced by one Delta commit (`replaceWhere` on cluster and ds). delta-rs makes it, and nothing else
does: no JVM to start, and one writer for each table. A table's day that has not changed is not written, so a plain re-run
changes no row and no version.

Belongs here: what every writer needs, whatever it writes. Does not belong here: which rows a day gets (`publish`,
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

    StillOurs = Callable[[], None]

PUBLISHED_TABLES: tuple[Table, ...] = (
    *SILVER_TABLES,
    *COMPUTED_GOLD_TABLES,
    QUARANTINED_GROUP,
    GATE_RESULT,
)
"""The tables of a day, in the order in which they are published; `publication` follows them."""


@contextmanager
def one_writer(warehouse: Warehouse) -> Iterator[StillOurs]:
    """Keep other writers out, by a lock of the disk or a turn in the object store.

    Two commits to one table at a time are not safe on a local file system. In an object store they are (see
    `storage_options`), and still a publication is more than a commit: whoever begins takes back what another has not
    finished.

    Yields:
        What raises an OSError if others are no longer kept out; asked before each commit.

    Raises:
        WriteError: something could not be written. Readers see what they saw before, and a later attempt may succeed.
    """
    if is_object_store(warehouse.root):
        from rebalance_ledger.storage.lease import turn  # noqa: PLC0415  # a disk needs no client of object stores

        with _translate_write_errors(warehouse), turn(warehouse.root) as mine:
            yield mine.check
        return
    root = Path(warehouse.root)
    with _translate_write_errors(warehouse):
        root.mkdir(parents=True, exist_ok=True)
        with (root / ".publishing").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield _held_by_the_kernel


def _held_by_the_kernel() -> None:
    """The lock of a living process is its own until it ends."""


@contextmanager
def _translate_write_errors(warehouse: Warehouse) -> Iterator[None]:
    """Raise errors of the disk, the object store or another writer as one-sentence `WriteError`s."""
    try:
        yield
    except (DeltaError, OSError, duckdb.Error, pa.ArrowException) as error:
        raise WriteError(
            f"{warehouse.root} cannot be written: {one_line(str(error).split('. Detail:')[0])}. Readers still see the previous data; "
            "fix the cause and run the same command again."
        ) from error


def begin_writing(warehouse: Warehouse) -> None:
    """Make the published tables what this release adds days to.

    Raises:
        StagingError: another release has written a table that this one cannot add to; then nothing is changed.
    """
    for table in (*PUBLISHED_TABLES, PUBLICATION):
        delta = open_table(warehouse.published(table))
        if delta is not None:
            refuse_other_types(delta, table)
    # To undo is to go back to a schema too, so it comes before the tables are brought up to date.
    _undo_interrupted(warehouse, named_versions(warehouse))
    for table in (*PUBLISHED_TABLES, PUBLICATION):
        delta = open_table(warehouse.published(table))
        if delta is not None:
            bring_up_to_date(delta, table)


def named_versions(warehouse: Warehouse) -> dict[str, int]:
    """For each table, the greatest Delta version that a publication names."""
    versions: dict[str, int] = {}
    for row in all_rows(warehouse, PUBLICATION):
        for table in row["tables"]:
            name = table["table_name"]
            versions[name] = max(versions.get(name, -1), table["delta_version"])
    return versions


def _undo_interrupted(warehouse: Warehouse, named: dict[str, int]) -> None:
    """Take back what a publisher that was killed before its last commit has written.

    No reader has seen it. If it stayed, the next publication would show it, as half of a day.
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
            # A maintenance commit or an earlier undoing is newer too, and changed nothing that counts.
            if set(delta.file_uris()) != set(named_delta.file_uris()):
                delta.restore(version)


def replace_changed(
    connection: duckdb.DuckDBPyConnection,
    warehouse: Warehouse,
    day: DayRows,
    rows_of: Mapping[Table, pads.Dataset],
    still_ours: StillOurs,
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Make the day's rows these, in every table where they are others.

    Returns:
        The rows of `publication.tables`, and the qualified names of the tables that were written.
    """
    records = own_rows(warehouse, PUBLICATION, day)
    before = {row["table_name"]: row for row in records[0]["tables"]} if records else {}
    versions: list[dict[str, Any]] = []
    changed: list[str] = []
    for table, rows in rows_of.items():
        content = content_of(connection, table, rows, day)
        known = before.get(table.qualified_name)
        own = _published_content(connection, warehouse, table, day) if known else None
        if known is None or own != content:
            changed.append(table.qualified_name)
            still_ours()
            version = replace_day(warehouse.published(table), table, day, rows)
        else:
            version = known["delta_version"]
        versions.append({"table_name": table.qualified_name, "delta_version": version, **content._asdict()})
    still_ours()  # What follows lets readers see it.
    return versions, tuple(changed)


def replace_day(place: str, table: Table, day: DayRows, rows: pads.Dataset) -> int:
    """Make the day's rows in a Delta table these; returns the version that has them."""
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
    """The newest version of a Delta table."""
    return int(DeltaTable(place, storage_options=storage_options(place)).version())


def _checked_batches(rows: pads.Dataset, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows in a schema that may have more columns than they; these are null."""
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
    """The published rows of a day without cluster and ds."""
    columns = [column.name for column in table.columns]
    return all_rows(warehouse, table, day.filter, columns)


def all_rows(
    warehouse: Warehouse,
    table: Table,
    condition: pads.Expression | None = None,
    columns: list[str] | None = None,
) -> list[dict[str, Any]]:
    """The newest rows of a published table; none where there is no table."""
    delta = open_table(warehouse.published(table))
    if delta is None:
        return []
    # By our own schema: a table that older code wrote has null in the columns that it does not know.
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
        # Rows that nobody can read are replaced: publishing the day again is what repairs them.
        return None


def open_table(place: str) -> DeltaTable | None:
    """A Delta table at its newest version; None where there is none."""
    try:
        return DeltaTable(place, storage_options=storage_options(place))
    except TableNotFoundError:
        return None


def rows_of(table: Table, cluster: str, ds: date, rows: list[dict[str, Any]]) -> pads.Dataset:
    """Some rows of a day; cluster and ds are put in."""
    whole = [{"cluster": cluster, "ds": ds, **row} for row in rows]
    return pads.dataset(pa.Table.from_pylist(whole, schema=arrow_schema(table)))
