"""`gold.queue_sharing`: the possible readers and the progress of each queue that members pop, and that therefore has no owner."""

from rebalance_ledger.tables.columns import BROKER_NAME, CONSUMER_GROUP, QUEUE_ID, TOPIC
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import RequestMode, RequestModeSource

QUEUE_SHARING = Table(
    name="queue_sharing",
    layer="gold",
    grain="group x topic x readable queue, of topics that members pop: by gRPC, or by the request mode POP",
    key=(
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
    ),
    columns=(
        CONSUMER_GROUP,
        TOPIC,
        BROKER_NAME,
        QUEUE_ID,
        Column(
            "request_mode",
            "string",
            "How members get messages if the broker divides the queues: `POP` or `PULL`; `CLIENT` if the broker does not support request modes (before 5.0.0), so that its clients divide the queues. Null if unknown, or if the brokers of the topic differ.",
            values=tuple(RequestMode),
        ),
        Column(
            "request_mode_source",
            "string",
            "Where that comes from: `entry` (of the group and topic in messageRequestMode.json), `broker_default`, `retry_rule` (retry topics are pulled), `server_off` (`serverLoadBalancerEnable=false`: every client is given every queue). Null if unknown.",
            values=tuple(RequestModeSource),
        ),
        Column(
            "pop_share_count",
            "int",
            "`popShareQueueNum`: the members beside its own whose queues a member reads too; 0 or less, or nearly as many as members: all queues. Null if members do not query a broker.",
            unit="clients",
        ),
        Column(
            "expected_reader_ids",
            "array<string>",
            "The members that may pop the queue: by the broker's rule (`allocate4Pop`), or as clients of a proxy, which may all read it. Null if unknown.",
        ),
        Column("sharing_degree", "int", "The number of expected readers.", unit="clients"),
        Column(
            "observed_reader_ids",
            "array<string>",
            "The members that have the queue in their table of popped queues; null if none of the expected readers has such a table, as clients of a proxy.",
        ),
        Column(
            "unobserved_reader_count",
            "int",
            "Expected readers whose table of popped queues is not in the export.",
            unit="clients",
        ),
        Column(
            "puller_ids",
            "array<string>",
            "The members observed to pull the queue while others pop it; empty without one.",
            nullable=False,
        ),
        Column(
            "committed_offset",
            "bigint",
            "Offset up to which the group has consumed; null without progress.",
            unit="messages",
        ),
        Column(
            "handed_out_offset",
            "bigint",
            "Offset up to which the broker has handed out messages; null if not reported.",
            unit="messages",
        ),
        Column(
            "in_flight_count_at_most",
            "bigint",
            "Messages handed out and not consumed, at most: handed_out_offset less committed_offset. Some of them may be acknowledged.",
            unit="messages",
        ),
        Column("ready_count", "bigint", "Messages that wait to be handed out.", unit="messages"),
        Column(
            "retry_backlog_count",
            "bigint",
            "Messages that wait in the group's POP retry topics of this topic, V1 and V2 together, the same for all queues; null where there is none, or where a broker of the route did not report the group's offsets.",
            unit="messages",
        ),
        Column(
            "order_blocked_until",
            "timestamp",
            "FIFO: when the last lease ends for which the broker hands out nothing of the queue (UTC), unless its messages are acknowledged before. Null where nothing blocked it when the broker's `consumerOrderInfo.json` was read, or where the export does not have that file.",
        ),
        Column(
            "redelivery_count",
            "int",
            "FIFO: how often the first message that is handed out and not acknowledged was handed out before. Null where there is none, or where the export does not have that file.",
            unit="deliveries",
        ),
    ),
)
