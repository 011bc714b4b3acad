"""How long exports are kept.

What belongs here: which sealed days of a cluster are old enough to go, and removing one whole. What does not: who decides
(settings), and what was made of an export (`warehouse`).
"""

from __future__ import annotations

import secrets
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

from rebalance_ledger.exports.manifest import MANIFEST_NAME, ExportError, export_day, export_directory

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path


def outdated_exports(exports: Path, cluster: str, *, keep_days: int, today: date) -> list[Path]:
    """Return the sealed exports of a cluster that are older than what is kept, the oldest first.

    What bears no manifest is not counted as an export, however old it is: it may be somebody's work.

    Args:
        exports: The folder of all clusters.
        cluster: Name of the cluster.
        keep_days: An export goes when its day is at least so many days before today.
        today: The UTC day.

    Raises:
        ExportError: The cluster's name cannot be a folder's name, or its folder cannot be listed.
    """
    folder = export_directory(exports, cluster, today).parent
    last_to_go = today - timedelta(days=keep_days)
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
        and day <= last_to_go
        and not path.is_symlink()
        and (path / MANIFEST_NAME).is_file()
    ]


def remove_export(directory: Path) -> None:
    """Remove an export; at any moment it is there whole or not at all.

    Raises:
        ExportError: It cannot be removed.
    """
    # The name under which the writer of exports, too, leaves what is to go: its next run ends what is interrupted here.
    discarded = directory.with_name(f".{directory.name}.{secrets.token_hex(8)}.discarded")
    try:
        directory.rename(discarded)
        shutil.rmtree(discarded)
    except OSError as error:
        raise ExportError(
            f"{directory} is not removed", [f"{error.filename or directory}: {error.strerror}"]
        ) from error
