"""`silver.topic_config`: the configuration of each topic, as each broker holds it."""

from rebalance_ledger.tables.columns import BROKER_NAME, TOPIC
from rebalance_ledger.tables.model import Column, Table

TOPIC_CONFIG = Table(
    name="topic_config",
    layer="silver",
    grain="topic x broker",
    key=(
        "broker_name",
        "topic",
    ),
    columns=(
        BROKER_NAME,
        TOPIC,
        Column("perm", "int", "Permission bits: 4 read, 2 write, 1 inherit, 8 priority."),
        Column("read_queue_count", "int", "`readQueueNums`.", unit="queues"),
        Column("write_queue_count", "int", "`writeQueueNums`.", unit="queues"),
        Column("is_order", "boolean", "The topic's `order` flag."),
    ),
)
