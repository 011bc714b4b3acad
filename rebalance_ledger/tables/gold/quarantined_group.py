"""`gold.quarantined_group`: the groups that a day was published without, and why."""

from rebalance_ledger.tables.columns import CONSUMER_GROUP
from rebalance_ledger.tables.model import Column, Table

QUARANTINED_GROUP = Table(
    name="quarantined_group",
    layer="gold",
    grain="group that the day was published without x expectation that it breaks",
    key=(
        "consumer_group",
        "expectation_id",
    ),
    columns=(
        CONSUMER_GROUP,
        Column(
            "expectation_id",
            "string",
            "The expectation that would have kept the whole day from being published; see docs/gate.md.",
            nullable=False,
        ),
        Column("table_name", "string", "The table in which the group breaks it.", nullable=False),
        Column("expectation", "string", "The expectation in one sentence.", nullable=False),
        Column(
            "observed",
            "double",
            "The group's part of the number found, mostly a count of violations.",
            nullable=False,
        ),
        Column(
            "examples", "array<string>", "Up to ten offences of the group, each as one line.", nullable=False
        ),
    ),
)
