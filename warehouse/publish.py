"""How a staged day becomes published, or is refused, and how it returns to what was published before.

Only a stage that the gate has accepted is published (see `staging`). Each table's day is replaced by one Delta commit
(`replaceWhere` on cluster and ds); the row of `gold.publication` is the last commit, and readers follow it (see `snapshot`).

delta-rs writes the published tables, and nothing else does: no JVM to start, and one writer for each table. A table's
day that has not changed is not written, so a plain re-run changes no row and no version.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from tables import COMPUTED_GOLD_TABLES, GATE_RESULT, PUBLICATION, SILVER_TABLES
from warehouse.arrow_schema import arrow_schema
from warehouse.content import Content, DayRows, content_of
from warehouse.errors import RollbackError, StageError
from warehouse.evolution import (
    PARTITION_COLUMNS,
    bring_up_to_date,
    description,
    refuse_other_types,
    written_schema,
)
from warehouse.staging import accepted_stage, file_system_of, remove_superseded
from warehouse.storage import storage_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date

    from tables import Table
    from warehouse.layout import Stage, Warehouse

PUBLISHED_TABLES: tuple[Table, ...] = (*SILVER_TABLES, *COMPUTED_GOLD_TABLES, GATE_RESULT)
"""The tables of a day, in the order in which they are published; `publication` follows them."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What publishing a day did.

    Attributes:
        run_id: the computation that is published.
        changed_tables: qualified names of the tables whose rows changed; none for a plain re-run.
        row_count: rows of the day in all tables.
    """

    run_id: str
    changed_tables: tuple[str, ...]
    row_count: int


def quarantine(warehouse: Warehouse, cluster: str, ds: date, results: list[dict[str, Any]]) -> None:
    """Keep the results of a refused day where they can be queried; published tables are not touched."""
    place = warehouse.quarantine(GATE_RESULT)
    with _one_publisher(warehouse):
        delta = _open(place)
        if delta is not None:
            bring_up_to_date(delta, GATE_RESULT)
        _replace(
            place,
            GATE_RESULT,
            DayRows(cluster, ds),
            _rows_of(GATE_RESULT, cluster, ds, results),
        )


def publish(warehouse: Warehouse, cluster: str, ds: date) -> Publication:
    """Publish the staged and accepted day; the same day again replaces exactly that day.

    Raises:
        StageError: the stage is not whole, or the gate has not accepted this very stage.
    """
    day = DayRows(cluster, ds)
    # One connection for all tables: to open one takes longer than to count a table's rows.
    with _one_publisher(warehouse), duckdb.connect(":memory:") as connection:
        # Asked when it is our turn: whoever had to wait must not publish what has been overtaken meanwhile.
        judged = accepted_stage(warehouse, cluster, ds)
        _begin_writing(warehouse)
        staged = {
            table: _staged(judged.stage, table) for table in PUBLISHED_TABLES if table is not GATE_RESULT
        }
        staged[GATE_RESULT] = _rows_of(GATE_RESULT, cluster, ds, judged.results)
        versions, changed = _replace_changed(connection, warehouse, day, staged)
        _record(warehouse, day, {**asdict(judged.build), "gate_verdict": judged.verdict, "tables": versions})
        _leave_quarantine(warehouse, day)
        remove_superseded(warehouse, cluster, ds)
    return Publication(judged.build.run_id, changed, sum(row["row_count"] for row in versions))


@dataclass(frozen=True, slots=True)
class Rollback:
    """What a rollback did, or would do.

    Attributes:
        withdrawn_run_id: the computation that readers no longer see.
        restored_run_id: the one that they see again.
        row_counts: for each table whose rows change, its qualified name with the rows before and after.
    """

    withdrawn_run_id: str
    restored_run_id: str
    row_counts: dict[str, tuple[int, int]]


def rollback(warehouse: Warehouse, cluster: str, ds: date, *, is_applied: bool) -> Rollback:
    """Return a day to what was published before, in all tables at once.

    It goes back by one publication; once more, by one more, and never forward: to have again what was withdrawn, run
    the day again. A later run publishes after what is restored, so its own rollback returns to that.

    Args:
        warehouse: the warehouse.
        cluster: the cluster's name.
        ds: the day.
        is_applied: whether to do it, and not only to say what would be done.

    Raises:
        RollbackError: the day is not published, has no earlier publication, or its rows are gone.
    """
    day = DayRows(cluster, ds)
    if not _own_rows(warehouse, PUBLICATION, day):
        raise RollbackError(
            f"{cluster} {ds} is not published in {warehouse.root}, so there is nothing to roll back: "
            "look for its name and day in `ledger summary`."
        )
    with _one_publisher(warehouse), duckdb.connect(":memory:") as connection:
        [current] = _own_rows(warehouse, PUBLICATION, day)
        earlier = _replaced_record(warehouse, day, current)
        rows_of = _rows_named_by(connection, warehouse, day, earlier)
        if is_applied:
            _begin_writing(warehouse)
            versions, _ = _replace_changed(connection, warehouse, day, rows_of)
            withdrawn = {
                "withdrawn_run_id": current["run_id"],
                "withdrawn_version": _version(warehouse.published(PUBLICATION)),
            }
            restored = {**earlier, "tables": versions, **withdrawn}
            place = warehouse.published(PUBLICATION)
            _replace(place, PUBLICATION, day, _rows_of(PUBLICATION, cluster, ds, [restored]))
    before, after = _contents_named_by(current), _contents_named_by(earlier)
    nothing = Content(0, "0")
    return Rollback(
        current["run_id"],
        earlier["run_id"],
        {
            table.qualified_name: (then.row_count, now.row_count)
            for table in PUBLISHED_TABLES
            for then, now in [
                (before.get(table.qualified_name, nothing), after.get(table.qualified_name, nothing))
            ]
            if then != now
        },
    )


def _replaced_record(warehouse: Warehouse, day: DayRows, current: dict[str, Any]) -> dict[str, Any]:
    """The row of `publication` that the day's current one replaced."""
    version = current["replaced_version"]
    if version is None:
        raise RollbackError(
            f"{day.cluster} {day.ds} has no earlier publication than run {current['run_id']}: "
            "run the day again to change it."
        )
    with _as_gone(day, PUBLICATION, version):
        [record] = _rows_at(warehouse, PUBLICATION, version, day).to_table().to_pylist()
    return {name: value for name, value in record.items() if name not in {"cluster", "ds"}}


