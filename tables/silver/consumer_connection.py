"""`silver.consumer_connection`: the members of a group as each broker sees them: one id per channel, so an id shared by two processes stands twice."""

from tables.model import Column, Table

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
        Column("broker_name", "string", "The broker name.", nullable=False),
        Column("consumer_group", "string", "The consumer group.", nullable=False),
        Column("client_id", "string", "The client id.", nullable=False),
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
