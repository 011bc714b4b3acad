"""`silver.queue_offset`: the offset range that a broker retains of each queue, from its topic statistics."""

from rebalance_ledger.tables.columns import BROKER_NAME, QUEUE_ID, TOPIC
from rebalance_ledger.tables.model import Column, Table

QUEUE_OFFSET = Table(
    name="queue_offset",
    layer="silver",
    grain="topic x queue whose offsets were requested from its broker",
    key=(
        "topic",
        "broker_name",
        "queue_id",
    ),
    columns=(
        TOPIC,
        BROKER_NAME,
        QUEUE_ID,
        Column(
            "min_offset",
            "bigint",
            "Offset of the oldest retained message.",
            nullable=False,
            unit="messages",
        ),
        Column("max_offset", "bigint", "Offset that the next message gets.", nullable=False, unit="messages"),
        Column(
            "last_stored_at",
            "timestamp",
            "When the newest message was stored (UTC), by the broker's clock; null if none is known.",
        ),
        Column("captured_at", "timestamp", "Time of the answer (UTC).", nullable=False),
    ),
)
