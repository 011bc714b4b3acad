"""`gold.assignment_churn`: how many queues changed owner since the newest earlier published day, beside the fewest moves that were necessary."""

from rebalance_ledger.tables.columns import CONSUMER_GROUP, IS_EFFECTIVE, STRATEGY_SOURCE, TOPIC
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import ChurnState

ASSIGNMENT_CHURN = Table(
    name="assignment_churn",
    layer="gold",
    grain="group x topic x strategy of `assignment_fairness`",
    key=(
        "consumer_group",
        "topic",
        "strategy",
    ),
    columns=(
        CONSUMER_GROUP,
        TOPIC,
        Column(
            "strategy",
            "string",
            "As in `assignment_fairness`. The effective strategy is compared with the one that was effective on baseline_ds, every other one with itself.",
            nullable=False,
        ),
        STRATEGY_SOURCE,
        IS_EFFECTIVE,
        Column("baseline_ds", "date", "The newest earlier published day; null if there is none."),
        Column(
            "state",
            "string",
            "`compared`; `no_baseline`; `unknown_now` where the topic has no readable queue or its owners cannot be determined; `absent_on_baseline` where baseline_ds has no such group, topic or strategy; `unknown_on_baseline` where its owners could not be determined then, or that day was published without the group. Every number below is null unless it is `compared`.",
            nullable=False,
            values=tuple(ChurnState),
        ),
        Column("baseline_strategy", "string", "The strategy of baseline_ds with which this one is compared."),
        Column("baseline_queue_count", "int", "Queues of the topic on baseline_ds.", unit="queues"),
        Column("queue_count", "int", "Queues of the topic on ds.", unit="queues"),
        Column("added_queue_count", "int", "Queues of ds that did not exist on baseline_ds.", unit="queues"),
        Column("removed_queue_count", "int", "Queues of baseline_ds that do not exist on ds.", unit="queues"),
        Column(
            "moved_queue_count",
            "int",
            "Queues of both days whose owners differ, including queues without an owner on one of the days.",
            unit="queues",
        ),
        Column(
            "least_move_count",
            "int",
            "The fewest queues of both days that must change owner to reach the present number of unowned queues and the present queue counts of the clients, in any order. Null where every member reads every queue, or a queue has several owners.",
            unit="queues",
        ),
        Column(
            "joined_client_count",
            "int",
            "Client ids of the group that are connected to a broker on ds and were not on baseline_ds.",
            unit="clients",
        ),
        Column(
            "left_client_count",
            "int",
            "Client ids of the group that were connected to a broker on baseline_ds and are not on ds.",
            unit="clients",
        ),
        Column(
            "changes",
            "array<string>",
            "Changes that can move queues, in this order: `clients_joined`, `clients_left`, `queues_added`, `queues_removed`, `strategy_changed`. If queues moved without any of these, check the parameters of the strategy and the order of the list.",
        ),
        Column(
            "baseline_effective_strategy",
            "string",
            "The effective strategy of baseline_ds in its ownership_drift, even if its owners could not be computed; null if that day has none. This column and the next two are null for all but the effective strategy.",
        ),
        Column(
            "observed_queue_count",
            "int",
            "Queues whose holders were observed on both days in the clients' process tables; a shared queue without an observed reader is not among them. Independent of `state`, because it needs no computed owners; null where baseline_ds does not have the group and topic.",
            unit="queues",
        ),
        Column(
            "observed_moved_queue_count",
            "int",
            "Queues counted in `observed_queue_count` that other clients held on baseline_ds.",
            unit="queues",
        ),
    ),
)
