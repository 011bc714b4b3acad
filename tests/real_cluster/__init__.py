"""Real RocketMQ clusters for tests: name servers, brokers and consumers of one release, on loopback, on free ports.

Belongs here: starting and stopping them, configuring real clients, waiting until they agree, and reading the queues that
each process owns. Every value that a test compares must come from the clients themselves.
Does not belong here: the ledger's view of a cluster (see `tests/e2e`).
"""

from .cluster import Broker, Consumed, Group, GrpcMember, Member, NoAnswerError, Proxy, Queue, RealCluster

__all__ = [
    "Broker",
    "Consumed",
    "Group",
    "GrpcMember",
    "Member",
    "NoAnswerError",
    "Proxy",
    "Queue",
    "RealCluster",
]
