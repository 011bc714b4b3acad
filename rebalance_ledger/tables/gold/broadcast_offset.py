"""`gold.broadcast_offset`: how far each broadcasting client has read each queue, and where it would continue after a restart."""

from rebalance_ledger.tables.columns import CLIENT_ID, CONSUMER_GROUP
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import BroadcastOffsetState, RestartReason

BROADCAST_OFFSET = Table(
    name="broadcast_offset",
    layer="gold",
    grain="group x client x host x topic x queue: queues with a stored offset, and readable queues of subscribed topics without one",
    key=(
        "consumer_group",
        "client_id",
        "host",
        "topic",
        "broker_name",
        "queue_id",
    ),
    columns=(
        CONSUMER_GROUP,
        CLIENT_ID,
        Column("host", "string", "The host of the file.", nullable=False),
        Column("topic", "string", "The topic; null where the file names none."),
        Column("broker_name", "string", "The broker name; null where the file names none."),
        Column("queue_id", "int", "The queue id on that broker.", nullable=False),
        Column(
            "state",
            "string",
            "`ok`, `regressed`, `behind_min`, `ahead_of_max`, `orphan_queue`, `stale`, `no_offset`, `unused` or `unknown`; see docs/broadcast-offsets.md.",
            nullable=False,
            values=tuple(BroadcastOffsetState),
        ),
        Column("file_state", "string", "`state` of the files in broadcast_offset_file.", nullable=False),
        Column("start_from", "string", "The file that the offset is from: `main` or `bak`."),
        Column(
            "stored_offset",
            "bigint",
            "Offset (messages) that the client would read from its file; null where none is stored.",
            unit="messages",
        ),
        Column(
            "memory_offset",
            "bigint",
            "Offset (messages) that the running client had in memory and would write next; null if it was not queried, did not answer or had none.",
            unit="messages",
        ),
        Column(
            "min_offset",
            "bigint",
            "Offset of the oldest retained message; null if not reported.",
            unit="messages",
        ),
        Column(
            "max_offset",
            "bigint",
            "Offset of the next message; null if not reported.",
            unit="messages",
        ),
        Column(
            "lag_message_count",
            "bigint",
            "Messages from `stored_offset` to `max_offset`; negative for `ahead_of_max` only. Null without both, and if the file was written after the request to the broker and is past its answer.",
            unit="messages",
        ),
        Column(
            "lost_message_count",
            "bigint",
            "Messages past the stored offset that retention removed: `min_offset` less `stored_offset`, or 0; null without both.",
            unit="messages",
        ),
        Column("offsets_captured_at", "timestamp", "Time of the request for min and max (UTC)."),
        Column("last_stored_at", "timestamp", "When the queue's newest message was stored (UTC)."),
        Column(
            "highest_earlier_offset",
            "bigint",
            "Greatest offset of the queue in an earlier snapshot of the day; null if there is none.",
            unit="messages",
        ),
        Column("previous_ds", "date", "Day of the earlier export that `previous_offset` is from."),
        Column(
            "previous_offset",
            "bigint",
            "The offset that a client would have read on that day; null if none.",
            unit="messages",
        ),
        Column(
            "is_routed",
            "boolean",
            "Whether the queue is readable in the route that the ledger takes for the topic; null if no name server answered.",
        ),
        Column(
            "consume_from_where",
            "string",
            "`ConsumeFromWhere`, which decides where a client without a stored offset starts: its own if it reports one, otherwise that of its group if all brokers have the same (a broker has that of the last heartbeat of any member); null if unknown.",
        ),
        Column(
            "restart_offset",
            "bigint",
            "First offset that a client would consume if it started now; null if it would not start or if this is unknown.",
            unit="messages",
        ),
        Column(
            "restart_reason",
            "string",
            "Why it starts there: `stored`, `default_last`, `default_first`, `default_timestamp`, `corrected_by_broker_to_min`, `corrected_by_broker_to_max`, `fails_to_start`, `queue_skipped` (the stored offset is less than -1), `unknown`; null for files that no client reads and for queues without a route.",
            values=tuple(RestartReason),
        ),
        Column(
            "skipped_message_count",
            "bigint",
            "Messages from the furthest observed offset of the client to `restart_offset`, or 0; null if either is unknown.",
            unit="messages",
        ),
        Column(
            "repeated_message_count",
            "bigint",
            "Messages from `restart_offset` to the furthest observed offset of the client, or 0; null if either is unknown.",
            unit="messages",
        ),
    ),
)
