"""AVG_BY_CIRCLE: queues are dealt to the clients in turn, one at a time (round robin).

For example, 5 queues and the clients c0 and c1:

    c0: 0, 2, 4
    c1: 1, 3

Source: `AllocateMessageQueueAveragelyByCircle` (Java, the same from 4.1.0 to 5.5.0),
`AllocateByAveragelyCircle` (Go). The C++ client does not have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from strategies.batch import NO_OWNER, Slots, position_in_run
from strategies.guarantees import EVEN_SHARES
from strategies.strategy import SlotStrategy, client_position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rebalance_ledger.rocketmq.message_queue import MessageQueue
    from rebalance_ledger.rocketmq.versions import Client
    from strategies.batch import SubscriptionBatch


class Circle(SlotStrategy):
    """The queue at position `p` goes to client slot `p` modulo the number of slots."""

    name = "AVG_BY_CIRCLE"
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
        """Return every N-th queue of N clients, starting at the client's slot; see `Strategy.allocate`."""
        slot = client_position(self._client, current_cid, mq_all, cid_all)
        if slot is None or mq_all is None or cid_all is None:
            return []
        return list(mq_all[slot :: len(cid_all)])

    def raw_slots(self, batch: SubscriptionBatch) -> Slots:
        """Return each queue's position modulo the number of clients; see `SlotStrategy.raw_slots`."""
        queue_counts, client_counts = batch.queue_counts(), batch.client_counts()
        # numpy divides 32-bit integers about twice as fast, and no topic has so many queues that they overflow.
        position = position_in_run(queue_counts).astype(np.int32)
        round_length = np.repeat(client_counts.astype(np.int32), queue_counts)
        slots = np.where(round_length > 0, position % np.maximum(round_length, 1), np.int32(NO_OWNER))
        return Slots(slots)
