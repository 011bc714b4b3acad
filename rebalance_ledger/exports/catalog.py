"""The sealed exports before a day, for comparisons.

Belongs here: finding them. Does not belong here: what is compared.
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
    """A sealed export and where it lies."""

    directory: Location
    manifest: Manifest


def earlier_exports(exports: Location, cluster: str, ds: date, *, most: int) -> tuple[EarlierExport, ...]:
    """Return the newest sealed exports of a cluster before a day, the newest first.

    A directory that is not sealed, or whose manifest is of another cluster or day, is none.

    Args:
        exports: The folder of all clusters.
        cluster: Name of the cluster.
        ds: The UTC day before which they are.
        most: How many are wanted at most.

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
    found: list[EarlierExport] = []
    for day in days:
        if len(found) == most:
            break
        directory = export_directory(exports, cluster, day)
        try:
            manifest = load_manifest(directory)
        except ExportError:
            continue
        if (manifest.cluster, manifest.ds) == (cluster, day):
            found.append(EarlierExport(directory, manifest))
    return tuple(found)


def _folders(folder: Location) -> Iterable[Location]:
    if isinstance(folder, ObjectPath):
        return folder.folders()
    return (path for path in folder.glob("*") if path.is_dir())
