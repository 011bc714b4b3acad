"""Real RocketMQ clusters for tests: name servers, brokers and consumers of one release, on loopback, on free ports.

Belongs here: starting them, telling real clients what to be, waiting until they agree, asking each process what it owns,
and leaving nothing behind. Anything that a test wants to compare must come from the clients themselves.
Does not belong here: what the ledger makes of a cluster (see `tests/e2e`).
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
