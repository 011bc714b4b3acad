"""`gold.queue_assignment`: the expected owner of each queue under each strategy that can be computed."""

from rebalance_ledger.tables.columns import (
    BROKER_NAME,
    CONSUMER_GROUP,
    IS_EFFECTIVE,
    QUEUE_ID,
    STRATEGY_SOURCE,
    TOPIC,
)
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import OwnerReason

QUEUE_ASSIGNMENT = Table(
    name="queue_assignment",
    layer="gold",
    grain="group x topic x queue x strategy x owner (one row with a null owner for a queue without an owner)",
    key=(
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
        "strategy",
        "client_id",
    ),
    columns=(
        CONSUMER_GROUP,
        TOPIC,
        BROKER_NAME,
        QUEUE_ID,
        Column(
            "strategy",
            "string",
            "RocketMQ's name of the strategy (`MACHINE_ROOM_NEARBY` without its inner strategy). `MIXED`: each member uses the strategy that it reports; `BROADCASTING`: every member reads every queue; `POP`: the broker shares each queue. A Java class name if the ledger does not know the strategy.",
            nullable=False,
        ),
        STRATEGY_SOURCE,
        IS_EFFECTIVE,
        Column("client_id", "string", "The client id of the owner; null if the queue has no owner."),
        Column(
            "client_connection_count",
            "int",
            "Connections that share this client id. With 2 or more, each of these processes takes the queue. Null if the queue has no owner or the connections could not be counted.",
            unit="connections",
        ),
        Column(
            "reason",
            "string",
            "Why the queue has no owner: `group_offline`, `members_unknown`, `duplicate_client_id`, `room_without_clients`, `not_in_config_list`, `mixed_strategies`, `mixed_clients`, `mixed_parameters`, `owner_not_subscribed`, `settings_missing`, `strategy_unknown`, `release_unknown`, `member_strategy_unknown`, `strategy_failed`, `not_assigned_by_strategy`, and, if the way in which members fetch messages leaves the owner undetermined: `pop_mode` (members pop the queue), `mixed_request_modes` (members that pop and members that pull divide one list), `request_modes_differ` (the brokers of the topic answer differently), `request_mode_unknown` (a broker's modes or settings were not read), `server_off` (`serverLoadBalancerEnable=false`: every member gets the queue), `strategy_unknown_to_broker` (members leave the division to the broker, which does not have their strategy, so they keep the queues that they hold); see docs/strategies.md. In a row with an owner: `route_missing` if no name server has a readable queue of the topic and the client keeps the queues that it holds; `queue_not_in_route` if the client's CONFIG list names a queue that is not in the route; null otherwise.",
            values=tuple(OwnerReason),
        ),
    ),
)
