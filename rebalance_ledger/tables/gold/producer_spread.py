"""`gold.producer_spread`: how producers' round robin spreads a topic over its brokers, and the effect of losing a broker."""

from rebalance_ledger.tables.columns import TOPIC
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import PublishSource

PRODUCER_SPREAD = Table(
    name="producer_spread",
    layer="gold",
    grain="topic x broker, of the topics that applications write to",
    key=(
        "topic",
        "broker_name",
    ),
    columns=(
        TOPIC,
        Column(
            "broker_name",
            "string",
            "A broker of the topic's route or of its order configuration, or the logical broker `__syslo__<scope>` of a static topic.",
            nullable=False,
        ),
        Column(
            "publish_source",
            "string",
            "Where producers take their list of queues from: `route` (queue numbers, write permission, masters), `order_configuration` (`orderTopicConf`, regardless of the route), `static_topic` (its logical queues).",
            nullable=False,
            values=tuple(PublishSource),
        ),
        Column(
            "writable_queue_count",
            "int",
            "The broker's places in the list that a producer iterates over; null where the list is unknown.",
            unit="queues",
        ),
        Column(
            "share",
            "double",
            "Part of the topic's messages that round robin sends here at the first attempt, 0 to 1; null if the topic cannot be written anywhere, or if unknown.",
            unit="fraction",
        ),
        Column(
            "share_per_queue",
            "double",
            "`share` of each of its queues, which are all alike; a queue that an order configuration lists twice gets it twice. Null where it has none.",
            unit="fraction",
        ),
        Column(
            "unread_share",
            "double",
            "Part of the topic's messages, 0 to 1, that goes to queues of this broker that no consumer can read; null where nothing is written or it is unknown.",
            unit="fraction",
        ),
        Column(
            "is_only_writable_broker",
            "boolean",
            "Whether the topic cannot be written without this broker; null if unknown, and in static topics.",
        ),
        Column(
            "retried_share_while_lost",
            "double",
            "While the broker is down and still in the list: part of the messages whose first attempt fails and whose retry succeeds elsewhere (clients from 4.8.0). Null for the only writable broker, and where unknown.",
            unit="fraction",
        ),
        Column(
            "largest_share_after_loss",
            "double",
            "Once the broker is out of the list: the largest part of the messages that another broker then gets, 0 to 1; null as above.",
            unit="fraction",
        ),
        Column(
            "load_ratio_after_loss",
            "double",
            "Once the broker is out of the list: what each other broker gets, divided by what it got before; 1 means no change. Null as above.",
            unit="ratio",
        ),
        Column(
            "publish_list_count",
            "int",
            "Different publish lists among the name servers that have a route; 2 or more: where a producer writes depends on the one that it asks. This row is of the list that most of them give.",
            nullable=False,
            unit="lists",
        ),
        Column(
            "reason",
            "string",
            "Why nothing is written here: `no_write_permission`, `no_master`, `no_write_queues`, `not_in_order_configuration`, `behind_logical_queues` (a broker of a static topic), `bad_order_configuration` (producers throw). With a share: why what is sent here fails: `not_in_route` or `no_master`, where only the order configuration sends producers here. Null where it is written; see docs/producers.md.",
        ),
    ),
)
