"""`silver.message_request_mode`: the request mode (`PULL` or `POP`) that a broker has configured for a group and topic."""

from rebalance_ledger.tables.columns import BROKER_NAME, CONSUMER_GROUP, TOPIC
from rebalance_ledger.tables.model import Column, Table

MESSAGE_REQUEST_MODE = Table(
    name="message_request_mode",
    layer="silver",
    grain="group x topic x broker",
    key=(
        "broker_name",
        "consumer_group",
        "topic",
    ),
    columns=(
        BROKER_NAME,
        CONSUMER_GROUP,
        TOPIC,
        Column("mode", "string", "`PULL` or `POP`."),
        Column(
            "pop_share_queue_count",
            "int",
            "`popShareQueueNum`: with how many other members each member shares its queues; 0 or less for all.",
            unit="clients",
        ),
    ),
)
