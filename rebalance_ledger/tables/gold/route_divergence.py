"""`gold.route_divergence`: how each name server's route of a topic differs from the other name servers' and from the broker's own configuration."""

from rebalance_ledger.tables.columns import BROKER_NAME, NAMESERVER, TOPIC
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import DivergenceState, RouteDifference

ROUTE_DIVERGENCE = Table(
    name="route_divergence",
    layer="gold",
    grain="topic x broker x name server queried for the topic's route",
    key=(
        "topic",
        "broker_name",
        "nameserver",
    ),
    columns=(
        TOPIC,
        BROKER_NAME,
        NAMESERVER,
        Column(
            "state",
            "string",
            "`same`: this name server agrees with the others and with the broker; `differs`: see `differences`; `unknown`: this name server did not answer.",
            nullable=False,
            values=tuple(DivergenceState),
        ),
        Column(
            "differences",
            "array<string>",
            "The differences. Between the name servers that answered, and so the same for each of them: `broker_missing`, `read_queues`, `write_queues`, `perm`, `order_conf`, `addresses`. Between this name server and the broker's own topic configuration: `config_read_queues`, `config_write_queues`, `config_perm`, `not_configured` (the broker has no such topic), `not_routed` (the broker has the topic, this name server does not send there).",
            nullable=False,
            values=tuple(RouteDifference),
        ),
        Column(
            "is_read_affected",
            "boolean",
            "Whether the name servers that answered give different readable queues of this broker, so that consumers may share different sets.",
            nullable=False,
        ),
        Column(
            "is_routed",
            "boolean",
            "Whether this name server sends clients of the topic to this broker; null if unknown.",
        ),
        Column("perm", "int", "Permission bits in this name server's route."),
        Column("read_queue_count", "int", "`readQueueNums` in this name server's route.", unit="queues"),
        Column("write_queue_count", "int", "`writeQueueNums` in this name server's route.", unit="queues"),
        Column(
            "subscribe_queue_count",
            "int",
            "Queues that a consumer balances by this name server's route.",
            unit="queues",
        ),
        Column("order_topic_conf", "string", "`orderTopicConf` of this name server's route."),
        Column(
            "broker_addrs",
            "array<string>",
            "`id=host:port` of the broker and its slaves by this name server's cluster info; null where it has none.",
        ),
        Column(
            "is_config_known",
            "boolean",
            "Whether the broker's topic configurations are known.",
            nullable=False,
        ),
        Column("config_perm", "int", "Permission bits in the broker's own configuration of the topic."),
        Column(
            "config_read_queue_count",
            "int",
            "`readQueueNums` in the broker's own configuration.",
            unit="queues",
        ),
        Column(
            "config_write_queue_count",
            "int",
            "`writeQueueNums` in the broker's own configuration.",
            unit="queues",
        ),
        Column(
            "nameserver_count",
            "int",
            "Name servers that answered for this topic.",
            nullable=False,
            unit="name servers",
        ),
        Column(
            "agreeing_nameserver_count",
            "int",
            "Name servers that agree with this one about this broker, itself included; null if it did not answer.",
            unit="name servers",
        ),
    ),
)
