"""Definitions of the ledger's tables, one file per table.

To add a table, add a file below `silver/` or `gold/` and a line here.

Belongs here: names, grains, keys, columns, units. Does not belong here: rows, files, engines.
"""

from __future__ import annotations

from rebalance_ledger.tables.gold.assignment_churn import ASSIGNMENT_CHURN
from rebalance_ledger.tables.gold.assignment_fairness import ASSIGNMENT_FAIRNESS
from rebalance_ledger.tables.gold.broadcast_offset import BROADCAST_OFFSET
from rebalance_ledger.tables.gold.broadcast_offset_file import BROADCAST_OFFSET_FILE
from rebalance_ledger.tables.gold.finding import FINDING
from rebalance_ledger.tables.gold.gate_result import GATE_RESULT
from rebalance_ledger.tables.gold.ownership_drift import OWNERSHIP_DRIFT
from rebalance_ledger.tables.gold.producer_spread import PRODUCER_SPREAD
from rebalance_ledger.tables.gold.publication import PUBLICATION
from rebalance_ledger.tables.gold.quarantined_group import QUARANTINED_GROUP
from rebalance_ledger.tables.gold.queue_assignment import QUEUE_ASSIGNMENT
from rebalance_ledger.tables.gold.queue_sharing import QUEUE_SHARING
from rebalance_ledger.tables.gold.route_divergence import ROUTE_DIVERGENCE
from rebalance_ledger.tables.model import TABLE_VERSION_FIELDS, Column, ColumnType, Layer, Table
from rebalance_ledger.tables.silver.broker import BROKER
from rebalance_ledger.tables.silver.broker_setting import BROKER_SETTING
from rebalance_ledger.tables.silver.client_process import CLIENT_PROCESS
from rebalance_ledger.tables.silver.client_subscription import CLIENT_SUBSCRIPTION
from rebalance_ledger.tables.silver.consume_progress import CONSUME_PROGRESS
from rebalance_ledger.tables.silver.consumer_client import CONSUMER_CLIENT
from rebalance_ledger.tables.silver.consumer_connection import CONSUMER_CONNECTION
from rebalance_ledger.tables.silver.export_record import EXPORT_RECORD
from rebalance_ledger.tables.silver.group_presence import GROUP_PRESENCE
from rebalance_ledger.tables.silver.memory_offset import MEMORY_OFFSET
from rebalance_ledger.tables.silver.message_request_mode import MESSAGE_REQUEST_MODE
from rebalance_ledger.tables.silver.observed_owner import OBSERVED_OWNER
from rebalance_ledger.tables.silver.offset_file import OFFSET_FILE
from rebalance_ledger.tables.silver.process_owner import PROCESS_OWNER
from rebalance_ledger.tables.silver.proxy_connection import PROXY_CONNECTION
from rebalance_ledger.tables.silver.proxy_presence import PROXY_PRESENCE
from rebalance_ledger.tables.silver.proxy_subscription import PROXY_SUBSCRIPTION
from rebalance_ledger.tables.silver.queue_offset import QUEUE_OFFSET
from rebalance_ledger.tables.silver.queue_order_lock import QUEUE_ORDER_LOCK
from rebalance_ledger.tables.silver.rejected_record import REJECTED_RECORD
from rebalance_ledger.tables.silver.subscription import SUBSCRIPTION
from rebalance_ledger.tables.silver.subscription_group import SUBSCRIPTION_GROUP
from rebalance_ledger.tables.silver.topic_config import TOPIC_CONFIG
from rebalance_ledger.tables.silver.topic_route import TOPIC_ROUTE

SILVER_TABLES: tuple[Table, ...] = (
    EXPORT_RECORD,
    REJECTED_RECORD,
    BROKER,
    BROKER_SETTING,
    TOPIC_ROUTE,
    TOPIC_CONFIG,
    SUBSCRIPTION_GROUP,
    GROUP_PRESENCE,
    CONSUMER_CONNECTION,
    PROXY_PRESENCE,
    PROXY_CONNECTION,
    PROXY_SUBSCRIPTION,
    SUBSCRIPTION,
    CONSUMER_CLIENT,
    CLIENT_SUBSCRIPTION,
    OBSERVED_OWNER,
    CLIENT_PROCESS,
    PROCESS_OWNER,
    CONSUME_PROGRESS,
    MEMORY_OFFSET,
    MESSAGE_REQUEST_MODE,
    QUEUE_ORDER_LOCK,
    QUEUE_OFFSET,
    OFFSET_FILE,
)
"""Silver tables, in the order in which they are written."""

COMPUTED_GOLD_TABLES: tuple[Table, ...] = (
    QUEUE_ASSIGNMENT,
    ASSIGNMENT_FAIRNESS,
    ASSIGNMENT_CHURN,
    OWNERSHIP_DRIFT,
    QUEUE_SHARING,
    ROUTE_DIVERGENCE,
    PRODUCER_SPREAD,
    BROADCAST_OFFSET_FILE,
    BROADCAST_OFFSET,
    FINDING,
)
"""Gold tables that the Spark job computes and stages, in the order in which they are written."""

GOLD_TABLES: tuple[Table, ...] = (*COMPUTED_GOLD_TABLES, QUARANTINED_GROUP, GATE_RESULT, PUBLICATION)
"""All gold tables; the last three are written by the gate and by publication, not by the Spark job."""

ALL_TABLES: tuple[Table, ...] = (*SILVER_TABLES, *GOLD_TABLES)

TABLES_OF_GROUPS: tuple[Table, ...] = tuple(
    table
    for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES)
    # export_record lists the landed records and is checked against the manifest, so it stays complete.
    if table is not EXPORT_RECORD and any(column.name == "consumer_group" for column in table.columns)
)
"""Tables from which the rows of a quarantined group are excluded."""

__all__ = [
    "ALL_TABLES",
    "ASSIGNMENT_CHURN",
    "ASSIGNMENT_FAIRNESS",
    "BROADCAST_OFFSET",
    "BROADCAST_OFFSET_FILE",
    "COMPUTED_GOLD_TABLES",
    "FINDING",
    "GATE_RESULT",
    "GOLD_TABLES",
    "OFFSET_FILE",
    "OWNERSHIP_DRIFT",
    "PRODUCER_SPREAD",
    "PUBLICATION",
    "QUARANTINED_GROUP",
    "QUEUE_ASSIGNMENT",
    "QUEUE_OFFSET",
    "QUEUE_SHARING",
    "ROUTE_DIVERGENCE",
    "SILVER_TABLES",
    "TABLES_OF_GROUPS",
    "TABLE_VERSION_FIELDS",
    "Column",
    "ColumnType",
    "Layer",
    "Table",
]
