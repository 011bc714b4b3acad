"""`silver.broker`: the brokers registered at each name server."""

from rebalance_ledger.tables.columns import BROKER_NAME, NAMESERVER
from rebalance_ledger.tables.model import Column, Table

BROKER = Table(
    name="broker",
    layer="silver",
    grain="broker address x name server",
    key=(
        "nameserver",
        "broker_name",
        "broker_id",
    ),
    columns=(
        NAMESERVER,
        Column(
            "broker_cluster_name",
            "string",
            "`brokerClusterName` of the broker; one name server may serve several.",
        ),
        BROKER_NAME,
        Column("broker_id", "bigint", "0 for the master, above 0 for a slave.", nullable=False),
        Column("broker_addr", "string", "`host:port` of the broker.", nullable=False),
    ),
)
