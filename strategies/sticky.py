"""STICKY: shares as equal as AVG's, reached with the fewest moves from the previous owners.

Hypothetical: no RocketMQ client remembers who owned what.
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
    """Every client keeps what it had up to its share; the rest fills the free places in order.

    The larger shares go to clients that already have one, so that no assignment with equal shares moves fewer
    queues.

    Args:
        client: Which client; only its language matters, for refused arguments.
        previous: Who owned each queue of the group before; a queue that is not there had no owner.
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
        previous_slots: int32[Q], the first slot of each queue's previous owner, `NO_OWNER` if it had none or if
            that client is gone.
    """
    members = Members(batch)
    queue_counts = batch.queue_counts()
    member, kept = _kept(batch, members, previous_slots)
    subscription = owner_of_each(queue_counts)
    # What nobody keeps, in queue order, meets the free places, in member order: as many of the one as the other.
    held = np.bincount(members.offsets[subscription[kept]] + member[kept], minlength=len(members.slots))
    open_queue = ~kept & (members.counts > 0)[subscription]
    free = _quotas(batch, members, previous_slots) - held
    member[open_queue] = np.repeat(position_in_run(members.counts), free)
    member[~kept & ~open_queue] = NO_OWNER
    return members.slot_of(subscription, member)


def least_moves(batch: SubscriptionBatch, previous_slots: SlotArray) -> IntArray:
    """Return how many queues any assignment with equal shares must move to another client, as int64[S].

    A queue whose previous owner is gone, or that had none, counts: somebody else must take it.

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
    """Return each queue's previous owner as a member's number, and whether the queue stays with that member."""
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
    """Return the number, among the distinct clients, of the client in each slot, as int64[Q]; `NO_OWNER` stays."""
    client_counts = batch.client_counts()
    is_first = first_slots(batch) == position_in_run(client_counts)
    number = np.cumsum(is_first) - 1 - np.repeat(members.offsets[:-1], client_counts)
    starts = np.repeat(batch.client_offsets[:-1], batch.queue_counts())
    result = np.full(len(slots), NO_OWNER, dtype=np.int64)
    somebody = np.flatnonzero(slots != NO_OWNER)
    result[somebody] = number[starts[somebody] + slots[somebody]]
    return result


def _quotas(batch: SubscriptionBatch, members: Members, previous_slots: SlotArray) -> IntArray:
    """Return each member's share, as int64; the larger shares go first to members that had more than the smaller one."""
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
