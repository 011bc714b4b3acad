"""What is read to compute one day: its export, and earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import date

    from rebalance_ledger.exports.catalog import EarlierExport
    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.storage.location import Location


class DayExport(NamedTuple):
    """The export of a cluster's day.

    Attributes:
        directory: Where it is.
        manifest: Its manifest.
        earlier: Earlier exports with an index of offset files, the newest first.
    """

    directory: Location
    manifest: Manifest
    earlier: tuple[EarlierExport, ...] = ()

    @property
    def key(self) -> tuple[str, date]:
        """The values of `DAY`."""
        return self.manifest.cluster, self.manifest.ds

    @property
    def size_bytes(self) -> int:
        """Size of all files of the export."""
        return sum(file.size_bytes for file in self.manifest.files)
