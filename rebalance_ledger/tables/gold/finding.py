"""`gold.finding`: problems detected in the cluster, with evidence, cause and advice."""

from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import FindingKind, Severity

FINDING = Table(
    name="finding",
    layer="gold",
    grain="one problem of one subject",
    key=(
        "kind",
        "consumer_group",
        "topic",
        "broker_name",
        "client_id",
        "likely_cause",
    ),
    columns=(
        Column(
            "severity",
            "string",
            "`critical`, `warning` or `info`; a finding that another one explains is `info`, and its root as severe as the worst below it.",
            nullable=False,
            values=tuple(Severity),
        ),
        Column(
            "kind",
            "string",
            "Kind of the problem, from a closed list; see docs/findings/.",
            nullable=False,
            values=tuple(FindingKind),
        ),
        Column("consumer_group", "string", "The consumer group concerned, if one is."),
        Column("topic", "string", "The topic concerned, if one is."),
        Column("broker_name", "string", "The broker concerned, if one is."),
        Column("client_id", "string", "The client concerned, if one is."),
        Column(
            "likely_cause",
            "string",
            "Why, where the facts show it: as in ownership_drift, `more_clients_than_queues` for idle clients, or why a source failed; see docs/findings/causes.md.",
        ),
        Column("evidence", "string", "The observed facts, in one line.", nullable=False),
        Column("advice", "string", "What to do, in one line.", nullable=False),
        Column(
            "page",
            "string",
            "Path in the repository of the page on this kind: how it arises, how to confirm it.",
            nullable=False,
        ),
        Column("queue_count", "int", "Queues that the problem concerns.", unit="queues"),
        Column("queue_total_count", "int", "Queues of the group and topic in all.", unit="queues"),
        Column("client_count", "int", "Clients that the problem concerns, each id once.", unit="clients"),
        Column("client_total_count", "int", "Members of the group in all, each id once.", unit="clients"),
        Column("process_count", "int", "Processes that share the client id.", unit="processes"),
        Column("group_count", "int", "Consumer groups that the problem concerns.", unit="groups"),
        Column("topic_count", "int", "Topics that the problem concerns.", unit="topics"),
        Column("record_count", "bigint", "Lines of the export that the problem concerns.", unit="records"),
        Column("max_queues_per_client", "int", "Queues of the client with most.", unit="queues"),
        Column("mean_queues_per_client", "double", "Mean number of queues per client.", unit="queues"),
        Column("min_queues_per_client", "int", "Queues of the client with fewest.", unit="queues"),
        Column(
            "value_count",
            "int",
            "Different values where there should be one: of lists of members, queue sets, strategies, expressions.",
            unit="values",
        ),
        Column(
            "seen_values",
            "array<string>",
            "Those values, or the observed reasons, kinds of records or differences; at most five.",
        ),
        Column(
            "examples",
            "array<string>",
            "The first five of the queues (`broker/id`), clients, groups, topics or name servers that the problem concerns.",
        ),
        Column(
            "finding_id",
            "string",
            "Id of the finding: the same on every day on which the same kind is found of the same subject with the same cause.",
        ),
        Column(
            "parent_finding_id",
            "string",
            "The finding of this day that explains this one; null for a root. See docs/findings/README.md.",
        ),
        Column(
            "root_finding_id",
            "string",
            "The root above this finding, which has the severity of the worst finding below it; null for a root itself.",
        ),
        Column(
            "waiting_message_count",
            "bigint",
            "`unowned`: messages in these queues that the group has not committed, or that the broker keeps where it never committed; queues whose offsets are unknown are not counted. Null where none is known.",
            unit="messages",
        ),
    ),
)
