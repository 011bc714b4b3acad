"""Rollback of a day to its previous publication, in all tables at once."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rebalance_ledger.storage.engines import storage_options
from rebalance_ledger.tables import PUBLICATION
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.content import Content, content_of
from rebalance_ledger.warehouse.errors import RollbackError
from rebalance_ledger.warehouse.sandbox import connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    import pyarrow.dataset as pads

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import Warehouse


@dataclass(frozen=True, slots=True)
class Rollback:
    """The result of a rollback, performed or planned.

    Attributes:
        withdrawn_run_id: The computation that readers no longer see.
        restored_run_id: The computation that they see again.
        row_counts: Qualified name -> rows before and after, for each table whose rows change.
    """

    withdrawn_run_id: str
    restored_run_id: str
    row_counts: dict[str, tuple[int, int]]


def rollback(warehouse: Warehouse, cluster: str, ds: date, *, is_applied: bool) -> Rollback:
    """Restore the previous publication of a day, in all tables at once.

    Each call goes back by one publication and never forward; to publish the withdrawn computation again, run the day. A later run follows
    the restored publication, so its rollback returns to that one.

    Args:
        warehouse: The warehouse.
        cluster: Name of the cluster.
        ds: The day.
        is_applied: Whether to perform the rollback, and not only to describe it.

    Raises:
        RollbackError: The day is not published, has no earlier publication, or the files of that one were removed.
    """
    day = ClusterDay(cluster, ds)
    if not commits.PublishedTables(warehouse).publications(day):
        raise RollbackError(
            f"{cluster} {ds} is not published in {warehouse.root}, so there is nothing to roll back: "
            "look for its name and day in `ledger summary`."
        )
    with commits.writer_lock(warehouse) as ensure_held, connect() as connection:
        # Before `prepare_tables`, so that a rollback that is refused changes nothing.
        [current] = commits.PublishedTables(warehouse).publications(day)
        earlier = _replaced_record(warehouse, day, current)
        restored_rows = _rows_named_by(connection, warehouse, day, earlier)
        if is_applied:
            tables = commits.prepare_tables(warehouse)
            versions, _ = commits.replace_changed_tables(connection, tables, day, restored_rows, ensure_held)
            withdrawn = {
                "withdrawn_run_id": current["run_id"],
                "withdrawn_version": tables.publication_version,
            }
            tables.record(day, {**earlier, "tables": versions, **withdrawn})
    before, after = _contents_named_by(current), _contents_named_by(earlier)
    nothing = Content(0, "0")
    return Rollback(
        current["run_id"],
        earlier["run_id"],
        {
            table.qualified_name: (then.row_count, now.row_count)
            for table in commits.PUBLISHED_TABLES
            for then, now in [
                (before.get(table.qualified_name, nothing), after.get(table.qualified_name, nothing))
            ]
            if then != now
        },
    )


def _replaced_record(warehouse: Warehouse, day: ClusterDay, current: dict[str, Any]) -> dict[str, Any]:
    """Return the row of `publication` that the day's current one replaced."""
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
    connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, day: ClusterDay, record: dict[str, Any]
) -> dict[Table, pads.Dataset]:
    """Return the day's rows of a publication; read each table once, to check that its files exist."""
    table_entries = {row["table_name"]: row for row in record["tables"]}
    datasets: dict[Table, pads.Dataset] = {}
    for table in commits.PUBLISHED_TABLES:
        if table.qualified_name not in table_entries:  # It is newer than the publication.
            datasets[table] = commits.rows_of(table, day.cluster, day.ds, [])
            continue
        of_table = table_entries[table.qualified_name]
        version = of_table["delta_version"]
        with _as_gone(day, table, version):
            datasets[table] = _rows_at(warehouse, table, version, day)
            content = content_of(connection, table, datasets[table], day)
        if content != (of_table["row_count"], of_table["content_hash"]):
            raise RollbackError(
                f"{table.qualified_name} at version {version} does not hold the rows of {day.cluster} {day.ds} that "
                f"run {record['run_id']} published, so the day stays as it is: run it again."
            )
    return datasets


def _rows_at(warehouse: Warehouse, table: Table, version: int, day: ClusterDay) -> pads.Dataset:
    place = warehouse.published(table)
    delta = DeltaTable(place, version=version, storage_options=storage_options(place))
    return commits.rows_of_version(place, delta, table, day)


@contextmanager
def _as_gone(day: ClusterDay, table: Table, version: int) -> Iterator[None]:
    """Translate errors for missing files to `RollbackError`."""
    try:
        yield
    except (DeltaError, duckdb.Error, pa.ArrowException, OSError, ValueError) as error:
        raise RollbackError(
            f"What was published for {day.cluster} {day.ds} before is gone: {table.qualified_name} cannot be read at "
            f"version {version}, whose files a VACUUM may have removed. The day stays as it is: run it again."
        ) from error


def _contents_named_by(record: dict[str, Any]) -> dict[str, Content]:
    return {row["table_name"]: Content(row["row_count"], row["content_hash"]) for row in record["tables"]}
