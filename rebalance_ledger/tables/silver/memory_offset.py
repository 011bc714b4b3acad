"""`silver.memory_offset`: how far each member of a broadcasting group has read, as the client itself reports and not as its file states."""

from rebalance_ledger.tables.columns import BROKER_NAME, CLIENT_ID, CONSUMER_GROUP, QUEUE_ID, TOPIC
from rebalance_ledger.tables.model import Column, Table

MEMORY_OFFSET = Table(
    name="memory_offset",
    layer="silver",
    grain="group x client x queue for which the client has an offset in memory",
    key=(
        "consumer_group",
        "client_id",
        "topic",
        "broker_name",
        "queue_id",
    ),
    columns=(
        CONSUMER_GROUP,
        CLIENT_ID,
        TOPIC,
        BROKER_NAME,
        QUEUE_ID,
        Column(
            "memory_offset",
            "bigint",
            "Offset (messages) that the client would write to its file next.",
            nullable=False,
            unit="messages",
        ),
        Column("captured_at", "timestamp", "Time of the answer (UTC).", nullable=False),
    ),
)
