"""LAG_WEIGHTED: equal queue counts, with the backlog spread as evenly as they allow.

Hypothetical, because RocketMQ's strategies do not know the lag of a queue. For example, the queues 0 to 3 with a lag of
100, 60, 50 and 0 messages, and the clients c0 and c1. In the first round c0 takes queue 0 and c1 queue 1; in the
second c1 has the smaller backlog and chooses first:

    c0: 0, 3 (100 messages)
    c1: 1, 2 (110 messages)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from strategies.batch import NO_OWNER, Slots, distinct_queues, owner_of_each
from strategies.guarantees import Guarantees
from strategies.hypothetical import HypotheticalStrategy, Members

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rebalance_ledger.rocketmq.message_queue import MessageQueue
    from rebalance_ledger.rocketmq.versions import Client
    from strategies.batch import IntArray, SlotArray, SubscriptionBatch

_UNKNOWN = -1


class LagWeighted(HypotheticalStrategy):
    """Rounds of one queue per client, largest lag first; in each round the client with the smallest backlog chooses first.

    In addition to `promise`, the backlogs of two clients differ by at most the largest lag of a queue.

    Args:
        client: Only its language matters, for refused arguments.
        lag_count: Lag of each queue of the group, in messages. A subscription with a queue without a lag is
            refused, because an unknown lag is not a lag of zero.
    """

    name = "LAG_WEIGHTED"
    promise = Guarantees(
        max_owner_count=1, min_owner_count=1, max_spread_count=1, holds_with_duplicate_ids=True
    )

    def __init__(self, client: Client, *, lag_count: Mapping[MessageQueue, int]) -> None:
        super().__init__(client)
        self._lag_count = lag_count

    def raw_slots(self, batch: SubscriptionBatch) -> Slots:
        """See `lag_weighted_slots`."""
        distinct, position = distinct_queues(batch)
        lags = np.array([self._lag_count.get(queue, _UNKNOWN) for queue in distinct], dtype=np.int64)
        unknown = np.flatnonzero(lags[position] < 0)
        subscription = owner_of_each(batch.queue_counts())
        refused = {
            int(subscription[row]): f"No lag is known of {distinct[position[row]]}"
            for row in unknown[::-1].tolist()
            if batch.client_counts()[subscription[row]] > 0
        }
        slots = lag_weighted_slots(batch, np.maximum(lags[position], 0))
        slots[np.isin(subscription, list(refused))] = NO_OWNER
        return Slots(slots, refused)


def lag_weighted_slots(batch: SubscriptionBatch, lag_count: IntArray) -> SlotArray:
    """Return each queue's client slot, as int32[Q].

    Ties go to the earlier queue and the earlier client.

    Args:
        batch: The subscriptions.
        lag_count: int64[Q], the lag of each queue in messages, 0 or more.
    """
    members = Members(batch)
    result = np.full(len(lag_count), NO_OWNER, dtype=np.int32)
    for subscription in range(len(batch)):
        start, stop = batch.queue_offsets[subscription : subscription + 2].tolist()
        slots = members.slots[members.offsets[subscription] : members.offsets[subscription + 1]]
        if not len(slots):
            continue
        heaviest_first = start + np.argsort(-lag_count[start:stop], kind="stable")
        backlog = np.zeros(len(slots), dtype=np.int64)
        for first in range(0, len(heaviest_first), len(slots)):
            rows = heaviest_first[first : first + len(slots)]
            choosing = np.argsort(backlog, kind="stable")[: len(rows)]
            result[rows] = slots[choosing]
            backlog[choosing] += lag_count[rows]
    return result
