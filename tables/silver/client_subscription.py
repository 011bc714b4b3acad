"""`silver.client_subscription`: what each client itself subscribes to."""

from tables.model import Column, Table

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
        Column("consumer_group", "string", "The consumer group.", nullable=False),
        Column("client_id", "string", "The client id.", nullable=False),
        Column("topic", "string", "The topic, retry topics (`%RETRY%<group>`) included.", nullable=False),
        Column("expression_type", "string", "`TAG` or `SQL92`."),
        Column("expression", "string", "The filter expression, `*` for all."),
    ),
)
