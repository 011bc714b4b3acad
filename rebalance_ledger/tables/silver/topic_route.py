"""`silver.topic_route`: the route of each topic that each name server gives to consumers and producers."""

from rebalance_ledger.tables.columns import NAMESERVER, TOPIC
from rebalance_ledger.tables.model import Column, Table

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
            "is_in_route",
            "boolean",
            "Whether the route has queues of it; false for a broker that only the order configuration names.",
            nullable=False,
        ),
        Column(
            "queue_data_count",
            "int",
            "Entries of the broker in `queueDatas` of the route; null as for `perm`. A name server gives one; of several, a client takes all.",
            unit="entries",
        ),
        Column(
            "perm",
            "int",
            "Permission bits: 4 read, 2 write, 1 inherit, 8 priority; null for a logical broker and for one that is not in the route. Of several entries, the bits of all.",
        ),
        Column(
            "read_queue_count",
            "int",
            "`readQueueNums` of the route; null as for `perm`. Of several entries, the greatest of those that may be read.",
            unit="queues",
        ),
        Column(
            "write_queue_count",
            "int",
            "`writeQueueNums` of the route; null as for `perm`. Of several entries, the sum of those that may be written.",
            unit="queues",
        ),
        Column(
            "subscribe_queue_count",
            "int",
            "Queues that a consumer balances: ids 0 to this number less one. 0 without read permission, and for the physical brokers of a static topic.",
            nullable=False,
            unit="queues",
        ),
        Column(
            "publish_queue_count",
            "int",
            "Places in the list of queues that a producer iterates over: writable queues of a broker with a master, or the order configuration or a static topic's mapping instead; a queue that is listed twice counts twice. Null where the order configuration cannot be read, which makes the client throw.",
            unit="queues",
        ),
        Column(
            "publish_run_count",
            "int",
            "Runs of neighbouring places of this broker in that list, taken as a circle; null as for `publish_queue_count`.",
            unit="runs",
        ),
        Column(
            "publish_unread_count",
            "int",
            "Places whose queue no consumer balances, so messages written there are never consumed; null as for `publish_queue_count`.",
            unit="places",
        ),
        Column(
            "has_master",
            "boolean",
            "Whether the route has an address with broker id 0 for this broker; null for a logical broker.",
        ),
        Column("order_topic_conf", "string", "`orderTopicConf` of the route, if the name server sends one."),
    ),
)