def _rows_named_by(
    connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, day: DayRows, record: dict[str, Any]
) -> dict[Table, pads.Dataset]:
    """The day's rows as a publication left them, each table read once to be sure of it."""
    named = {row["table_name"]: row for row in record["tables"]}
    rows_of: dict[Table, pads.Dataset] = {}
    for table in PUBLISHED_TABLES:
        if table.qualified_name not in named:  # It is newer than the publication.
            rows_of[table] = _rows_of(table, day.cluster, day.ds, [])
            continue
        of_table = named[table.qualified_name]
        version = of_table["delta_version"]
        with _as_gone(day, table, version):
            rows_of[table] = _rows_at(warehouse, table, version, day)
            content = content_of(connection, table, rows_of[table], day)
        if content != (of_table["row_count"], of_table["content_hash"]):
            raise RollbackError(
                f"{table.qualified_name} at version {version} does not hold the rows of {day.cluster} {day.ds} that "
                f"run {record['run_id']} published, so the day stays as it is: run it again."
            )
    return rows_of


def _rows_at(warehouse: Warehouse, table: Table, version: int, day: DayRows) -> pads.Dataset:
    delta = DeltaTable(
        warehouse.published(table), version=version, storage_options=storage_options(warehouse.root)
    )
    return delta.to_pyarrow_dataset(schema=arrow_schema(table)).filter(day.filter)


@contextmanager
def _as_gone(day: DayRows, table: Table, version: int) -> Iterator[None]:
    """Say in one sentence that what has to be read is not there any more."""
    try:
        yield
    except (DeltaError, duckdb.Error, pa.ArrowException, OSError, ValueError) as error:
        raise RollbackError(
            f"What was published for {day.cluster} {day.ds} before is gone: {table.qualified_name} cannot be read at "
            f"version {version}, whose files a VACUUM may have removed. The day stays as it is: run it again."
        ) from error


def _contents_named_by(record: dict[str, Any]) -> dict[str, Content]:
    return {row["table_name"]: Content(row["row_count"], row["content_hash"]) for row in record["tables"]}


def _named_versions(warehouse: Warehouse) -> dict[str, int]:
    """For each table, the greatest Delta version that a publication names."""
    versions: dict[str, int] = {}
    for row in _all_rows(warehouse, PUBLICATION):
        for table in row["tables"]:
            name = table["table_name"]
            versions[name] = max(versions.get(name, -1), table["delta_version"])
    return versions


def _begin_writing(warehouse: Warehouse) -> None:
    """Make the published tables what this release adds days to.

    Raises:
        StageError: another release has written a table that this one cannot add to; then nothing is changed.
    """
    for table in (*PUBLISHED_TABLES, PUBLICATION):
        delta = _open(warehouse.published(table))
        if delta is not None:
            refuse_other_types(delta, table)
    # To undo is to go back to a schema too, so it comes before the tables are brought up to date.
    _undo_interrupted(warehouse, _named_versions(warehouse))
    for table in (*PUBLISHED_TABLES, PUBLICATION):
        delta = _open(warehouse.published(table))
        if delta is not None:
            bring_up_to_date(delta, table)


def _undo_interrupted(warehouse: Warehouse, named: dict[str, int]) -> None:
    """Take back what a publisher that was killed before its last commit has written.

    No reader has seen it. If it stayed, the next publication would show it, as half of a day.
    """
    for table in PUBLISHED_TABLES:
        delta = _open(warehouse.published(table))
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


