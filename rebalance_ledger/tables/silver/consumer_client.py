"""`silver.consumer_client`: the answer of each client (`consumerRunningInfo`), requested through a broker."""

from rebalance_ledger.tables.columns import CLIENT_ID, CONSUMER_GROUP
from rebalance_ledger.tables.model import Column, Table

SELF_DESCRIPTION = (
    Column("captured_at", "timestamp", "When the answer, or the error instead of it, came (UTC)."),
    Column("strategy_class", "string", "Java class of the allocation strategy, without the object's hash."),
    Column(
        "strategy",
        "string",
        "RocketMQ's name of that strategy; null for a class that RocketMQ does not ship.",
    ),
    Column("message_model", "string", "`CLUSTERING` or `BROADCASTING`."),
    Column(
        "consume_type",
        "string",
        "`CONSUME_PASSIVELY` (push), `CONSUME_ACTIVELY` (pull) or `CONSUME_POP`.",
    ),
    Column(
        "consume_from_where",
        "string",
        "`ConsumeFromWhere` of the client itself, which decides where it starts without a stored offset; null if it reports none.",
    ),
    Column(
        "reports_queues",
        "boolean",
        "Whether such an answer lists the queues that the client holds. False for a pull consumer (`DefaultMQPullConsumer`), whose answer has no process table, so an empty table is no evidence.",
    ),
    Column(
        "subscription_count",
        "int",
        "Topics that the client subscribes to. A pull consumer (CONSUME_ACTIVELY) with 0 has no strategy: the application chooses its queues (`DefaultLitePullConsumer.assign`).",
        unit="topics",
    ),
    Column("is_orderly", "boolean", "Whether the listener consumes orderly."),
    Column(
        "is_client_rebalance",
        "boolean",
        "`clientRebalance`; false lets the broker assign the queues (5.x).",
    ),
    Column("client_version", "string", "The RocketMQ release that the client reported."),
    Column("started_at", "timestamp", "Start time of the consumer (UTC), by the client's clock."),
)
"""Columns of a running info, from any source; all but `captured_at` are null unless the client answered."""

CONSUMER_CLIENT = Table(
    name="consumer_client",
    layer="silver",
    grain="group x queried client id",
    key=(
        "consumer_group",
        "client_id",
    ),
    columns=(
        CONSUMER_GROUP,
        CLIENT_ID,
        Column(
            "state",
            "string",
            "`online`: it answered; `offline`: the broker answered that it is not connected; `unknown`: it could not be reached or its answer could not be read.",
            nullable=False,
        ),
        *SELF_DESCRIPTION,
    ),
)
