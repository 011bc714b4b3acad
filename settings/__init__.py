"""The settings file: which clusters there are, and what no export can say about their groups.

What belongs here: the file's model and its loading. What does not: any rule about queues, any secret (those are
Airflow connections).
"""

from __future__ import annotations

from settings.load import SettingsError, load_settings
from settings.model import (
    ClusterSettings,
    ConfigStrategy,
    ConfiguredQueues,
    ConsistentHashStrategy,
    GroupSettings,
    LedgerSettings,
    MachineRoomNearbyStrategy,
    MachineRoomStrategy,
    PlainStrategy,
    RoomRule,
)

__all__ = [
    "ClusterSettings",
    "ConfigStrategy",
    "ConfiguredQueues",
    "ConsistentHashStrategy",
    "GroupSettings",
    "LedgerSettings",
    "MachineRoomNearbyStrategy",
    "MachineRoomStrategy",
    "PlainStrategy",
    "RoomRule",
    "SettingsError",
    "load_settings",
]
