"""`silver.proxy_subscription`: the subscriptions of a group, as each proxy reports them."""

from rebalance_ledger.tables.columns import CONSUMER_GROUP, PROXY, TOPIC
from rebalance_ledger.tables.model import Column, Table

PROXY_SUBSCRIPTION = Table(
    name="proxy_subscription",
    layer="silver",
    grain="group x topic x proxy",
    key=(
        "proxy",
        "consumer_group",
        "topic",
    ),
    columns=(
        PROXY,
        CONSUMER_GROUP,
        TOPIC,
        Column("expression_type", "string", "`TAG` or `SQL92`."),
        Column("expression", "string", "The filter expression, `*` for all."),
    ),
)
