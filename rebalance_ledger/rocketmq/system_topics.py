"""Which topics RocketMQ keeps for itself, so that applications' producers do not write to them.

Belongs here: the names, with the class that has them. Does not belong here: what is done about such a topic.

Source: `TopicValidator` and `MixAll`, whose sets were read from the jars of 4.7.1 to 5.5.0; `TopicConfigManager`,
which adds the names of broker and cluster.
"""

from __future__ import annotations

from typing import Final

RETRY_PREFIX: Final = "%RETRY%"
"""`MixAll.RETRY_GROUP_TOPIC_PREFIX`: before a group's name, the topic of messages that are delivered to the group again."""

OWN_TOPIC_PREFIXES: Final = (RETRY_PREFIX, "%DLQ%", "rmq_sys_")
"""Retry and dead letter topics, which a broker writes when a consumer gives a message back, and system topics."""

SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
"""A topic that every broker has from its start on (`TopicConfigManager`)."""

SYSTEM_TOPICS: Final = frozenset(
    {
        "BenchmarkTest",
        "CHECKPOINT_TOPIC",
        "OFFSET_MOVED_EVENT",
        "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
        "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC",
        "RMQ_SYS_TRACE_TOPIC",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "SCHEDULE_TOPIC_XXXX",
        SELF_TEST_TOPIC,
        "TBW102",
        "TRANS_CHECK_MAX_TIME_TOPIC",
    }
)
"""`TopicValidator.SYSTEM_TOPIC_SET` as it is loaded, of all those releases."""

REPLY_TOPIC_SUFFIX: Final = "_REPLY_TOPIC"
"""After a cluster's name, the topic for replies to requests. Cluster and brokers have topics of their own name, too."""
