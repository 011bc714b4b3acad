"""CROSS_TOPIC_FAIR: round robin over all topics of a group, so that each client's total is equal too.

RocketMQ balances each topic separately: AVG and AVG_BY_CIRCLE give the first clients in sort order the larger share
of *every* topic. Here the round robin of a topic continues where the previous topic ended. Hypothetical. For example,
the topics t0 and t1 with 3 queues each, and the clients c0 and c1, which have 3 queues each in the end:

    c0: t0/0, t0/2, t1/1
    c1: t0/1, t1/0, t1/2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_ledger.rocketmq import java_strings as java
from strategies.batch import NO_OWNER, Slots, owner_of_each, position_in_run
from strategies.guarantees import Guarantees
from strategies.hypothetical import HypotheticalStrategy, Members

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rebalance_ledger.rocketmq.versions import Client
    from strategies.batch import IntArray, SlotArray, SubscriptionBatch


class CrossTopicFair(HypotheticalStrategy):
    """AVG_BY_CIRCLE in which each topic begins with the client after the last one of the previous topic.

    In addition to `promise`, which is per topic: if all clients subscribe to all topics, the totals of two clients
    over all topics differ by at most one queue.

    Args:
        client: Only its language matters, for refused arguments.
        queue_counts: Readable queues of each topic of the group. A missing topic begins with the first client.
    """

    name = "CROSS_TOPIC_FAIR"
    promise = Guarantees(
        max_owner_count=1, min_owner_count=1, max_spread_count=1, holds_with_duplicate_ids=True
    )

    def __init__(self, client: Client, *, queue_counts: Mapping[str, int]) -> None:
        super().__init__(client)
        topics = sorted(queue_counts, key=java.order_key)
        before = np.cumsum([0, *(queue_counts[topic] for topic in topics)]).tolist()
        self._turn_of_topic = dict(zip(topics, before, strict=False))

    def raw_slots(self, batch: SubscriptionBatch) -> Slots:
        """See `cross_topic_slots`."""
        turns = [self._turn_of_topic.get(topic, 0) for topic in batch.topic]
        return Slots(cross_topic_slots(batch, np.array(turns, dtype=np.int64)))


def cross_topic_slots(batch: SubscriptionBatch, first_turn: IntArray) -> SlotArray:
    """Return each queue's client slot, as int32[Q].

    Args:
        batch: The subscriptions.
        first_turn: int64[S], total queue count of the group's earlier topics.
    """
    members = Members(batch)
    queue_counts = batch.queue_counts()
    subscription = owner_of_each(queue_counts)
    turn = position_in_run(queue_counts) + first_turn[subscription]
    member_count = members.counts[subscription]
    member = np.where(member_count > 0, turn % np.maximum(member_count, 1), NO_OWNER)
    return members.slot_of(subscription, member)
