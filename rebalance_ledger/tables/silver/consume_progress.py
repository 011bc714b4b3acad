"""`silver.consume_progress`: the offsets of a group in each queue, as the queue's broker reports them."""

from rebalance_ledger.tables.columns import BROKER_NAME, CONSUMER_GROUP, QUEUE_ID, TOPIC
from rebalance_ledger.tables.model import Column, Table

CONSUME_PROGRESS = Table(
    name="consume_progress",
    layer="silver",
    grain="group x queue",
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
        Column("broker_offset", "bigint", "Max offset of the queue (messages).", unit="messages"),
        Column(
            "consumer_offset",
            "bigint",
            "Committed offset of the group (messages). Where the broker has none, it reports 0, and -1 for a static topic.",
            unit="messages",
        ),
        Column(
            "pull_offset",
            "bigint",
            "Offset up to which the broker has handed messages out to the group, consumed or not (messages); null if not reported.",
            unit="messages",
        ),
        Column(
            "last_consumed_at", "timestamp", "Store time of the last consumed message (UTC); null if none."
        ),
    ),
)
