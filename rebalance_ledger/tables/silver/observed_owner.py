"""`silver.observed_owner`: the queues in each client's process table, requested through a broker."""

from rebalance_ledger.tables.columns import BROKER_NAME, CONSUMER_GROUP, QUEUE_ID, TOPIC
from rebalance_ledger.tables.model import Column, Table

PROCESS_QUEUE = (
    Column("is_dropped", "boolean", "The process queue's `droped` flag: released, but not yet removed."),
    Column(
        "is_pop",
        "boolean",
        "True for an entry of `mqPopTable` (the client pops, the broker shares).",
        nullable=False,
    ),
    Column("commit_offset", "bigint", "`commitOffset` of the process queue (messages).", unit="messages"),
    Column("last_pull_at", "timestamp", "Time of the last pull from the queue (UTC), by the client's clock."),
    Column(
        "last_consumed_at",
        "timestamp",
        "Time of the last consumed message, or of the assignment (UTC), by the client's clock; null for popped queues.",
    ),
)
"""Columns for one queue of a process table."""

OBSERVED_OWNER = Table(
    name="observed_owner",
    layer="silver",
    grain="group x client x queue",
    key=(
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
        "client_id",
    ),
    columns=(
        CONSUMER_GROUP,
        TOPIC,
        BROKER_NAME,
        QUEUE_ID,
        Column("client_id", "string", "The client that has the queue in its process table.", nullable=False),
        *PROCESS_QUEUE,
    ),
)
