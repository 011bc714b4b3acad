"""Columns that several tables share, so that one concept has one name and one meaning."""

from __future__ import annotations

from rebalance_ledger.tables.model import Column
from rebalance_ledger.tables.vocabulary import GroupStateReason, StrategySource

CONSUMER_GROUP = Column("consumer_group", "string", "The consumer group.", nullable=False)
BROKER_NAME = Column("broker_name", "string", "The broker name.", nullable=False)
TOPIC = Column("topic", "string", "The topic, retry topics (`%RETRY%<group>`) included.", nullable=False)
CLIENT_ID = Column("client_id", "string", "The client id.", nullable=False)
QUEUE_ID = Column("queue_id", "int", "The queue id on that broker, from 0.", nullable=False)
PROCESS = Column("process", "string", "The queried process, as the collector names it.", nullable=False)
PROXY = Column(
    "proxy",
    "string",
    "Address of the proxy, `host:port`, for the remoting protocol.",
    nullable=False,
)
NAMESERVER = Column("nameserver", "string", "Address of the name server that returned this.", nullable=False)
STRATEGY_SOURCE = Column(
    "strategy_source",
    "string",
    "`observed`: the members report it; `configured`: the settings file defines it, for at least one of the members; `hypothetical`: computed to compare.",
    nullable=False,
    values=tuple(StrategySource),
)
IS_EFFECTIVE = Column(
    "is_effective",
    "boolean",
    "Whether this is the strategy that the group uses for the topic, according to the export.",
    nullable=False,
)
GROUP_STATE_REASON = Column(
    "group_state_reason",
    "string",
    "Why `group_state` is `unknown`: `broker_not_asked`; `online_at_other_brokers` (at none of the topic's route); or every broker reports no member, and yet: `may_be_behind_a_proxy` (proxies exist and not all of them answered), `pop_retry_topic_exists` (the group has consumed by POP, as clients of proxies do, and no proxy was queried), `messages_in_flight` (delivered messages are not consumed), `offsets_moved` (since the baseline day). Null for every other state.",
    values=tuple(GroupStateReason),
)
RUN_ID = Column(
    "run_id",
    "string",
    "Identifies the computation: the same export, settings and code give the same id.",
    nullable=False,
)
