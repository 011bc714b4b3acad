"""`silver.proxy_connection`: the connections of a group's members, as each proxy reports them."""

from rebalance_ledger.tables.columns import CLIENT_ID, CONSUMER_GROUP, PROXY
from rebalance_ledger.tables.model import Column, Table

PROXY_CONNECTION = Table(
    name="proxy_connection",
    layer="silver",
    grain="group x proxy x connection",
    key=(
        "proxy",
        "consumer_group",
        "client_id",
        "client_addr",
    ),
    columns=(
        PROXY,
        CONSUMER_GROUP,
        CLIENT_ID,
        Column("client_addr", "string", "The connection's remote address.", nullable=False),
        Column(
            "client_language", "string", "`LanguageCode` of the client; gRPC clients have their language's."
        ),
        Column(
            "client_version_ordinal",
            "int",
            "Ordinal of the client's version in RocketMQ's list; for gRPC clients it is the proxy's own.",
        ),
        Column("client_version", "string", "The release that the ordinal stands for, for example `5.3.3`."),
    ),
)
