"""Base classes of allocation strategies: a name, the rule for one client, and the same rule for a whole batch.

Belongs here: the base classes and the checks that RocketMQ's strategies share.
Does not belong here: the rules (one file per strategy).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

import numpy as np

from rebalance_ledger.rocketmq.errors import RocketMQError, illegal_argument
from rebalance_ledger.rocketmq.java_strings import is_blank
from rebalance_ledger.rocketmq.versions import Client, Language
from strategies.batch import (
    NO_OWNER,
    Owners,
    Slots,
    first_slots,
    has_shared_ids,
    owners_from_pairs,
    owners_from_slots,
)
from strategies.guarantees import Guarantees

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from rebalance_ledger.rocketmq.message_queue import MessageQueue
    from strategies.batch import SlotArray, SubscriptionBatch


class Strategy(ABC):
    """A rule that divides the queues of a topic among the clients of a consumer group.

    A strategy has two methods that always return the same assignment: `allocate` for one client, with the arguments
    of RocketMQ's interface, and `allocate_batch` for all clients of many subscriptions at once. A subclass
    implements its rule in `allocate` and inherits the batch, or implements both where speed matters.
    """

    hypothetical: bool = False
    """Whether no RocketMQ client has this strategy, so that it never decides who owns a queue."""

    only_given_queues: bool = True
    """Whether `allocate` only returns queues of `mq_all`."""

    promise: Guarantees = Guarantees()
    """The guarantees of this strategy; `invariants` checks them."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the Java class returns from `getName()`."""

    @abstractmethod
    def allocate(
        self,
        consumer_group: str | None,
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,
    ) -> list[MessageQueue] | None:
        """Return the queues that one client takes.

        Args:
            consumer_group: The group's name; RocketMQ's strategies only log it.
            current_cid: The id of this client.
            mq_all: All queues of the topic, in the client's sort order. Strategies do not sort.
            cid_all: All client ids of the group, in the client's sort order, possibly with duplicates.

        Returns:
            The client's queues, as elements of `mq_all` where it has them; `None` only from `CONFIG`.

        Raises:
            RocketMQError: The error that the client would throw.
        """

    def covered_queues(self, batch: SubscriptionBatch) -> npt.NDArray[np.bool_]:
        """Return the queues to which `promise.min_owner_count` applies, as bool[Q]; by default all."""
        return np.ones(len(batch.queue_id), dtype=bool)

    def allocate_batch(self, batch: SubscriptionBatch) -> Owners:
        """Return the owners of every queue of many subscriptions.

        RocketMQ refuses an empty list of queues or clients (see `rebalance` for the consequences); here such a
        subscription has no owners. Queues that a strategy returns although they are not in the subscription
        (CONFIG may do so) have no index and are omitted.

        This default calls `allocate` once per distinct client: correct for every strategy, but slow.
        """
        owned: list[tuple[int, int, int]] = []
        refused: dict[int, str] = {}
        for subscription in range(len(batch)):
            queues, client_ids = batch.queues_of(subscription), batch.clients_of(subscription)
            if not queues or not client_ids:
                continue
            position = {queue: slot for slot, queue in reversed(list(enumerate(queues)))}
            pairs: list[tuple[int, int, int]] = []
            try:
                for client_id in dict.fromkeys(client_ids):
                    slot = client_ids.index(client_id)
                    taken = self.allocate(None, client_id, queues, client_ids) or []
                    pairs.extend(
                        (subscription, position[queue], slot) for queue in taken if queue in position
                    )
            except RocketMQError as error:
                refused[subscription] = str(error)
                continue
            owned.extend(pairs)
        columns = np.array(owned, dtype=np.int64).reshape(-1, 3).T
        return owners_from_pairs(batch, columns[0], columns[1], columns[2], refused)


class SlotStrategy(Strategy):
    """A strategy that gives each queue to at most one client slot, so that one array holds the assignment."""

    @abstractmethod
    def raw_slots(self, batch: SubscriptionBatch) -> Slots:
        """Return the client slot that the rule gives each queue to.

        The rule counts slots, not clients: the result includes later slots of a duplicate client id, although no
        client takes their queues; see `slots`.
        """

    def slots(self, batch: SubscriptionBatch) -> Slots:
        """Return the client slot that owns each queue.

        A client takes the queues of the *first* slot of its id only. If two processes have the same id, both take the
        first slot's queues, and the queues of the second slot have no owner.
        """
        raw = self.raw_slots(batch)
        if not has_shared_ids(batch):
            return raw
        assigned = np.flatnonzero(raw.slot != NO_OWNER)
        starts = np.repeat(batch.client_offsets[:-1], batch.queue_counts())[assigned]
        is_later = first_slots(batch)[starts + raw.slot[assigned]] != raw.slot[assigned]
        owned = raw.slot.copy()
        owned[assigned[is_later]] = NO_OWNER
        return Slots(owned, raw.refused)

    def owner_slots(self, batch: SubscriptionBatch) -> SlotArray:
        """Return `slots` without the refusals, as int32[Q]; a refused subscription's queues have no owner."""
        return self.slots(batch).slot

    def allocate_batch(self, batch: SubscriptionBatch) -> Owners:
        """Return the owners of every queue of many subscriptions; see `Strategy.allocate_batch`."""
        return owners_from_slots(batch, self.slots(batch))


_CLASS_OF_CPP_ERROR: Final = "MQClientException"
_CPP_TEXT: Final = {
    "currentCID is empty": "currentCID is empty",
    "mqAll is null or mqAll empty": "mqAll is empty",
    "cidAll is null or cidAll empty": "cidAll is empty",
}


def client_position(
    client: Client,
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str] | None,
    *,
    blank_is_empty: bool = False,
) -> int | None:
    """Check the arguments as all strategies but CONFIG do, and return the first slot of the client's id.

    Source: `AbstractAllocateMessageQueueStrategy.check` (5.x); earlier releases have the same checks in each class.

    Args:
        client: Decides what a bad argument does: Java throws, Go returns nil, C++ throws its own exception class.
        current_cid: The id of this client.
        mq_all: All queues.
        cid_all: All client ids.
        blank_is_empty: Whether an id of Java whitespace is refused; only MACHINE_ROOM of 4.9.3 does so.

    Returns:
        The slot, or `None` if the client takes no queue and no error is thrown.

    Raises:
        RocketMQError: An argument is null or empty.
    """
    empty = None
    if not current_cid or (blank_is_empty and is_blank(current_cid)):
        empty = "currentCID is empty"
    elif not mq_all:
        empty = "mqAll is null or mqAll empty"
    elif not cid_all:
        empty = "cidAll is null or cidAll empty"
    if empty is not None:
        if client.language is Language.GO:
            return None
        if client.language is Language.CPP:
            raise RocketMQError(_CLASS_OF_CPP_ERROR, _CPP_TEXT[empty])
        raise illegal_argument(empty)
    return first_position(current_cid, cid_all)


def first_position(client_id: str | None, cid_all: Sequence[str] | None) -> int | None:
    """Return the first slot of the id; `None` if it is not in the list, so that the client takes no queue."""
    if cid_all is None or client_id not in cid_all:
        return None
    return cid_all.index(client_id)
