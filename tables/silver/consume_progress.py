"""`silver.consume_progress`: how far a group has come in each queue, as the queue's broker says."""

from tables.model import Column, Table

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
        Column("consumer_group", "string", "The consumer group.", nullable=False),
        Column("topic", "string", "The topic, retry topics (`%RETRY%<group>`) included.", nullable=False),
        Column("broker_name", "string", "The broker name.", nullable=False),
        Column("queue_id", "int", "The queue id on that broker, from 0.", nullable=False),
        Column("broker_offset", "bigint", "Max offset of the queue (messages)."),
        Column(
            "consumer_offset",
            "bigint",
            "Committed offset of the group (messages); -1 where the broker has none.",
        ),
        Column(
            "last_consumed_at", "timestamp", "Store time of the last consumed message (UTC); null if none."
        ),
    ),
)
