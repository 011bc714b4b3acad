"""The baseline of a day: the newest earlier published day.

Belongs here: the choice of the day, its files and content hashes, and their record in a stage, so that the gate compares with the
same rows as the build. Does not belong here: the comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.tables import OWNERSHIP_DRIFT, QUARANTINED_GROUP, QUEUE_ASSIGNMENT
from rebalance_ledger.tables.silver.consume_progress import CONSUME_PROGRESS
from rebalance_ledger.tables.silver.consumer_connection import CONSUMER_CONNECTION
from rebalance_ledger.warehouse.errors import NoWarehouseError, StagingError
from rebalance_ledger.warehouse.records import BUILD_AGAIN, decoding, exists, read_record, write_record
from rebalance_ledger.warehouse.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import StagingArea, Warehouse
    from rebalance_ledger.warehouse.staging import Build

COMPARED_TABLES: Final[tuple[Table, ...]] = (
    QUEUE_ASSIGNMENT,
    CONSUMER_CONNECTION,
    OWNERSHIP_DRIFT,
    QUARANTINED_GROUP,
    CONSUME_PROGRESS,
)
"""Tables of the baseline that a build reads; their hashes are in `publication.compared_content`."""


class EarlierRows(NamedTuple):
    """The rows of one table of a published day.

    Attributes:
        delta_version: Version of the published table that a publication records.
        files: Parquet files of that version with the day's rows.
    """

    delta_version: int
    files: tuple[str, ...]


class EarlierDay(NamedTuple):
    """A published day in one snapshot.

    Attributes:
        ds: The day.
        content: For each requested table, its qualified name, `=`, and the hash of the day's rows.
        tables: Table -> the day's rows, for tables that a publication records.
    """

    ds: date
    content: tuple[str, ...]
    tables: Mapping[Table, EarlierRows]

    def files(self, table: Table) -> tuple[str, ...]:
        """Return the Parquet files with the day's rows of a table; none for a table that no publication records."""
        return self.tables[table].files if table in self.tables else ()


def newest_earlier_day(
    warehouse: Warehouse, cluster: str, ds: date, tables: Iterable[Table]
) -> EarlierDay | None:
    """Return the newest published day of a cluster before a day; None if there is none.

    Args:
        warehouse: The warehouse.
        cluster: Name of the cluster.
        ds: UTC day; only earlier days are considered.
        tables: Tables that will be read.

    Raises:
        QueryError: A table cannot be read.
    """
    try:
        snapshot = Snapshot(warehouse.root, cluster)
    except NoWarehouseError:
        return None
    newest = snapshot.newest_day_before(cluster, ds)
    if newest is None:
        return None
    contents = snapshot.named_contents(newest)
    read = tuple(tables)
    hashes = (
        (table.qualified_name, contents[table.qualified_name].content_hash)
        for table in read
        if table.qualified_name in contents
    )
    published = {table: snapshot.published(table) for table in read}
    return EarlierDay(
        newest.ds,
        tuple(f"{name}={content_hash}" for name, content_hash in hashes),
        {
            table: EarlierRows(rows.version, rows.file_uris([newest]))
            for table, rows in published.items()
            if rows.version is not None
        },
    )


def write_baseline(warehouse: Warehouse, stage: StagingArea, earlier: EarlierDay) -> None:
    """Record the versions and files of the baseline in a stage, by their paths in the warehouse."""
    root = f"{warehouse.root}/"
    tables = [
        {
            "table_name": table.qualified_name,
            "delta_version": rows.delta_version,
            "files": [uri.removeprefix(root) for uri in rows.files],
        }
        for table, rows in earlier.tables.items()
    ]
    write_record(stage.baseline, {"tables": tables})


def read_baseline(warehouse: Warehouse, stage: StagingArea, build: Build) -> EarlierDay | None:
    """Return the baseline that a stage records, even if other days were published since; None if it has no baseline.

    Raises:
        StagingError: The record is missing or damaged, or `ledger maintain` has removed a file.
    """
    if build.baseline_ds is None:
        return None
    record = read_record(stage.baseline, BUILD_AGAIN)
    if record is None:
        raise StagingError(
            f"The staging area at {stage.root} has no record of the day that it was compared with: that day was not published yet, or another "
            f"release computed the stage. {BUILD_AGAIN.capitalize()}."
        )
    with decoding(stage.baseline, BUILD_AGAIN):
        rows_by_name = {
            table.text("table_name"): EarlierRows(
                table.count("delta_version"),
                tuple(f"{warehouse.root}/{path}" for path in table.texts("files")),
            )
            for table in record.records("tables")
        }
    tables = {
        table: rows_by_name[table.qualified_name]
        for table in COMPARED_TABLES
        if table.qualified_name in rows_by_name
    }
    for uri in (uri for rows in tables.values() for uri in rows.files):
        if not exists(uri):
            raise StagingError(
                f"{uri} is gone, with rows of {build.baseline_ds} that the staging area at {stage.root} was compared with: {BUILD_AGAIN}."
            )
    return EarlierDay(build.baseline_ds, tuple(build.compared_content or ()), tables)
