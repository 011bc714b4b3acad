"""`silver.client_process`: the direct answer of each client process, which distinguishes processes with the same client id."""

from rebalance_ledger.tables.columns import CLIENT_ID, CONSUMER_GROUP, PROCESS
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.silver.consumer_client import SELF_DESCRIPTION

CLIENT_PROCESS = Table(
    name="client_process",
    layer="silver",
    grain="group x client id x queried process",
    key=(
        "consumer_group",
        "client_id",
        "process",
    ),
    columns=(
        CONSUMER_GROUP,
        CLIENT_ID,
        PROCESS,
        Column(
            "state",
            "string",
            "`online`: it answered; `unknown`: it could not be reached or its answer could not be read.",
            nullable=False,
        ),
        *SELF_DESCRIPTION,
    ),
)
