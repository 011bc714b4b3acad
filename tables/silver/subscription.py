"""`silver.subscription`: what a group subscribes to, as each broker sees it."""

from tables.model import Column, Table

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
        Column("broker_name", "string", "The broker name.", nullable=False),
        Column("consumer_group", "string", "The consumer group.", nullable=False),
        Column("topic", "string", "The topic, retry topics (`%RETRY%<group>`) included.", nullable=False),
        Column("expression_type", "string", "`TAG` or `SQL92`."),
        Column("expression", "string", "The filter expression, `*` for all."),
    ),
)
