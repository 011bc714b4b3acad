"""BOUNDED_LOAD_HASH: CONSISTENT_HASH with an upper bound on the queues of one client.

The ring skips a client that is full, and the next client takes the queue. Hypothetical.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

import numpy as np

from rebalance_ledger.rocketmq.errors import illegal_argument
from strategies.batch import NO_OWNER, Slots
from strategies.consistent_hash import DEFAULT_VIRTUAL_NODE_COUNT, ring_hashes
from strategies.guarantees import Guarantees
from strategies.hypothetical import HypotheticalStrategy, Members

if TYPE_CHECKING:
    from rebalance_ledger.rocketmq.versions import Client
    from strategies.batch import IntArray, SubscriptionBatch

DEFAULT_LOAD_FACTOR: Final = 1.25


class BoundedLoadHash(HypotheticalStrategy):
    """RocketMQ's ring and hash, with a bound on the number of queues of one client.

    Args:
        client: Only its language matters, for refused arguments.
        load_factor: A client takes at most this factor times the mean, rounded up; 1 or more.
        virtual_node_count: Virtual nodes per client; 1 or more.

    Raises:
        RocketMQError: `IllegalArgumentException` for a bound that leaves queues without an owner, or an empty ring.
    """

    name = "BOUNDED_LOAD_HASH"

    def __init__(
        self,
        client: Client,
        *,
        load_factor: float = DEFAULT_LOAD_FACTOR,
        virtual_node_count: int = DEFAULT_VIRTUAL_NODE_COUNT,
    ) -> None:
        if load_factor < 1:
            raise illegal_argument(f"A load factor of {load_factor} is less than 1 and leaves queues over")
        if virtual_node_count < 1:
            raise illegal_argument(f"illegal virtualNodeCnt :{virtual_node_count}")
        super().__init__(client)
        self.promise = Guarantees(
            max_owner_count=1, min_owner_count=1, max_load_factor=load_factor, holds_with_duplicate_ids=True
        )
        self._load_factor = load_factor
        self._node_count = virtual_node_count

    def raw_slots(self, batch: SubscriptionBatch) -> Slots:
        """Assign the queues one by one in list order, because earlier queues decide which clients are full."""
        members = Members(batch)
        node_hashes = ring_hashes(
            f"{client_id}-{replica}" for client_id in batch.client_ids for replica in range(self._node_count)
        ).reshape(len(batch.client_ids), self._node_count)
        result = np.full(len(batch.queue_id), NO_OWNER, dtype=np.int32)
        for subscription in range(len(batch)):
            slots = members.slots[members.offsets[subscription] : members.offsets[subscription + 1]]
            start, stop = batch.queue_offsets[subscription : subscription + 2].tolist()
            if len(slots) and stop > start:
                codes = batch.client_id_codes[batch.client_offsets[subscription] + slots]
                queue_hashes = ring_hashes(map(str, batch.queues_of(subscription)))
                chosen = self._walk(node_hashes[codes], queue_hashes)
                result[start:stop] = slots[chosen]
        return Slots(result)

    def _walk(self, node_hashes: IntArray, queue_hashes: IntArray) -> list[int]:
        """Return the position of the client that takes each queue."""
        client_count = len(node_hashes)
        capacity = ceil(self._load_factor * (len(queue_hashes) / client_count))
        order = np.argsort(node_hashes, axis=None, kind="stable")
        ring = (order // self._node_count).tolist()
        starts = np.searchsorted(node_hashes.ravel()[order], queue_hashes)
        load = [0] * client_count
        chosen = []
        for start in starts.tolist():
            at = start % len(ring)
            while load[ring[at]] >= capacity:
                at = (at + 1) % len(ring)
            load[ring[at]] += 1
            chosen.append(ring[at])
        return chosen
