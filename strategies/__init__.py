"""RocketMQ's rules for assigning queues to consumers, as pure functions.

Belongs here: allocation strategies and their guarantees, rebalancing by clients and brokers, and queue selection by
producers. Does not belong here: files, clocks, random numbers, Spark, Airflow, and how a cluster is observed.
"""

from rebalance_ledger.rocketmq.errors import RocketMQError, UnknownNameError
from rebalance_ledger.rocketmq.message_queue import MessageQueue, sort_client_ids, sort_queues
from rebalance_ledger.rocketmq.versions import (
    Client,
    Language,
    Version,
    strategy_of_class_name,
    version_of_ordinal,
)
from strategies.batch import Owners, SubscriptionBatch
from strategies.machine_room_nearby import RoomOfName, RoomPart
from strategies.rebalance import (
    ClientView,
    Effect,
    MessageModel,
    Reason,
    Rebalanced,
    rebalance_by_topic,
    retry_topic,
)
from strategies.registry import get_strategy, has_one_rule, strategy_names
from strategies.strategy import SlotStrategy, Strategy

__all__ = [
    "Client",
    "ClientView",
    "Effect",
    "Language",
    "MessageModel",
    "MessageQueue",
    "Owners",
    "Reason",
    "Rebalanced",
    "RocketMQError",
    "RoomOfName",
    "RoomPart",
    "SlotStrategy",
    "Strategy",
    "SubscriptionBatch",
    "UnknownNameError",
    "Version",
    "get_strategy",
    "has_one_rule",
    "rebalance_by_topic",
    "retry_topic",
    "sort_client_ids",
    "sort_queues",
    "strategy_names",
    "strategy_of_class_name",
    "version_of_ordinal",
]
