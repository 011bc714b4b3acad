"""The sealed exports before a day, for comparisons.

Belongs here: the search for exports. Does not belong here: the comparison.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.exports.contract import OFFSET_FILE_KIND
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

    from rebalance_ledger.storage.location import Location


LOOK_BACK_EXPORTS: Final = 3
"""How many earlier exports are searched for a client's offset files: a host that did not land for longer has no earlier day."""


class EarlierExport(NamedTuple):
    """A sealed export and its location."""

    directory: Location
    manifest: Manifest

    @property
    def reference(self) -> str:
        """The day, `=`, the manifest's SHA-256."""
        return f"{self.manifest.ds}={self.manifest.sha256}"

    @property
    def has_offset_files(self) -> bool:
        """Whether it holds offset files of broadcasting clients."""
        return _has_offset_files(self.manifest)


def compared_exports(exports: Location, manifest: Manifest) -> tuple[EarlierExport, ...] | None:
    """Return the earlier exports in which offset files are searched that a day's are compared with; None if it has none.

    Args:
        exports: Folder of all clusters.
        manifest: Manifest of the day's export.
    """
    if not _has_offset_files(manifest):
        return None
    return earlier_exports(exports, manifest.cluster, manifest.ds, most=LOOK_BACK_EXPORTS)


def referenced_exports(
    exports: Location, cluster: str, references: Iterable[str]
) -> tuple[EarlierExport, ...]:
    """Return the exports that a build was compared with, by their `reference`.

    Args:
        exports: Folder of all clusters.
        cluster: Name of the cluster.
        references: Days and hashes.

    Raises:
        ExportError: An export is gone, or has been replaced since.
    """
    found = []
    for reference in references:
        ds = date.fromisoformat(reference.partition("=")[0])
        directory = export_directory(exports, cluster, ds)
        export = EarlierExport(directory, load_manifest(directory, cluster=cluster, ds=ds))
        if export.reference != reference:
            raise ExportError(
                f"{directory} is not the export that offset files were compared with",
                ["its manifest has been replaced since: run the build of the day again."],
            )
        found.append(export)
    return tuple(found)


def landed_days(exports: Location, cluster: str) -> list[date]:
    """Return the days of a cluster that have a folder, in order; their exports may be unusable.

    Args:
        exports: Folder of all clusters.
        cluster: Name of the cluster.

    Raises:
        ExportError: The cluster's name cannot be a folder's name.
    """
    folders = _folders(export_directory(exports, cluster, date.min).parent)
    return sorted(day for folder in folders if (day := export_day(folder.name)) is not None)


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
    days = [day for day in reversed(landed_days(exports, cluster)) if day < ds]
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


def _has_offset_files(manifest: Manifest) -> bool:
    return any(file.kind == OFFSET_FILE_KIND for file in manifest.files)


def _folders(folder: Location) -> Iterable[Location]:
    if isinstance(folder, ObjectPath):
        return folder.folders()
    return (path for path in folder.glob("*") if path.is_dir())
