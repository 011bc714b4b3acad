"""`gold.finding`: problems detected in the cluster, with severity, evidence, likely cause and advice."""

from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import FindingKind, Severity

FINDING = Table(
    name="finding",
    layer="gold",
    grain="problem of a subject: a cluster, group, topic, broker or client, or several of these together",
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
            "`critical`, `warning` or `info`; a finding that another one explains is `info`, and its root has the severity of the worst finding below it.",
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
        Column(
            "consumer_group",
            "string",
            "The consumer group with the problem; null if the problem is not of one group.",
        ),
        Column("topic", "string", "The topic with the problem; null if the problem is not of one topic."),
        Column(
            "broker_name", "string", "The broker with the problem; null if the problem is not of one broker."
        ),
        Column(
            "client_id", "string", "The client with the problem; null if the problem is not of one client."
        ),
        Column(
            "likely_cause",
            "string",
            "The likely cause, if the export contains evidence of it: a cause of ownership_drift, `more_clients_than_queues` for idle clients, or why a source failed; see docs/findings/causes.md.",
        ),
        Column("evidence", "string", "The observed facts, in one line.", nullable=False),
        Column("advice", "string", "What to do, in one line.", nullable=False),
        Column(
            "page",
            "string",
            "Path of this kind's page in the repository: how the problem arises and how to confirm it.",
            nullable=False,
        ),
        Column("queue_count", "int", "Queues that the problem concerns.", unit="queues"),
        Column("queue_total_count", "int", "All queues of the group and topic.", unit="queues"),
        Column("client_count", "int", "Clients that the problem concerns, each id once.", unit="clients"),
        Column("client_total_count", "int", "All members of the group, each id once.", unit="clients"),
        Column("process_count", "int", "Processes that share the client id.", unit="processes"),
        Column("group_count", "int", "Consumer groups that the problem concerns.", unit="groups"),
        Column("topic_count", "int", "Topics that the problem concerns.", unit="topics"),
        Column("record_count", "bigint", "Lines of the export that the problem concerns.", unit="records"),
        Column("max_queues_per_client", "int", "Queues of the client with the most queues.", unit="queues"),
        Column("mean_queues_per_client", "double", "Mean number of queues per client.", unit="queues"),
        Column("min_queues_per_client", "int", "Queues of the client with the fewest queues.", unit="queues"),
        Column(
            "value_count",
            "int",
            "Number of different values where there should be one: member lists, queue sets, strategies or expressions.",
            unit="values",
        ),
        Column(
            "seen_values",
            "array<string>",
            "These values, or the observed reasons, kinds of records or differences; at most five.",
        ),
        Column(
            "examples",
            "array<string>",
            "The first five of the queues (`broker/id`), clients, groups, topics or name servers that the problem concerns.",
        ),
        Column(
            "finding_id",
            "string",
            "Id of the finding. A finding with the same kind, subject and cause has the same id on every day.",
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
            "`unowned`: messages in these queues that the group has yet to consume: those after its committed offset; without one, all messages that the broker retains if the group starts at the oldest. Other queues are not counted unless they are empty: where the group would start there is unknown. Null if nothing is known.",
            unit="messages",
        ),
    ),
)
