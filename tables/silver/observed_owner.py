"""`silver.observed_owner`: the queues in each client's own process table."""

from tables.model import Column, Table

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
        Column("consumer_group", "string", "The consumer group.", nullable=False),
        Column("topic", "string", "The topic, retry topics (`%RETRY%<group>`) included.", nullable=False),
        Column("broker_name", "string", "The broker name.", nullable=False),
        Column("queue_id", "int", "The queue id on that broker, from 0.", nullable=False),
        Column("client_id", "string", "The client that has the queue in its process table.", nullable=False),
        Column("is_dropped", "boolean", "The process queue's `droped` flag: given up, not yet removed."),
        Column(
            "is_pop",
            "boolean",
            "True for an entry of `mqPopTable` (the client pops, the broker shares).",
            nullable=False,
        ),
        Column("commit_offset", "bigint", "`commitOffset` of the process queue (messages)."),
        Column("last_pull_at", "timestamp", "When the client last pulled from it (UTC), by its own clock."),
    ),
)
