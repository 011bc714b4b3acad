"""CANARY: a marked subset of the clients takes a chosen share of the queues, the others take the rest.

For trying a new version on a known part of the messages. Hypothetical.
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
    """Two groups of clients, each divided as AVG divides, over queues that are picked evenly from the list.

    Beside its promise: of Q queues exactly `canary_queue_counts(Q, share)` belong to canaries, and inside
    either group no client has two queues more than another. If all clients are canaries, or none is, all
    queues are divided among all.

    Args:
        client: Which client; only its language matters, for refused arguments.
        is_canary: Which clients are marked: their ids, or a test of an id.
        share: Which part of the queues they take, 0 to 1.

    Raises:
        RocketMQError: `IllegalArgumentException` for a share that is not a part.
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
    """Return how many of a topic's queues the canaries take: the share, rounded to the nearest, halves up."""
    nearest: IntArray = np.floor(queue_counts * share + 0.5).astype(np.int64)
    return nearest


def canary_slots(batch: SubscriptionBatch, is_canary: npt.NDArray[np.bool_], share: float) -> SlotArray:
    """Return each queue's client slot, as int32[Q].

    Args:
        batch: The subscriptions.
        is_canary: bool[C], which client slots are marked; all slots of a client id alike.
        share: Which part of the queues they take, 0 to 1.
    """
    queue_counts = batch.queue_counts()
    subscription = owner_of_each(queue_counts)
    everybody, canaries, others = Members(batch), Members(batch, is_canary), Members(batch, ~is_canary)
    is_split = (canaries.counts > 0) & (others.counts > 0)
    position, length = position_in_run(queue_counts), queue_counts[subscription]
    count_here = canary_queue_counts(queue_counts, share)[subscription]
    # The k-th part of the list ends where this quotient steps, so that the picked queues lie evenly in it.
    is_picked = (position + 1) * count_here // length > position * count_here // length

    result = np.full(len(subscription), NO_OWNER, dtype=np.int32)
    for members, takes in (
        (everybody, ~is_split[subscription]),
        (canaries, is_split[subscription] & is_picked),
        (others, is_split[subscription] & ~is_picked),
    ):
        result[takes] = _divide(members, subscription[takes], len(batch))
    return result


def _divide(members: Members, subscription: IntArray, subscription_count: int) -> SlotArray:
    """Divide some queues, given by their subscriptions in order, by AVG."""
    member = runs(np.bincount(subscription, minlength=subscription_count), members.counts)
    return members.slot_of(subscription, member.astype(np.int64))
