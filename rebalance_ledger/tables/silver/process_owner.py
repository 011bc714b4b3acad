"""`silver.process_owner`: the queues in each process table, requested from the process directly."""

from rebalance_ledger.tables.columns import BROKER_NAME, CLIENT_ID, CONSUMER_GROUP, PROCESS, QUEUE_ID, TOPIC
from rebalance_ledger.tables.model import Table
from rebalance_ledger.tables.silver.observed_owner import PROCESS_QUEUE

PROCESS_OWNER = Table(
    name="process_owner",
    layer="silver",
    grain="group x client x process x queue",
    key=(
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
        "client_id",
        "process",
    ),
    columns=(
        CONSUMER_GROUP,
        TOPIC,
        BROKER_NAME,
        QUEUE_ID,
        CLIENT_ID,
        PROCESS,
        *PROCESS_QUEUE,
    ),
)
