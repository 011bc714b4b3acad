"""`ledger maintain`: retention from the settings, the current time, and a line for each action.

Belongs here: output. Does not belong here: the actions (`rebalance_ledger.warehouse.maintenance`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from rebalance_ledger.cli.verify import sample_of, verify_days
from rebalance_ledger.settings import LedgerSettings, load_settings
from rebalance_ledger.warehouse.errors import NoWarehouseError
from rebalance_ledger.warehouse.maintenance import RetentionPolicy, maintain
from rebalance_ledger.warehouse.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from rebalance_ledger.warehouse.cluster_day import ClusterDay
    from rebalance_ledger.warehouse.layout import Warehouse

_DONE = {
    "merge": "files merged",
    "vacuum": "files removed that no publication needs",
    "stage": "files of a stage removed",
    "data_docs": "files of the gate's pages removed",
}


_LONGEST_PERIOD_DAYS: Final = 365_000
"""A longer one would reach back to before the calendar's first year; nothing of a warehouse is as old as this."""


def maintain_warehouse(
    warehouse: Warehouse, settings_file: Path | None, *, is_applied: bool
) -> Iterator[str]:
    """Maintain a warehouse; yield a line for each performed or planned action, and for each verified day.

    Raises:
        QueryError: Rows of a verified day differ from the published ones.
        SettingsError: The settings file is invalid.
        StagingError: Another release has written a table.
        WriteError: Something cannot be written or removed.
    """
    settings = (load_settings(settings_file) if settings_file else LedgerSettings()).maintenance
    keep = RetentionPolicy(
        unreferenced=_period(settings.vacuum_retention_days),
        stages=_period(settings.staging_retention_days),
        data_docs=_period(settings.data_docs_retention_days),
        separate_days=_period(settings.merge_after_days),
    )
    now = datetime.now(UTC)
    if not is_applied:
        yield "This is a dry run: nothing is changed. `--apply`, and in Airflow `dry_run: false` in the settings, does it."
    tidied = maintain(warehouse, keep, now=now, is_applied=is_applied)
    for each in tidied:
        yield f"{each.place}: {each.file_count} {_DONE[each.what]}"
    days = _days(warehouse)
    if not tidied:
        yield (
            "There is nothing to do."
            if days
            else f"There is nothing to do: {warehouse.root} has no published day."
        )
    yield from verify_days(warehouse.root, sample_of(days, settings.verified_day_count, now.date()))


def _period(days: int) -> timedelta:
    return timedelta(days=min(days, _LONGEST_PERIOD_DAYS))


def _days(warehouse: Warehouse) -> Collection[ClusterDay]:
    """Return the published days; none without a warehouse."""
    try:
        return Snapshot(warehouse.root).days
    except NoWarehouseError:
        return ()
