"""The settings file: which clusters there are, and what no export can say about their groups.

Belongs here: the file's model and its loading. Does not belong here: any rule about queues, any secret (those are Airflow
connections).
"""

from __future__ import annotations

from rebalance_ledger.settings.approval import Approval
from rebalance_ledger.settings.gate import FairnessLimits, GateNames, GateRule, GateSettings, Severity, Waiver
from rebalance_ledger.settings.load import SettingsError, load_cluster_names, load_settings
from rebalance_ledger.settings.model import (
    CaptureQuality,
    ClusterSettings,
    CollectSettings,
    CollectTls,
    ConfigStrategy,
    ConfiguredQueues,
    ConsistentHashStrategy,
    Deadlines,
    GroupSettings,
    LedgerSettings,
    MachineRoomNearbyStrategy,
    MachineRoomStrategy,
    MaintenanceSettings,
    PlainStrategy,
    Retention,
    RoomRule,
    is_host_and_port,
    settings_by_member,
)

__all__ = [
    "Approval",
    "CaptureQuality",
    "ClusterSettings",
    "CollectSettings",
    "CollectTls",
    "ConfigStrategy",
    "ConfiguredQueues",
    "ConsistentHashStrategy",
    "Deadlines",
    "FairnessLimits",
    "GateNames",
    "GateRule",
    "GateSettings",
    "GroupSettings",
    "LedgerSettings",
    "MachineRoomNearbyStrategy",
    "MachineRoomStrategy",
    "MaintenanceSettings",
    "PlainStrategy",
    "Retention",
    "RoomRule",
    "SettingsError",
    "Severity",
    "Waiver",
    "is_host_and_port",
    "load_cluster_names",
    "load_settings",
    "settings_by_member",
]
