"""CANARY: marked clients share a configured fraction of the queues, the other clients share the rest.

It tries a new version on a known part of the messages. Hypothetical. For example, 4 queues, the clients c0, c1 and c2,
and c2 as the canary with a share of 0.25:

    c0: 0, 1
    c1: 2
    c2: 3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_ledger.rocketmq.errors import illegal_argument
from strategies.averagely import runs
from strategies.batch import NO_OWNER, Slots, owner_of_each, position_in_run
from strategies.guarantees import Guarantees
from strategies.hypothetical import HypotheticalStrategy, Members

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import numpy.typing as npt

    from rebalance_ledger.rocketmq.versions import Client
    from strategies.batch import IntArray, SlotArray, SubscriptionBatch


class Canary(HypotheticalStrategy):
    """AVG among the canaries over queues that are picked evenly from the list, and AVG among the others over the rest.

    In addition to `promise`: of Q queues exactly `canary_queue_counts(Q, share)` belong to canaries, and the queue
    counts of two clients of one kind differ by at most one. If all clients are canaries, or none is, all queues
    are divided among all.

    Args:
        client: Only its language matters, for refused arguments.
        is_canary: The ids of the canaries, or a predicate on a client id.
        share: Fraction of the queues that the canaries take, 0 to 1.

    Raises:
        RocketMQError: `IllegalArgumentException` for a share outside 0 to 1.
    """

    name = "CANARY"
    promise = Guarantees(max_owner_count=1, min_owner_count=1, holds_with_duplicate_ids=True)

    def __init__(
        self, client: Client, *, is_canary: Collection[str] | Callable[[str], bool], share: float
    ) -> None:
        if not 0 <= share <= 1:
            raise illegal_argument(f"A share of {share} is not between 0 and 1")
        super().__init__(client)
        self._is_canary = is_canary if callable(is_canary) else frozenset(is_canary).__contains__
        self._share = share

    def raw_slots(self, batch: SubscriptionBatch) -> Slots:
        """See `canary_slots`."""
        marked = np.array([bool(self._is_canary(client_id)) for client_id in batch.client_ids], dtype=bool)
        marked_slots = marked[batch.client_id_codes] if len(marked) else np.empty(0, dtype=bool)
        return Slots(canary_slots(batch, marked_slots, self._share))


def canary_queue_counts(queue_counts: IntArray, share: float) -> IntArray:
    """Return how many of a topic's queues the canaries take: the share, rounded half up."""
    nearest: IntArray = np.floor(queue_counts * share + 0.5).astype(np.int64)
    return nearest


def canary_slots(batch: SubscriptionBatch, is_canary: npt.NDArray[np.bool_], share: float) -> SlotArray:
    """Return each queue's client slot, as int32[Q].

    Args:
        batch: The subscriptions.
        is_canary: bool[C], whether each client slot is a canary; the same for all slots of a client id.
        share: Fraction of the queues that the canaries take, 0 to 1.
    """
    queue_counts = batch.queue_counts()
    subscription = owner_of_each(queue_counts)
    all_members, canaries, others = Members(batch), Members(batch, is_canary), Members(batch, ~is_canary)
    is_split = (canaries.counts > 0) & (others.counts > 0)
    position, length = position_in_run(queue_counts), queue_counts[subscription]
    count_here = canary_queue_counts(queue_counts, share)[subscription]
    # The quotient increases `count_here` times, at even distances: these queues are picked.
    is_picked = (position + 1) * count_here // length > position * count_here // length

    result = np.full(len(subscription), NO_OWNER, dtype=np.int32)
    for members, takes in (
        (all_members, ~is_split[subscription]),
        (canaries, is_split[subscription] & is_picked),
        (others, is_split[subscription] & ~is_picked),
    ):
        result[takes] = _divide(members, subscription[takes], len(batch))
    return result


def _divide(members: Members, subscription: IntArray, subscription_count: int) -> SlotArray:
    """Divide queues by AVG; `subscription` is that of each queue, in order."""
    member = runs(np.bincount(subscription, minlength=subscription_count), members.counts)
    return members.slot_of(subscription, member.astype(np.int64))
