"""LAG_WEIGHTED: equal numbers of queues, and the backlog spread as evenly as that allows.

Hypothetical: RocketMQ's strategies do not know how far behind a queue is.
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
    """Rounds, the most lagging queues first; in each round the client with the least backlog chooses first.

    Beside its promise: the backlogs of two clients differ by at most the lag of the most lagging queue.

    Args:
        client: Which client; only its language matters, for refused arguments.
        lag_count: How many messages each queue of the group is behind. A subscription with a queue that is
            not there is refused: an unknown lag is not a lag of zero.
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

    Ties go to the earlier queue and to the earlier client. It loops over subscriptions and rounds.

    Args:
        batch: The subscriptions.
        lag_count: int64[Q], how many messages each queue is behind, 0 or more.
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
