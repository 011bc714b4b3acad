"""Maintenance of a warehouse: compaction and removal of data that is no longer needed, without an effect on readers.

These grow: files that no reader's version of a table references (replaced rows, files of killed publishers), small files of days, and
stages and Data Docs of finished days. Published rows are never removed.

Retention periods apply to unreferenced files only; files that a publication references are never removed.

Belongs here: the selection of such data, and the commits of maintenance. Does not belong here: the retention periods (settings).
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from rebalance_ledger.exports.manifest import export_day
from rebalance_ledger.storage.engines import file_system_of
from rebalance_ledger.tables import GATE_RESULT, PUBLICATION
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.content import DayRows
from rebalance_ledger.warehouse.evolution import NO_HOOKS
from rebalance_ledger.warehouse.staging import remove_attempts_of_day

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalake import DeltaTable

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.commits import PublishedTables
    from rebalance_ledger.warehouse.layout import Warehouse

_MANY_FILES: Final = 8
"""Days with fewer files are not compacted."""

_DAYS_PER_LOCK: Final = 20
"""Days of a table that are compacted before the lock is released for other writers."""

_SMALL_BYTES: Final = 32 * 1024 * 1024
"""Days whose files have at least this average size are not compacted."""


class RetentionPolicy(NamedTuple):
    """Retention periods for unreferenced files.

    Attributes:
        unreferenced: Files of the published tables; `ledger rollback` can go back as far.
        stages: Stages of days, published or refused.
        data_docs: Pages of days: Data Docs and reports.
    """

    unreferenced: timedelta
    stages: timedelta
    data_docs: timedelta


@dataclass(frozen=True, slots=True)
class MaintenanceAction:
    """An action of maintenance, performed or planned.

    Attributes:
        what: `compact`, `vacuum`, `stage` or `data_docs`.
        place: The table or folder.
        file_count: Number of files that are merged or removed.
    """

    what: str
    place: str
    file_count: int


def maintain(
    warehouse: Warehouse, keep: RetentionPolicy, *, now: datetime, is_applied: bool
) -> list[MaintenanceAction]:
    """Merge small files and remove unreferenced ones.

    Publishers wait for at most one table: other writers are excluded only while the files of a table are merged or removed.

    Args:
        warehouse: The warehouse.
        keep: Retention periods.
        now: Current time, an aware datetime.
        is_applied: Whether to perform the actions, and not only to list them.

    Returns:
        The actions, in order; none for tables and folders without anything to do.

    Raises:
        StagingError: Another release has written a table; run maintenance with that release.
        WriteError: A file cannot be written or removed; the next run continues from there.
    """
    if is_applied:
        with _writing(warehouse):
            pass  # What interrupted publications left in the tables is taken back, so that it can go.
    done: list[MaintenanceAction] = []
    for table in commits.PUBLISHED_TABLES:
        done += _compacted(warehouse, table, is_applied=is_applied)
    for place in (
        *map(warehouse.published, (*commits.PUBLISHED_TABLES, PUBLICATION)),
        warehouse.quarantine(GATE_RESULT),
    ):
        done += _vacuumed(warehouse, place, keep.unreferenced, is_applied=is_applied)
    done += _old_stages(warehouse, now - keep.stages, is_applied=is_applied)
    done += _old_data_docs(warehouse, now - keep.data_docs, is_applied=is_applied)
    return done


@contextmanager
def _writing(warehouse: Warehouse) -> Iterator[PublishedTables]:
    """Exclude other writers for the block; before and after it, readers see the newest version of each table."""
    with commits.writer_lock(warehouse) as ensure_held:
        tables = commits.prepare_tables(warehouse)
        yield tables
        ensure_held()
        tables.record_state()


def _compacted(warehouse: Warehouse, table: Table, *, is_applied: bool) -> list[MaintenanceAction]:
    """Compact days with many small files, and make publications record the new version."""
    place = warehouse.published(table)
    delta = commits.open_table(place)
    scattered = _scattered_days(delta) if delta else []
    for start in range(0, len(scattered) if is_applied else 0, _DAYS_PER_LOCK):
        with _writing(warehouse) as tables:
            delta = tables.open(table)
            if delta is None:
                break
            for day, _ in scattered[start : start + _DAYS_PER_LOCK]:
                delta.optimize.compact(
                    [("cluster", "=", day.cluster), ("ds", "=", day.ds.isoformat())],
                    post_commithook_properties=NO_HOOKS,
                )
                delta.update_incremental()
            let_publications_name(tables, {table.qualified_name: delta.version()})
    return [
        MaintenanceAction("compact", f"{place} {day.cluster} {day.ds}", file_count)
        for day, file_count in scattered
    ]


def _scattered_days(delta: DeltaTable) -> list[tuple[DayRows, int]]:
    """Return the days of a table with many small files, and the number of these files."""
    names = ("partition.cluster", "partition.ds", "size_bytes")
    actions = pa.table(delta.get_add_actions(flatten=True))
    sizes: dict[tuple[Any, Any], list[int]] = defaultdict(list)
    for cluster, ds, size_bytes in zip(*(actions[name].to_pylist() for name in names), strict=True):
        sizes[cluster, ds].append(size_bytes)
    return [
        (DayRows(*day), len(files))
        for day, files in sorted(sizes.items())
        if len(files) >= _MANY_FILES and sum(files) / len(files) < _SMALL_BYTES
    ]


def let_publications_name(tables: PublishedTables, versions: dict[str, int]) -> None:
    """Make readers see newer versions: in the rows of `publication` that record a table's newest version, record these instead."""
    rows = tables.publications()
    named = commits.named_versions(tables)
    changed: dict[DayRows, dict[str, Any]] = {}
    for row in rows:
        for table in row["tables"]:
            name = table["table_name"]
            if name in versions and table["delta_version"] == named[name]:
                table["delta_version"] = versions[name]
                changed[DayRows(row["cluster"], row["ds"])] = row
    tables.versions.update(versions)
    for day, row in changed.items():
        tables.record(day, {name: value for name, value in row.items() if name not in {"cluster", "ds"}})


