"""STICKY: queue counts as equal as AVG's, with the fewest moves from the previous owners.

Hypothetical, because no RocketMQ client remembers previous owners. For example, c0 owned the queues 0 to 2 and c1 the
queues 3 to 5 when c2 joins. Two queues move; AVG would move three:

    c0: 0, 1
    c1: 3, 4
    c2: 2, 5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from strategies.batch import NO_OWNER, Slots, distinct_queues, first_slots, owner_of_each, position_in_run
from strategies.guarantees import Guarantees
from strategies.hypothetical import HypotheticalStrategy, Members

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rebalance_ledger.rocketmq.message_queue import MessageQueue
    from rebalance_ledger.rocketmq.versions import Client
    from strategies.batch import IntArray, SlotArray, SubscriptionBatch


class Sticky(HypotheticalStrategy):
    """Each client keeps its previous queues up to its share; the other queues go to clients below their share, in order.

    The larger shares go to clients that owned more than the smaller share, so that no assignment with equal shares
    moves fewer queues.

    Args:
        client: Only its language matters, for refused arguments.
        previous: Previous owner of each queue of the group; a missing queue had no owner.
    """

    name = "STICKY"
    promise = Guarantees(
        max_owner_count=1, min_owner_count=1, max_spread_count=1, holds_with_duplicate_ids=True
    )

    def __init__(self, client: Client, *, previous: Mapping[MessageQueue, str]) -> None:
        super().__init__(client)
        self._previous = previous

    def raw_slots(self, batch: SubscriptionBatch) -> Slots:
        """See `sticky_slots`."""
        return Slots(sticky_slots(batch, self._previous_slots(batch)))

    def _previous_slots(self, batch: SubscriptionBatch) -> SlotArray:
        codes = {client_id: code for code, client_id in enumerate(batch.client_ids)}
        distinct, position = distinct_queues(batch)
        previous = [codes.get(self._previous.get(queue, ""), NO_OWNER) for queue in distinct]
        return slots_of_clients(batch, np.array(previous, dtype=np.int64)[position])


def slots_of_clients(batch: SubscriptionBatch, client_codes: IntArray) -> SlotArray:
    """Return the first slot of a client in each queue's subscription, as int32[Q].

    Args:
        batch: The subscriptions.
        client_codes: int64[Q], indices into `batch.client_ids`; -1, or a client that is not in the queue's
            subscription, gives `NO_OWNER`.
    """
    client_count = len(batch.client_ids) + 1
    client_keys = owner_of_each(batch.client_counts()) * client_count + batch.client_id_codes
    keys, first = np.unique(client_keys, return_index=True)
    wanted = owner_of_each(batch.queue_counts()) * client_count + client_codes
    at = np.searchsorted(keys, wanted)
    is_member = (client_codes >= 0) & (np.append(keys, -1)[at] == wanted)
    slots = np.append(first_slots(batch)[first], 0)[at]
    return np.where(is_member, slots, np.int32(NO_OWNER))


def sticky_slots(batch: SubscriptionBatch, previous_slots: SlotArray) -> SlotArray:
    """Return each queue's client slot, as int32[Q], with equal shares and the fewest moves.

    Args:
        batch: The subscriptions.
        previous_slots: int32[Q], the first slot of each queue's previous owner; `NO_OWNER` if it had none or that
            client has left.
    """
    members = Members(batch)
    queue_counts = batch.queue_counts()
    member, kept = _kept(batch, members, previous_slots)
    subscription = owner_of_each(queue_counts)
    # Queues that no member keeps, in queue order, fill the free places, in member order. Both counts are equal.
    held = np.bincount(members.offsets[subscription[kept]] + member[kept], minlength=len(members.slots))
    open_queue = ~kept & (members.counts > 0)[subscription]
    free = _quotas(batch, members, previous_slots) - held
    member[open_queue] = np.repeat(position_in_run(members.counts), free)
    member[~kept & ~open_queue] = NO_OWNER
    return members.slot_of(subscription, member)


def least_moves(batch: SubscriptionBatch, previous_slots: SlotArray) -> IntArray:
    """Return the fewest queues that an assignment with equal shares must move, as int64[S].

    A queue whose previous owner has left, or that had none, counts as moved.

    Args:
        batch: The subscriptions.
        previous_slots: As for `sticky_slots`.
    """
    _, kept = _kept(batch, Members(batch), previous_slots)
    subscription = owner_of_each(batch.queue_counts())
    return np.bincount(subscription[~kept], minlength=len(batch))


def _kept(
    batch: SubscriptionBatch, members: Members, previous_slots: SlotArray
) -> tuple[IntArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return each queue's previous owner as a member number, and whether that member keeps the queue."""
    subscription = owner_of_each(batch.queue_counts())
    member = _member_of(batch, members, previous_slots)
    rows = np.flatnonzero(member != NO_OWNER)
    owner = members.offsets[subscription[rows]] + member[rows]
    order = np.argsort(owner, kind="stable")
    rank = np.empty(len(rows), dtype=np.int64)
    rank[order] = position_in_run(np.bincount(owner, minlength=len(members.slots)))
    kept = np.zeros(len(member), dtype=bool)
    kept[rows] = rank < _quotas(batch, members, previous_slots)[owner]
    return member, kept


def _member_of(batch: SubscriptionBatch, members: Members, slots: SlotArray) -> IntArray:
    """Return the member number of the client in each slot, as int64[Q]; `NO_OWNER` is kept."""
    client_counts = batch.client_counts()
    is_first = first_slots(batch) == position_in_run(client_counts)
    number = np.cumsum(is_first) - 1 - np.repeat(members.offsets[:-1], client_counts)
    starts = np.repeat(batch.client_offsets[:-1], batch.queue_counts())
    result = np.full(len(slots), NO_OWNER, dtype=np.int64)
    has_slot = np.flatnonzero(slots != NO_OWNER)
    result[has_slot] = number[starts[has_slot] + slots[has_slot]]
    return result


def _quotas(batch: SubscriptionBatch, members: Members, previous_slots: SlotArray) -> IntArray:
    """Return each member's share, as int64; members that owned more than the smaller share get the larger ones first."""
    share, larger = np.divmod(batch.queue_counts(), np.maximum(members.counts, 1))
    subscription = owner_of_each(members.counts)
    queue_subscription = owner_of_each(batch.queue_counts())
    member = _member_of(batch, members, previous_slots)
    rows = np.flatnonzero(member != NO_OWNER)
    held = np.bincount(members.offsets[queue_subscription[rows]] + member[rows], minlength=len(members.slots))
    had_less = held <= share[subscription]
    order = np.lexsort((had_less, subscription))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = position_in_run(members.counts)
    return share[subscription] + (rank < larger[subscription])
