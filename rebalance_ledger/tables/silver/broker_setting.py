"""`silver.broker_setting`: those of a broker's settings that say how clients fetch messages."""

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
            "Name of the setting: `defaultMessageRequestMode`, `defaultPopShareQueueNum`, `serverLoadBalancerEnable`, `enableRetryTopicV2` or `popConsumerKVServiceEnable`. No other is read.",
            nullable=False,
        ),
        Column("value", "string", "Its value as the broker gives it.", nullable=False),
    ),
)
