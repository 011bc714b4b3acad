"""Which consumer groups RocketMQ keeps for itself, so that no application's consumers are in them.

Belongs here: the names, with the class that has them. Does not belong here: what is done about such a group.

Source: `MixAll.isSysConsumerGroup` and `MixAll.PREDEFINE_GROUP_SET`, `SubscriptionGroupManager.init`, of 4.7.1 to
5.5.0; `ProxyConfig.heartbeatSyncerTopicName` and `HeartbeatSyncer.getBroadcastConsumerGroup`.
"""

from __future__ import annotations

from typing import Final

PROXY_HEARTBEAT_GROUP: Final = "CID_DefaultHeartBeatSyncerTopic"
"""The group by which each proxy in CLUSTER mode hears of the clients of the others."""

SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"

SYSTEM_GROUPS: Final = frozenset(
    {
        PROXY_HEARTBEAT_GROUP,
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_PULL",
        "CLIENT_INNER_PRODUCER",
        "DEFAULT_CONSUMER",
        "DEFAULT_PRODUCER",
        "FILTERSRV_CONSUMER",
        "SCHEDULE_CONSUMER",
        "SELF_TEST_C_GROUP",
        "SELF_TEST_P_GROUP",
        "TOOLS_CONSUMER",
        "__MONITOR_CONSUMER",
    }
)
"""Those without the prefix."""