def _replace_changed(
    connection: duckdb.DuckDBPyConnection,
    warehouse: Warehouse,
    day: DayRows,
    rows_of: Mapping[Table, pads.Dataset],
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Make the day's rows these, in every table where they are others.

    Returns:
        The rows of `publication.tables`, and the qualified names of the tables that were written.
    """
    records = _own_rows(warehouse, PUBLICATION, day)
    before = {row["table_name"]: row for row in records[0]["tables"]} if records else {}
    versions: list[dict[str, Any]] = []
    changed: list[str] = []
    for table, rows in rows_of.items():
        content = content_of(connection, table, rows, day)
        known = before.get(table.qualified_name)
        own = _published_content(connection, warehouse, table, day) if known else None
        if known is None or own != content:
            changed.append(table.qualified_name)
            version = _replace(warehouse.published(table), table, day, rows)
        else:
            version = known["delta_version"]
        versions.append({"table_name": table.qualified_name, "delta_version": version, **content._asdict()})
    return versions, tuple(changed)


def _record(warehouse: Warehouse, day: DayRows, record: dict[str, Any]) -> None:
    """Write the day's row of `publication`, unless it says that already."""
    place = warehouse.published(PUBLICATION)
    replaced_version = None
    for current in _own_rows(warehouse, PUBLICATION, day):
        is_same = all(current[name] == value for name, value in record.items())
        if is_same and current["withdrawn_run_id"] is None:
            return
        # A run that computes just what a rollback restored confirms it: there is nothing new to take back.
        replaced_version = current["replaced_version"] if is_same else _version(place)
    row = {**record, "replaced_version": replaced_version}
    _replace(place, PUBLICATION, day, _rows_of(PUBLICATION, day.cluster, day.ds, [row]))


def _own_rows(warehouse: Warehouse, table: Table, day: DayRows) -> list[dict[str, Any]]:
    """The published rows of a day without cluster and ds."""
    columns = [column.name for column in table.columns]
    return _all_rows(warehouse, table, day.filter, columns)


def _all_rows(
    warehouse: Warehouse,
    table: Table,
    condition: pads.Expression | None = None,
    columns: list[str] | None = None,
) -> list[dict[str, Any]]:
    delta = _open(warehouse.published(table))
    if delta is None:
        return []
    rows: list[dict[str, Any]] = (
        # By our own schema: a table that older code wrote has null in the columns that it does not know.
        delta.to_pyarrow_dataset(schema=arrow_schema(table))
        .to_table(filter=condition, columns=columns)
        .to_pylist()
    )
    return rows


def _published_content(
    connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, table: Table, day: DayRows
) -> Content | None:
    delta = _open(warehouse.published(table))
    if delta is None:
        return None
    return content_of(connection, table, delta.to_pyarrow_dataset(schema=arrow_schema(table)), day)


def _replace(place: str, table: Table, day: DayRows, rows: pads.Dataset) -> int:
    """Make the day's rows in a Delta table these; returns the version that has them."""
    options = storage_options(place)
    published = _open(place)
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
    return _version(place)


def _version(place: str) -> int:
    return int(DeltaTable(place, storage_options=storage_options(place)).version())


def _checked_batches(rows: pads.Dataset, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows in a schema that may have more columns than they; these are null."""
    names = [name for name in schema.names if name in rows.schema.names]
    for batch in rows.to_batches(columns=names):
        yield pa.RecordBatch.from_arrays(
            [
                batch.column(field.name).cast(field.type)
                if field.name in names
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ],
            schema=schema,
        )


def _leave_quarantine(warehouse: Warehouse, day: DayRows) -> None:
    """A day that is published is no longer refused."""
    delta = _open(warehouse.quarantine(GATE_RESULT))
    if delta is not None and delta.to_pyarrow_dataset().count_rows(filter=day.filter):
        delta.delete(day.predicate)


def _open(place: str) -> DeltaTable | None:
    try:
        return DeltaTable(place, storage_options=storage_options(place))
    except TableNotFoundError:
        return None


def _rows_of(table: Table, cluster: str, ds: date, rows: list[dict[str, Any]]) -> pads.Dataset:
    whole = [{"cluster": cluster, "ds": ds, **row} for row in rows]
    return pads.dataset(pa.Table.from_pylist(whole, schema=arrow_schema(table)))


def _staged(stage: Stage, table: Table) -> pads.Dataset:
    file_system, path = file_system_of(stage.table(table))
    if file_system.get_file_info(path).type == pafs.FileType.NotFound:
        raise StageError(
            f"The stage at {stage.root} has no {table.qualified_name}, so another release computed it: run the build again."
        )
    return pads.dataset(path, schema=arrow_schema(table), format="parquet", filesystem=file_system)


@contextmanager
def _one_publisher(warehouse: Warehouse) -> Iterator[None]:
    """Keep other publishers out: two commits to one table at a time are not safe on a local file system.

    On an object store the commits themselves are safe (delta-rs puts them if they are absent); there, the pool of one
    slot in Airflow keeps publications apart.
    """
    if "://" in warehouse.root:
        yield
        return
    root = Path(warehouse.root)
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".publishing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
