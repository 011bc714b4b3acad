"""One day of one cluster: what every step is given."""

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
    """One day of one cluster, and where to read and write.

    Attributes:
        cluster: the cluster's name.
        ds: the UTC day on which the export was taken.
        exports: where the exports are, `<exports>/<cluster>/<ds>/`.
        warehouse: where the tables are.
        settings_file: the settings file; None for a cluster of which nothing is configured.
    """

    cluster: str
    ds: date
    exports: Location
    warehouse: Warehouse
    settings_file: Path | None

    @property
    def settings(self) -> ClusterSettings:
        """The settings of the cluster; empty where the file does not name it.

        Raises:
            SettingsError: the file is wrong.
        """
        # Pydantic takes a quarter of a second to import, and the names of the gate's policy more.
        from rebalance_ledger.settings import ClusterSettings, load_settings  # noqa: PLC0415

        if self.settings_file is None:
            return ClusterSettings()
        from rebalance_ledger.gate.policy import GATE_NAMES  # noqa: PLC0415

        return load_settings(self.settings_file, GATE_NAMES).clusters.get(self.cluster, ClusterSettings())
