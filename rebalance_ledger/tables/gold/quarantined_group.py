"""`gold.quarantined_group`: the groups that were excluded from a published day, with the expectations that they violate."""

from rebalance_ledger.tables.columns import CONSUMER_GROUP
from rebalance_ledger.tables.model import Column, Table

QUARANTINED_GROUP = Table(
    name="quarantined_group",
    layer="gold",
    grain="quarantined group x expectation that it violates",
    key=(
        "consumer_group",
        "expectation_id",
    ),
    columns=(
        CONSUMER_GROUP,
        Column(
            "expectation_id",
            "string",
            "The expectation that would have prevented the publication of the whole day; see docs/gate.md.",
            nullable=False,
        ),
        Column("table_name", "string", "The table in which the group violates it.", nullable=False),
        Column("expectation", "string", "The expectation in one sentence.", nullable=False),
        Column(
            "observed",
            "double",
            "The group's part of the measured number, mostly a count of violations.",
            nullable=False,
        ),
        Column(
            "examples", "array<string>", "Up to ten violations of the group, one line each.", nullable=False
        ),
    ),
)
