"""The sealed exports before a day, for comparisons.

What belongs here: the search for exports. What does not: the comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rebalance_ledger.exports.manifest import (
    ExportError,
    Manifest,
    export_day,
    export_directory,
    load_manifest,
)
from rebalance_ledger.storage.location import ObjectPath

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from rebalance_ledger.storage.location import Location


class EarlierExport(NamedTuple):
    """A sealed export and its location."""

    directory: Location
    manifest: Manifest


def earlier_exports(exports: Location, cluster: str, ds: date, *, most: int) -> tuple[EarlierExport, ...]:
    """Return the newest sealed exports of a cluster before a day, the newest first.

    Directories without a valid manifest of that cluster and day are skipped.

    Args:
        exports: Folder of all clusters.
        cluster: Name of the cluster.
        ds: UTC day; only earlier exports are returned.
        most: Maximum number of exports.

    Raises:
        ExportError: The cluster's name cannot be a folder's name.
    """
    folder = export_directory(exports, cluster, ds).parent
    days = sorted(
        (
            day
            for directory in _folders(folder)
            if (day := export_day(directory.name)) is not None and day < ds
        ),
        reverse=True,
    )
    earlier: list[EarlierExport] = []
    for day in days:
        if len(earlier) == most:
            break
        directory = export_directory(exports, cluster, day)
        try:
            manifest = load_manifest(directory)
        except ExportError:
            continue
        if (manifest.cluster, manifest.ds) == (cluster, day):
            earlier.append(EarlierExport(directory, manifest))
    return tuple(earlier)


def _folders(folder: Location) -> Iterable[Location]:
    if isinstance(folder, ObjectPath):
        return folder.folders()
    return (path for path in folder.glob("*") if path.is_dir())
