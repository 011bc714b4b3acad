"""`silver.client_subscription`: the subscriptions that each client reports."""

from rebalance_ledger.tables.columns import CLIENT_ID, CONSUMER_GROUP, TOPIC
from rebalance_ledger.tables.model import Column, Table

CLIENT_SUBSCRIPTION = Table(
    name="client_subscription",
    layer="silver",
    grain="group x client x topic",
    key=(
        "consumer_group",
        "client_id",
        "topic",
    ),
    columns=(
        CONSUMER_GROUP,
        CLIENT_ID,
        TOPIC,
        Column("expression_type", "string", "`TAG` or `SQL92`."),
        Column("expression", "string", "The filter expression, `*` for all."),
    ),
)
