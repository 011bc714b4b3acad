"""AVG: each client takes one run of consecutive queues; run lengths differ by at most one.

RocketMQ's default. Queues and client ids are sorted, and the queue count is divided by the client count. If there is a
remainder, the first clients take one queue more. For example, 5 queues and the clients c0 and c1:

    c0: 0, 1, 2
    c1: 3, 4

Source: `AllocateMessageQueueAveragely` (Java, the same from 4.1.0 to 5.5.0), `AllocateByAveragely` (Go),
`AllocateMQAveragely` (C++).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from strategies.batch import NO_OWNER, Slots, owner_of_each, position_in_run
from strategies.guarantees import EVEN_SHARES
from strategies.strategy import SlotStrategy, client_position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rebalance_ledger.rocketmq.message_queue import MessageQueue
    from rebalance_ledger.rocketmq.versions import Client
    from strategies.batch import IntArray, SlotArray, SubscriptionBatch


class Average(SlotStrategy):
    """RocketMQ's default strategy."""

    name = "AVG"
    promise = EVEN_SHARES

    def __init__(self, client: Client) -> None:
        self._client = client

    def allocate(
        self,
        consumer_group: str | None,  # noqa: ARG002  only for RocketMQ's log
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,
    ) -> list[MessageQueue]:
        """Return the client's run of queues; see `Strategy.allocate` for the arguments."""
        slot = client_position(self._client, current_cid, mq_all, cid_all)
        if slot is None or mq_all is None or cid_all is None:
            return []
        share, larger = divmod(len(mq_all), len(cid_all))
        start = slot * share + min(slot, larger)
        return list(mq_all[start : start + share_of(slot, len(mq_all), len(cid_all))])

    def raw_slots(self, batch: SubscriptionBatch) -> Slots:
        """Return the runs of all clients, concatenated; see `SlotStrategy.raw_slots`."""
        queue_counts, client_counts = batch.queue_counts(), batch.client_counts()
        return Slots(runs(queue_counts, client_counts))


def share_of(slot: int, queue_count: int, client_count: int) -> int:
    """Return the number of queues that the client in this slot takes: an equal share, plus one for the first clients."""
    share, larger = divmod(queue_count, client_count)
    return share + (slot < larger)


def runs(queue_counts: IntArray, client_counts: IntArray) -> SlotArray:
    """Return each queue's client slot, as int32[sum of queue_counts]; `NO_OWNER` where there are no clients."""
    divisor = np.maximum(client_counts, 1)
    slots = position_in_run(client_counts)
    subscription = owner_of_each(client_counts)
    taken = (queue_counts // divisor)[subscription] + (slots < (queue_counts % divisor)[subscription])
    has_clients = np.repeat(client_counts > 0, queue_counts)
    result = np.full(len(has_clients), NO_OWNER, dtype=np.int32)
    # The shares of a subscription add up to its queue count, so the runs fill its range exactly.
    result[has_clients] = np.repeat(slots.astype(np.int32), taken)
    return result
