"""Base class of hypothetical strategies: what-if rules that no RocketMQ client has.

Belongs here: the base class and shared array helpers. Does not belong here: the rules (one file per strategy).

Hypothetical strategies count clients, not slots: a duplicate client id has one share, in its first slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_ledger.rocketmq.errors import illegal_argument
from strategies.batch import (
    NO_OWNER,
    SubscriptionBatch,
    first_slots,
    offsets,
    owner_of_each,
    position_in_run,
)
from strategies.strategy import SlotStrategy, client_position

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from rebalance_ledger.rocketmq.message_queue import MessageQueue
    from rebalance_ledger.rocketmq.versions import Client
    from strategies.batch import IntArray, SlotArray


class HypotheticalStrategy(SlotStrategy):
    """A strategy whose rule works on whole batches; `allocate` selects one client's share from the result."""

    hypothetical = True

    def __init__(self, client: Client) -> None:
        self._client = client

    def allocate(
        self,
        consumer_group: str | None,  # noqa: ARG002  a strategy object is made for one group
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,
    ) -> list[MessageQueue]:
        """Return the client's share; see `Strategy.allocate`.

        Raises:
            ValueError: The queues are of several topics.
        """
        slot = client_position(self._client, current_cid, mq_all, cid_all)
        if slot is None or mq_all is None or cid_all is None:
            return []
        slots = self.slots(SubscriptionBatch.of([(mq_all, cid_all)]))
        for error in slots.refused.values():
            raise illegal_argument(error)
        return [mq_all[position] for position in np.flatnonzero(slots.slot == slot).tolist()]


class Members:
    """The distinct clients of every subscription, in slot order.

    Attributes:
        counts: int64[S], number of distinct clients.
        offsets: int64[S + 1], where each subscription's members start in `slots`.
        slots: int32, the first slot of each member.
    """

    def __init__(self, batch: SubscriptionBatch, is_wanted: npt.NDArray[np.bool_] | None = None) -> None:
        client_counts = batch.client_counts()
        position = position_in_run(client_counts)
        wanted = first_slots(batch) == position
        if is_wanted is not None:
            wanted &= is_wanted
        self.counts = np.bincount(owner_of_each(client_counts)[wanted], minlength=len(batch))
        self.offsets = offsets(self.counts)
        self.slots = position[wanted].astype(np.int32)

    def slot_of(self, subscription: IntArray, member: IntArray) -> SlotArray:
        """Return the slots of members, given by their number in their subscription, as int32; `NO_OWNER` for -1."""
        result = np.full(len(member), NO_OWNER, dtype=np.int32)
        has_member = np.flatnonzero(member >= 0)
        rows = self.offsets[subscription[has_member]] + member[has_member]
        result[has_member] = self.slots[rows]
        return result
