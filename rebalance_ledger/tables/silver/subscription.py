"""`silver.subscription`: the subscriptions of a group, as each broker reports them."""

from rebalance_ledger.tables.columns import BROKER_NAME, CONSUMER_GROUP, TOPIC
from rebalance_ledger.tables.model import Column, Table

SUBSCRIPTION = Table(
    name="subscription",
    layer="silver",
    grain="group x broker x topic",
    key=(
        "broker_name",
        "consumer_group",
        "topic",
    ),
    columns=(
        BROKER_NAME,
        CONSUMER_GROUP,
        TOPIC,
        Column("expression_type", "string", "`TAG` or `SQL92`."),
        Column("expression", "string", "The filter expression, `*` for all."),
    ),
)
