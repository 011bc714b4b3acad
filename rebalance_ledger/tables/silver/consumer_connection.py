"""`silver.consumer_connection`: the connections of a group's members, as each broker reports them. Two processes with the same client id have two rows."""

from rebalance_ledger.tables.columns import BROKER_NAME, CLIENT_ID, CONSUMER_GROUP
from rebalance_ledger.tables.model import Column, Table

CONSUMER_CONNECTION = Table(
    name="consumer_connection",
    layer="silver",
    grain="connection of a client to a broker",
    key=(
        "broker_name",
        "consumer_group",
        "client_id",
        "client_addr",
    ),
    columns=(
        BROKER_NAME,
        CONSUMER_GROUP,
        CLIENT_ID,
        Column(
            "client_addr", "string", "Remote address of the channel as the broker sees it.", nullable=False
        ),
        Column("client_language", "string", "`LanguageCode` of the client, for example JAVA."),
        Column(
            "client_version_ordinal", "int", "`MQVersion` ordinal that the client reported, for example 479."
        ),
        Column(
            "client_version",
            "string",
            "The RocketMQ release of that ordinal, for example 5.3.3; null if unknown.",
        ),
    ),
)
