"""`silver.topic_route`: where each name server sends the clients of a topic."""

from tables.columns import NAMESERVER, TOPIC
from tables.model import Column, Table

TOPIC_ROUTE = Table(
    name="topic_route",
    layer="silver",
    grain="topic x broker x name server",
    key=(
        "nameserver",
        "topic",
        "broker_name",
    ),
    columns=(
        NAMESERVER,
        TOPIC,
        Column(
            "broker_name",
            "string",
            "The broker name, or the logical broker `__syslo__<scope>` of a static topic.",
            nullable=False,
        ),
        Column(
            "perm",
            "int",
            "Permission bits: 4 read, 2 write, 1 inherit, 8 priority; null for a logical broker.",
        ),
        Column("read_queue_count", "int", "`readQueueNums` of the route; null for a logical broker."),
        Column("write_queue_count", "int", "`writeQueueNums` of the route; null for a logical broker."),
        Column(
            "subscribe_queue_count",
            "int",
            "Queues that a consumer balances: ids 0 to this number less one. 0 without read permission, and for the physical brokers of a static topic.",
            nullable=False,
        ),
        Column(
            "has_master",
            "boolean",
            "Whether the route has an address with broker id 0 for this broker; null for a logical broker.",
        ),
        Column("order_topic_conf", "string", "`orderTopicConf` of the route, if the name server sends one."),
    ),
)
