"""Columns that many tables share, so that one idea has one name and one meaning."""

from __future__ import annotations

from tables.model import Column

CONSUMER_GROUP = Column("consumer_group", "string", "The consumer group.", nullable=False)
BROKER_NAME = Column("broker_name", "string", "The broker name.", nullable=False)
TOPIC = Column("topic", "string", "The topic, retry topics (`%RETRY%<group>`) included.", nullable=False)
CLIENT_ID = Column("client_id", "string", "The client id.", nullable=False)
QUEUE_ID = Column("queue_id", "int", "The queue id on that broker, from 0.", nullable=False)
PROCESS = Column(
    "process", "string", "The process that was asked, by the collector's name for it.", nullable=False
)
NAMESERVER = Column("nameserver", "string", "Address of the name server that said so.", nullable=False)
STRATEGY_SOURCE = Column(
    "strategy_source",
    "string",
    "`observed`: the members report it; `configured`: the settings file says so; `hypothetical`: computed to compare.",
    nullable=False,
)
IS_EFFECTIVE = Column(
    "is_effective",
    "boolean",
    "Whether this is how the group really shares this topic, as far as the export can tell.",
    nullable=False,
)
RUN_ID = Column(
    "run_id",
    "string",
    "Identifies the computation: the same export, settings and code give the same id.",
    nullable=False,
)
