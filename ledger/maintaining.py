"""`ledger maintain`: what the settings keep, the clock, and a line for each thing.

Belongs here: the words. Does not belong here: what may go (`warehouse.maintenance`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from settings import LedgerSettings, load_settings
from warehouse.maintenance import Keep, maintain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from warehouse.layout import Warehouse

_DONE = {
    "compact": "files merged",
    "vacuum": "files removed that no publication needs",
    "stage": "files of a stage removed",
    "data_docs": "files of the gate's pages removed",
}


def maintain_warehouse(
    warehouse: Warehouse, settings_file: Path | None, *, is_applied: bool
) -> Iterator[str]:
    """Maintain a warehouse; yields a line for each thing that was done, or would be.

    Raises:
        SettingsError: the settings file is wrong.
        StageError: another release has written a table.
        WriteError: something cannot be written or removed.
    """
    settings = (load_settings(settings_file) if settings_file else LedgerSettings()).maintenance
    keep = Keep(
        unreferenced=timedelta(days=settings.unreferenced_keep_days),
        stages=timedelta(days=settings.stage_keep_days),
        data_docs=timedelta(days=settings.data_docs_keep_days),
    )
    tidied = maintain(warehouse, keep, now=datetime.now(UTC), is_applied=is_applied)
    for each in tidied:
        yield f"{each.place}: {each.file_count} {_DONE[each.what]}"
    if not tidied:
        yield "There is nothing to do."
    elif not is_applied:
        yield "Nothing was changed; say --apply to do it."
