"""`silver.queue_order_lock`: the messages of FIFO queues that are handed out and not acknowledged, which block their queues."""

from rebalance_ledger.tables.columns import BROKER_NAME, CONSUMER_GROUP, QUEUE_ID, TOPIC
from rebalance_ledger.tables.model import Column, Table

QUEUE_ORDER_LOCK = Table(
    name="queue_order_lock",
    layer="silver",
    grain="group x queue that was popped in order within a day",
    key=(
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
    ),
    columns=(
        CONSUMER_GROUP,
        TOPIC,
        BROKER_NAME,
        QUEUE_ID,
        Column("popped_at", "timestamp", "When the broker handed out the last batch of the queue (UTC)."),
        Column(
            "invisible_ms",
            "bigint",
            "Invisible time of that batch (ms): how long its messages are leased, unless a client changes it.",
            unit="ms",
        ),
        Column("in_flight_count", "int", "Messages of the batch that are not acknowledged.", unit="messages"),
        Column(
            "head_offset",
            "bigint",
            "Offset of the first of these messages; null if all are acknowledged (messages).",
            unit="messages",
        ),
        Column(
            "last_offset",
            "bigint",
            "Offset of the last message of the batch, acknowledged or not.",
            unit="messages",
        ),
        Column(
            "redelivery_count",
            "int",
            "How often the message at `head_offset` was handed out before; null where all are acknowledged.",
            unit="deliveries",
        ),
        Column(
            "next_visible_at",
            "timestamp",
            "When the first lease of a message that is not acknowledged ends (UTC); null where none is, or where the file has no invisible time.",
        ),
        Column(
            "blocked_until",
            "timestamp",
            "When the last such lease ends (UTC): until then the broker's `needBlock` blocks the queue. May lie before `captured_at`.",
        ),
        Column(
            "captured_at",
            "timestamp",
            "When the broker's `consumerOrderInfo.json` was read (UTC).",
            nullable=False,
        ),
    ),
)
