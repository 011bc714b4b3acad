"""`silver.broker_setting`: the broker settings that determine how clients fetch messages."""

from rebalance_ledger.tables.columns import BROKER_NAME
from rebalance_ledger.tables.model import Column, Table

BROKER_SETTING = Table(
    name="broker_setting",
    layer="silver",
    grain="broker x setting",
    key=(
        "broker_name",
        "setting",
    ),
    columns=(
        BROKER_NAME,
        Column(
            "setting",
            "string",
            "Name of the setting: `defaultMessageRequestMode`, `defaultPopShareQueueNum`, `serverLoadBalancerEnable`, `enableRetryTopicV2` or `popConsumerKVServiceEnable`. Other settings are not read.",
            nullable=False,
        ),
        Column("value", "string", "The value that the broker reports.", nullable=False),
    ),
)
