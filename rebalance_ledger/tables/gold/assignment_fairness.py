"""`gold.assignment_fairness`: how evenly each strategy spreads the queues of a topic over the members of a group."""

from rebalance_ledger.tables.columns import (
    CONSUMER_GROUP,
    GROUP_STATE_REASON,
    IS_EFFECTIVE,
    STRATEGY_SOURCE,
    TOPIC,
)
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import GroupState

ASSIGNMENT_FAIRNESS = Table(
    name="assignment_fairness",
    layer="gold",
    grain="group x topic x strategy",
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
            "RocketMQ's name of the strategy (`MACHINE_ROOM_NEARBY` without its inner one); `MIXED`: each member by the strategy that it reports; `BROADCASTING`: every member reads every queue; `POP`: the broker shares each queue; `UNKNOWN`: a topic without queues whose group reports none; a Java class name where the ledger does not know the strategy.",
            nullable=False,
        ),
        STRATEGY_SOURCE,
        IS_EFFECTIVE,
        Column(
            "group_state",
            "string",
            "`online`, `offline`, `broadcasting`, or `unknown` if the members could not be reached.",
            nullable=False,
            values=tuple(GroupState),
        ),
        GROUP_STATE_REASON,
        Column("client_count", "int", "Distinct client ids in the group; null if unknown.", unit="clients"),
        Column(
            "reporting_client_count",
            "int",
            "Members whose process answered the request for its strategy; null if unknown.",
            unit="clients",
        ),
        Column(
            "queue_count",
            "int",
            "Readable queues of the topic; null if no name server has a route for it.",
            unit="queues",
        ),
        Column(
            "min_queues_per_client",
            "int",
            "Fewest queues that a client owns; null without clients.",
            unit="queues",
        ),
        Column(
            "max_queues_per_client",
            "int",
            "Most queues that a client owns; null without clients.",
            unit="queues",
        ),
        Column(
            "mean_queues_per_client",
            "double",
            "Owned (queue, client) pairs divided by clients; null without clients.",
            unit="queues",
        ),
        Column(
            "max_over_mean",
            "double",
            "`max_queues_per_client` divided by the mean: 1 is even; null if the mean is null or 0.",
            unit="ratio",
        ),
        Column(
            "jain_index",
            "double",
            "Jain's fairness index of the queues per client: 1 is even, 1/clients is one client with all; null where nothing is owned.",
            unit="fraction",
        ),
        Column(
            "idle_client_count",
            "int",
            "Clients that own no queue of the topic; null if unknown.",
            unit="clients",
        ),
        Column("unowned_queue_count", "int", "Queues without an owner; null if unknown.", unit="queues"),
        Column(
            "multiple_owner_queue_count",
            "int",
            "Queues with more than one owner; null if unknown.",
            unit="queues",
        ),
        Column(
            "spread_bound",
            "int",
            "The largest difference between two clients that the strategy guarantees; null if it guarantees none.",
            unit="queues",
        ),
        Column(
            "is_within_bound",
            "boolean",
            "Whether maximum minus minimum is within spread_bound; null without a bound or without queues.",
        ),
    ),
)
