"""Maintenance of a warehouse: merging small files and removing data that is no longer needed, without an effect on readers.

These grow: small files (one for each day of a cluster, in each table), files that no reader's version of a table references (replaced
rows, files of killed publishers), and stages and Data Docs of finished days. Published rows are never removed.

Retention periods apply to unreferenced files only; files that a publication references are never removed.

Belongs here: the selection of such data, and the commits of maintenance. Does not belong here: the retention periods (settings).
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow.fs as pafs

from rebalance_ledger.exports.manifest import export_day
from rebalance_ledger.storage.engines import file_system_of, folder_names
from rebalance_ledger.tables import GATE_RESULT, PUBLICATION
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.data_files import data_files
from rebalance_ledger.warehouse.evolution import NO_HOOKS
from rebalance_ledger.warehouse.staging import remove_attempts_of_day

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from deltalake import DeltaTable

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.commits import PublishedTables
    from rebalance_ledger.warehouse.data_files import DataFile
    from rebalance_ledger.warehouse.layout import Warehouse

_MANY_FILES: Final = 8
"""Fewer files of a day or a month are not merged."""

_FILES_PER_LOCK: Final = 2_000
"""Files of a table that are merged before the lock is released for other writers, and at least one group."""

_SMALL_BYTES: Final = 32 * 1024 * 1024
"""Files of a day with at least this average size are not merged, and neither are files of other days with this size."""

_MERGED_BYTES: Final = 128 * 1024 * 1024
"""Maximum size of the files that become one file. To publish one of its days again, the file must be written again."""


class RetentionPolicy(NamedTuple):
    """Retention periods for unreferenced files, and the time until files of different days are merged.

    Attributes:
        unreferenced: Files of the published tables; `ledger rollback` can go back as far.
        stages: Stages of days, published or refused.
        data_docs: Pages of days: Data Docs and reports.
        separate_days: Files of a month, one or more for each day.
    """

    unreferenced: timedelta
    stages: timedelta
    data_docs: timedelta
    separate_days: timedelta


@dataclass(frozen=True, slots=True)
class MaintenanceAction:
    """An action of maintenance, performed or planned.

    Attributes:
        what: `merge`, `vacuum`, `stage` or `data_docs`.
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
            pass  # What interrupted publications left in the tables is withdrawn, so that it can be removed.
    done: list[MaintenanceAction] = []
    # `publication` first, because it is read for each table.
    for table in (PUBLICATION, *commits.PUBLISHED_TABLES):
        done += merge_days(warehouse, table, (now - keep.separate_days).date(), is_applied=is_applied)
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


def merge_days(
    warehouse: Warehouse, table: Table, before: date, *, is_applied: bool
) -> list[MaintenanceAction]:
    """Merge the small files of each day, and those of the days of each month that has ended before a day.

    Args:
        warehouse: The warehouse.
        table: A published table, or `publication`.
        before: The day.
        is_applied: Whether to merge the files, and not only to list the merges.

    Returns:
        An action for each file that others become.
    """
    place = warehouse.published(table)
    delta = commits.open_table(place)
    groups = _groups(delta, before) if delta else []
    actions = [
        MaintenanceAction("merge", f"{place} {group[0].cluster} {_period(group)}", len(group))
        for group in groups
    ]
    while groups and is_applied:
        with _writing(warehouse) as tables:
            delta = tables.open(table)  # Others may have written it since.
            groups = _groups(delta, before) if delta else []
            merged = _first_files(groups, _FILES_PER_LOCK)
            if delta and merged:
                tables.merge(table, delta, merged)
            groups = groups[len(merged) :]
    return actions


def _groups(delta: DeltaTable, before: date) -> list[list[DataFile]]:
    """Return the files of a table to merge, in groups of one file each, by cluster and day."""
    of_day: dict[Any, list[DataFile]] = defaultdict(list)
    of_month: dict[Any, list[DataFile]] = defaultdict(list)
    has_days_as_partitions = "ds" in delta.metadata().partition_columns
    for file in sorted(data_files(delta), key=lambda file: (file.cluster, file.first_ds, file.path)):
        if file.day:
            of_day[file.day].append(file)
        month = file.first_ds.replace(day=1)
        next_month = (month + timedelta(days=31)).replace(day=1)
        if file.last_ds < next_month <= before and not has_days_as_partitions:
            of_month[file.cluster, month].append(file)
    scattered = [
        files
        for files in of_day.values()
        if len(files) >= _MANY_FILES and sum(file.size_bytes for file in files) < _SMALL_BYTES * len(files)
    ]
    months = (
        [
            file
            for file in files
            if file.size_bytes < _SMALL_BYTES and len(of_day.get(file.day, ())) < _MANY_FILES
        ]
        for files in of_month.values()
    )
    return [
        *(group for files in scattered for group in _batches(files) if len(group) > 1),
        *(group for files in months for group in _batches(files) if len(group) >= _MANY_FILES),
    ]


def _batches(files: list[DataFile]) -> Iterator[list[DataFile]]:
    """Yield consecutive files with a limited size."""
    batch: list[DataFile] = []
    for file in files:
        if batch and sum(each.size_bytes for each in batch) + file.size_bytes > _MERGED_BYTES:
            yield batch
            batch = []
        batch.append(file)
    if batch:
        yield batch


def _first_files(groups: list[list[DataFile]], most: int) -> list[list[DataFile]]:
    """Return the first groups, until they have enough files."""
    counts = accumulate(map(len, groups), initial=0)
    return [group for group, count in zip(groups, counts, strict=False) if count < most]


def _period(files: list[DataFile]) -> str:
    """Return the days of files, as a day or a month."""
    days = {file.day for file in files}
    return f"{files[0].first_ds}" if len(days) == 1 else f"{files[0].first_ds:%Y-%m}"


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

    A folder of another name is not of the ledger. Each folder is read just before it is removed, so that the caller removes nothing that
    was written while other folders were removed.
    """
    for cluster in folder_names(*file_system_of(root)):
        for name in folder_names(*file_system_of(f"{root}/{cluster}")):
            place = f"{root}/{cluster}/{name}"
            if export_day(name) is not None and (file_count := _files_of_old_folder(place, before)):
                yield place, file_count


def _files_of_old_folder(place: str, before: datetime) -> int:
    """Return the number of files in a folder, or 0 if any of them was written after `before`."""
    file_system, path = file_system_of(place)
    entries = file_system.get_file_info(pafs.FileSelector(path, recursive=True))
    files = [entry for entry in entries if entry.type == pafs.FileType.File]
    newest = max((entry.mtime for entry in files if entry.mtime), default=datetime.min.replace(tzinfo=UTC))
    return 0 if newest.astimezone(UTC) >= before else len(files)
