"""`gold.queue_assignment`: who should own each queue, by every strategy that can be computed."""

from rebalance_ledger.tables.columns import (
    BROKER_NAME,
    CONSUMER_GROUP,
    IS_EFFECTIVE,
    QUEUE_ID,
    STRATEGY_SOURCE,
    TOPIC,
)
from rebalance_ledger.tables.model import Column, Table

QUEUE_ASSIGNMENT = Table(
    name="queue_assignment",
    layer="gold",
    grain="group x topic x queue x strategy x owner (one row with a null owner where nobody owns it)",
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
            "RocketMQ's name of the strategy (`MACHINE_ROOM_NEARBY` without its inner one); `MIXED`: each member by the strategy that it reports; `BROADCASTING`: every member reads every queue; `POP`: the broker shares each queue; a Java class name where the ledger does not know the strategy.",
            nullable=False,
        ),
        STRATEGY_SOURCE,
        IS_EFFECTIVE,
        Column("client_id", "string", "The owner; null where nobody owns the queue."),
        Column(
            "client_connection_count",
            "int",
            "Connections that share this client id; 2 or more: so many processes each believe that they own the queue. Null where nobody owns it or where the connections could not be counted.",
            unit="connections",
        ),
        Column(
            "reason",
            "string",
            "Why nobody owns it: `group_offline`, `members_unknown`, `duplicate_client_id`, `room_without_clients`, `not_in_config_list`, `mixed_strategies`, `mixed_clients`, `mixed_parameters`, `owner_not_subscribed`, `settings_missing`, `strategy_unknown`, `release_unknown`, `member_strategy_unknown`, `strategy_failed`, `not_assigned_by_strategy`, and where how members fetch leaves it open: `pop_mode` (members pop it), `mixed_request_modes` (members that pop and members that pull divide one list), `request_modes_differ` (the brokers of the topic answer differently), `request_mode_unknown` (a broker's modes or settings were not read), `server_off` (`serverLoadBalancerEnable=false`: every member is given it), `strategy_unknown_to_broker` (members leave the division to the broker, which does not have their strategy: they keep what they hold); see docs/strategies.md. For an owner: `route_missing` where no name server has a readable queue of the topic and a client keeps what it holds; `queue_not_in_route` where its list of CONFIG names a queue that the route lacks; null otherwise.",
        ),
    ),
)
