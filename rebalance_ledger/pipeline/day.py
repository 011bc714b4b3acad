"""One day of one cluster, the argument of every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from rebalance_ledger.settings import ClusterSettings
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.layout import Warehouse


@dataclass(frozen=True, slots=True)
class Day:
    """One day of one cluster, with the locations of its input and output.

    Attributes:
        cluster: Name of the cluster.
        ds: UTC day on which the export was taken.
        exports: Location of the exports, `<exports>/<cluster>/<ds>/`.
        warehouse: The warehouse.
        settings_file: The settings file; None for default settings.
    """

    cluster: str
    ds: date
    exports: Location
    warehouse: Warehouse
    settings_file: Path | None

    @property
    def settings(self) -> ClusterSettings:
        """The settings of the cluster; default settings if the file does not contain it.

        Raises:
            SettingsError: The file is invalid.
        """
        # Pydantic takes a quarter of a second to import, and the names of the gate's policy more.
        from rebalance_ledger.settings import ClusterSettings, load_settings  # noqa: PLC0415

        if self.settings_file is None:
            return ClusterSettings()
        from rebalance_ledger.gate.policy import GATE_NAMES  # noqa: PLC0415

        return load_settings(self.settings_file, GATE_NAMES).clusters.get(self.cluster, ClusterSettings())
