"""`silver.subscription_group`: the configuration of each consumer group, as each broker holds it."""

from rebalance_ledger.tables.columns import BROKER_NAME, CONSUMER_GROUP
from rebalance_ledger.tables.model import Column, Table

SUBSCRIPTION_GROUP = Table(
    name="subscription_group",
    layer="silver",
    grain="group x broker",
    key=(
        "broker_name",
        "consumer_group",
    ),
    columns=(
        BROKER_NAME,
        CONSUMER_GROUP,
        Column("is_consume_enabled", "boolean", "`consumeEnable`."),
        Column("is_broadcast_enabled", "boolean", "`consumeBroadcastEnable`."),
        Column("retry_queue_count", "int", "`retryQueueNums`.", unit="queues"),
        Column("retry_max_count", "int", "`retryMaxTimes`.", unit="deliveries"),
    ),
)
