"""Retention of exports.

Belongs here: the selection of outdated exports of a cluster, and the atomic removal of one. Does not belong here: the retention period
(settings), and data derived from an export (`warehouse`).
"""

from __future__ import annotations

import secrets
import shutil
from datetime import date
from typing import TYPE_CHECKING

from rebalance_ledger.exports.manifest import MANIFEST_NAME, ExportError, export_day, export_directory

if TYPE_CHECKING:
    from pathlib import Path


def outdated_exports(exports: Path, cluster: str, *, keep_days: int, today: date) -> list[Path]:
    """Return the sealed exports of a cluster that are past the retention period, the oldest first.

    A folder without a manifest is never returned, because it may be work in progress.

    Args:
        exports: Folder of all clusters.
        cluster: Name of the cluster.
        keep_days: Minimum age in days of a returned export.
        today: The current UTC day.

    Raises:
        ExportError: The cluster's name cannot be a folder's name, `exports` is not a folder, or the cluster's folder cannot be listed.
    """
    folder = export_directory(exports, cluster, today).parent
    if not exports.is_dir():
        raise ExportError(
            "The exports cannot be listed", [f"{exports} is not a folder; name the one with <cluster>/<ds>/"]
        )
    # A period that reaches back to before year 1 means that no export goes.
    last_outdated_day = date.fromordinal(max(today.toordinal() - keep_days, date.min.toordinal()))
    try:
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise ExportError(
            f"The exports of {cluster} cannot be listed", [f"{folder}: {error.strerror}"]
        ) from error
    return [
        path
        for path in entries
        if (day := export_day(path.name)) is not None
        and day <= last_outdated_day
        and not path.is_symlink()
        and (path / MANIFEST_NAME).is_file()
    ]


def remove_export(directory: Path) -> None:
    """Remove an export atomically.

    Raises:
        ExportError: The export cannot be removed.
    """
    # The export writer uses the same name, so its next run completes a removal that was interrupted here.
    discarded = directory.with_name(f".{directory.name}.{secrets.token_hex(8)}.discarded")
    try:
        directory.rename(discarded)
        shutil.rmtree(discarded)
    except OSError as error:
        raise ExportError(
            f"{directory} is not removed", [f"{error.filename or directory}: {error.strerror}"]
        ) from error
