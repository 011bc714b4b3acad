"""`gold.finding`: what is unwell in the cluster: true, so published, counted and ranked."""

from tables.model import Column, Table

FINDING = Table(
    name="finding",
    layer="gold",
    grain="one problem of one subject",
    key=(
        "kind",
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
        "client_id",
    ),
    columns=(
        Column("severity", "string", "`critical`, `warning` or `info`.", nullable=False),
        Column(
            "kind", "string", "Kind of the problem, from a closed list; see docs/findings.md.", nullable=False
        ),
        Column("consumer_group", "string", "The consumer group concerned, if one is."),
        Column("topic", "string", "The topic concerned, if one is."),
        Column("broker_name", "string", "The broker concerned, if one is."),
        Column("queue_id", "int", "The queue concerned, if one is."),
        Column("client_id", "string", "The client concerned, if one is."),
        Column("evidence", "string", "What was seen, in one line.", nullable=False),
        Column("advice", "string", "What to do, in one line.", nullable=False),
    ),
)
