"""`silver.group_presence`: whether a group is online at a broker, and how it consumes there."""

from rebalance_ledger.tables.columns import BROKER_NAME, CONSUMER_GROUP
from rebalance_ledger.tables.model import Column, Table

GROUP_PRESENCE = Table(
    name="group_presence",
    layer="silver",
    grain="group x queried broker",
    key=(
        "broker_name",
        "consumer_group",
    ),
    columns=(
        BROKER_NAME,
        CONSUMER_GROUP,
        Column(
            "state",
            "string",
            "`online`; `offline`: the broker answered that no member is connected (code 206); `unknown`: the broker could not be reached or its answer could not be read.",
            nullable=False,
        ),
        Column("message_model", "string", "`CLUSTERING` or `BROADCASTING`; null unless online."),
        Column(
            "consume_type",
            "string",
            "`CONSUME_PASSIVELY` (push), `CONSUME_ACTIVELY` (pull) or `CONSUME_POP`; null unless online.",
        ),
        Column("consume_from_where", "string", "Where a client without progress starts; null unless online."),
    ),
)
