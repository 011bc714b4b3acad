"""`silver.proxy_presence`: whether a group is online at a proxy, and how it consumes there."""

from rebalance_ledger.tables.columns import CONSUMER_GROUP, PROXY
from rebalance_ledger.tables.model import Column, Table

PROXY_PRESENCE = Table(
    name="proxy_presence",
    layer="silver",
    grain="group x queried proxy",
    key=(
        "proxy",
        "consumer_group",
    ),
    columns=(
        PROXY,
        CONSUMER_GROUP,
        Column(
            "state",
            "string",
            "`online`; `offline`: the proxy answered that no member is connected to it or to a proxy that it knows; `unknown`: the proxy could not be reached or its answer could not be read.",
            nullable=False,
        ),
        Column("message_model", "string", "`CLUSTERING` or `BROADCASTING`; null unless online."),
        Column(
            "consume_type",
            "string",
            "`CONSUME_PASSIVELY` (push), `CONSUME_ACTIVELY` (pull, and gRPC's simple consumer) or `CONSUME_POP`; null unless online.",
        ),
    ),
)