def _vacuumed(
    warehouse: Warehouse, place: str, kept: timedelta, *, is_applied: bool
) -> list[MaintenanceAction]:
    """Remove files that no version of a table within the retention period references."""
    delta = commits.open_table(place)
    if delta is None:
        return []
    # Delta also returns files that were removed earlier, as long as they are in its log.
    file_system, path = file_system_of(place)
    entries = file_system.get_file_info(
        [f"{path}/{unquote(name)}" for name in _vacuum(delta, kept, dry_run=True)]
    )
    file_count = sum(entry.type == pafs.FileType.File for entry in entries)
    if file_count == 0:
        return []
    if is_applied:
        with _writing(warehouse) as tables:
            names = {warehouse.published(table): table.qualified_name for table in commits.PUBLISHED_TABLES}
            delta = (
                tables.publication if place == warehouse.published(PUBLICATION) else commits.open_table(place)
            )
            if delta is not None:
                _vacuum(delta, kept, dry_run=False)
                delta.update_incremental()  # A vacuum is in the log.
                if names.get(place) in tables.versions:
                    tables.versions[names[place]] = delta.version()
    return [MaintenanceAction("vacuum", place, file_count)]


def _vacuum(delta: DeltaTable, kept: timedelta, *, dry_run: bool) -> list[str]:
    """Remove unreferenced files, or only list them."""
    removed: list[str] = delta.vacuum(
        retention_hours=int(kept / timedelta(hours=1)),
        dry_run=dry_run,
        enforce_retention_duration=False,  # The settings have a least value of their own.
        post_commithook_properties=NO_HOOKS,
        full=True,  # What a killed writer left is in no version at all.
    )
    return removed


def _old_stages(warehouse: Warehouse, before: datetime, *, is_applied: bool) -> list[MaintenanceAction]:
    """Remove the stages of days without later writes; stages of running computations stay."""
    return [
        MaintenanceAction("stage", place, file_count)
        for place, file_count in _old_folders(f"{warehouse.root}/staging", before)
        if not is_applied or remove_attempts_of_day(place)
    ]


def _old_data_docs(warehouse: Warehouse, before: datetime, *, is_applied: bool) -> list[MaintenanceAction]:
    """Remove the pages of days without later writes."""
    done: list[MaintenanceAction] = []
    for place, file_count in _old_folders(warehouse.data_docs, before):
        done.append(MaintenanceAction("data_docs", place, file_count))
        if is_applied:
            file_system, path = file_system_of(place)
            file_system.delete_dir(path)
    return done


def _old_folders(root: str, before: datetime) -> Iterator[tuple[str, int]]:
    """Yield the folders `<root>/<cluster>/<ds>` without later writes, and the number of files in each.

    A folder of another name is not of the ledger. Each folder is read when it is its turn, so that the caller removes nothing that was
    written while other folders were removed.
    """
    for cluster in _folders(root):
        for name in _folders(f"{root}/{cluster}"):
            place = f"{root}/{cluster}/{name}"
            if export_day(name) is not None and (file_count := _files_of_old_folder(place, before)):
                yield place, file_count


def _folders(place: str) -> list[str]:
    file_system, path = file_system_of(place)
    entries = file_system.get_file_info(pafs.FileSelector(path, allow_not_found=True))
    return sorted(entry.base_name for entry in entries if entry.type == pafs.FileType.Directory)


def _files_of_old_folder(place: str, before: datetime) -> int:
    """Return the number of files in a folder, or 0 if any of them was written after `before`."""
    file_system, path = file_system_of(place)
    entries = file_system.get_file_info(pafs.FileSelector(path, recursive=True))
    files = [entry for entry in entries if entry.type == pafs.FileType.File]
    newest = max((entry.mtime for entry in files if entry.mtime), default=datetime.min.replace(tzinfo=UTC))
    return 0 if newest.astimezone(UTC) >= before else len(files)
