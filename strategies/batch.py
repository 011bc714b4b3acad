"""Arrays for whole-batch allocation: the input (`SubscriptionBatch`) and the results (`Slots`, `Owners`).

Belongs here: the array types and the arithmetic on their offsets.
Does not belong here: rules (one file per strategy), Arrow and Spark (see `spark_jobs`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from rebalance_ledger.rocketmq.message_queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

IntArray = npt.NDArray[np.int64]
SlotArray = npt.NDArray[np.int32]
NameArray = npt.NDArray[np.object_]

NO_OWNER: Final = -1

QUEUE_ID_BITS: Final = 32
"""Bits of a `queue_key` that are the queue id."""


@dataclass(frozen=True, slots=True)
class SubscriptionBatch:
    """S subscriptions (consumer group x topic), with the queues and clients of all of them concatenated.

    Subscription `s` has the queues `queue_offsets[s]` to `queue_offsets[s + 1]` and the clients
    `client_offsets[s]` to `client_offsets[s + 1]`, both already in the order in which the client passes them
    to its strategy (`sort_queues`, `sort_client_ids`). A position inside that range is a *slot*.

    Attributes:
        queue_offsets: int64[S + 1], from 0 to Q.
        client_offsets: int64[S + 1], from 0 to C.
        topic: S topic names.
        broker_name_codes: int32[Q], indices into `broker_names`.
        broker_names: The distinct broker names.
        queue_id: int32[Q].
        client_id_codes: int32[C], indices into `client_ids`.
        client_ids: The distinct client ids. A client id may have several slots in one subscription.
    """

    queue_offsets: IntArray
    client_offsets: IntArray
    topic: Sequence[str] | NameArray
    broker_name_codes: npt.NDArray[np.int32]
    broker_names: Sequence[str] | NameArray
    queue_id: npt.NDArray[np.int32]
    client_id_codes: npt.NDArray[np.int32]
    client_ids: Sequence[str] | NameArray

    @classmethod
    def of(cls, subscriptions: Iterable[tuple[Sequence[MessageQueue], Sequence[str]]]) -> SubscriptionBatch:
        """Flatten lists of queues and client ids; each list of queues is of one topic.

        For small inputs: it loops in Python.

        Raises:
            ValueError: A subscription's queues are of several topics.
        """
        queue_counts, client_counts, topics = [0], [0], []
        brokers: dict[Any, int] = {}
        clients: dict[Any, int] = {}
        broker_codes: list[int] = []
        queue_ids: list[int] = []
        client_codes: list[int] = []
        for queues, client_ids in subscriptions:
            named = {queue.topic for queue in queues}
            if len(named) > 1:
                raise ValueError(
                    f"A subscription is of one topic, and this one has {sorted(map(str, named))}."
                )
            topics.append(named.pop() if named else "")
            queue_counts.append(len(queues))
            client_counts.append(len(client_ids))
            # Lists and not generators: a large group spends most of its time here.
            broker_codes += [brokers.setdefault(queue.broker_name, len(brokers)) for queue in queues]
            queue_ids += [queue.queue_id for queue in queues]
            client_codes += [clients.setdefault(client_id, len(clients)) for client_id in client_ids]
        return cls(
            queue_offsets=np.cumsum(queue_counts, dtype=np.int64),
            client_offsets=np.cumsum(client_counts, dtype=np.int64),
            topic=names(topics),
            broker_name_codes=np.array(broker_codes, dtype=np.int32),
            broker_names=names(brokers),
            queue_id=np.array(queue_ids, dtype=np.int32),
            client_id_codes=np.array(client_codes, dtype=np.int32),
            client_ids=names(clients),
        )

    def __len__(self) -> int:
        return len(self.queue_offsets) - 1

    def queue_counts(self) -> IntArray:
        """Return how many queues each subscription has, as int64[S]."""
        return np.diff(self.queue_offsets)

    def client_counts(self) -> IntArray:
        """Return how many client slots each subscription has, as int64[S]; duplicates count."""
        return np.diff(self.client_offsets)

    def queues_of(self, subscription: int) -> list[MessageQueue]:
        """Return the queues of one subscription as objects, for rules that cannot work on arrays."""
        start, stop = self.queue_offsets[subscription : subscription + 2].tolist()
        return [
            MessageQueue(self.topic[subscription], self.broker_names[code], queue_id)
            for code, queue_id in zip(
                self.broker_name_codes[start:stop].tolist(), self.queue_id[start:stop].tolist(), strict=True
            )
        ]

    def clients_of(self, subscription: int) -> list[str]:
        """Return the client ids of one subscription, slot by slot."""
        start, stop = self.client_offsets[subscription : subscription + 2].tolist()
        return [self.client_ids[code] for code in self.client_id_codes[start:stop].tolist()]


def _nothing_refused() -> Mapping[int, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Slots:
    """One client slot for every queue of a batch.

    Attributes:
        slot: int32[Q], the client's slot inside its subscription, `NO_OWNER` (-1) for none.
        refused: As in `Owners`.
    """

    slot: SlotArray
    refused: Mapping[int, str] = field(default_factory=_nothing_refused)


@dataclass(frozen=True, slots=True)
class Owners:
    """P distinct pairs of a queue and a client that owns it, ordered by subscription, queue and client.

    Attributes:
        subscription_index: int64[P].
        queue_index: int64[P], the queue's slot inside its subscription.
        client_index: int64[P], the client's slot inside its subscription; the first one if its id has several.
        refused: Subscription -> text of the error that one of its clients would throw. The client would then keep
            the queues that it holds (see `rebalance`), and the subscription has no pairs. Subscriptions without
            queues or without clients have no pairs either and are not listed here.
    """

    subscription_index: IntArray
    queue_index: IntArray
    client_index: IntArray
    refused: Mapping[int, str] = field(default_factory=_nothing_refused)


def names(values: Iterable[Any]) -> NameArray:
    """Return an object array of the values, in order."""
    listed = list(values)
    result = np.empty(len(listed), dtype=np.object_)
    result[:] = listed
    return result


def owner_of_each(counts: IntArray) -> IntArray:
    """Return the number of the run that each element is in, for runs of the given lengths laid end to end."""
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts)


def offsets(counts: IntArray) -> IntArray:
    """Return where runs of the given lengths start and end when laid end to end, as int64[runs + 1]."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])


def position_in_run(counts: IntArray) -> IntArray:
    """Return each element's position inside its run, for runs of the given lengths laid end to end."""
    starts = np.cumsum(counts) - counts
    return np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(starts, counts)


def first_slots(batch: SubscriptionBatch) -> SlotArray:
    """Return, for each client slot, the first slot of the same subscription with the same client id, as int32[C]."""
    counts = batch.client_counts()
    slots = position_in_run(counts)
    keys = owner_of_each(counts) * max(1, len(batch.client_ids)) + batch.client_id_codes
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    result: SlotArray = slots[first[inverse]].astype(np.int32)
    return result


def has_shared_ids(batch: SubscriptionBatch) -> bool:
    """Return whether some client id has several slots of one subscription."""
    keys = np.sort(
        owner_of_each(batch.client_counts()) * max(1, len(batch.client_ids)) + batch.client_id_codes
    )
    return bool((keys[1:] == keys[:-1]).any())


def queue_keys(batch: SubscriptionBatch, topic_codes: Mapping[str, int]) -> IntArray:
    """Return a number for each queue that is equal for equal queues, as int64[Q]; see `queue_key`."""
    of_subscription = np.fromiter((topic_codes[topic] for topic in batch.topic), np.int64, len(batch))
    return queue_key(
        np.repeat(of_subscription, batch.queue_counts()),
        batch.broker_name_codes.astype(np.int64),
        batch.queue_id.astype(np.int64),
        len(batch.broker_names),
    )


def topic_numbers(batch: SubscriptionBatch) -> dict[str, int]:
    """Return the distinct topics of a batch, numbered."""
    return {topic: number for number, topic in enumerate(dict.fromkeys(batch.topic))}


def queue_key(topic_code: IntArray, broker_code: IntArray, queue_id: IntArray, broker_count: int) -> IntArray:
    """Pack topic, broker and queue id: the id in the low `QUEUE_ID_BITS`, the names above."""
    return ((topic_code * broker_count + broker_code) << QUEUE_ID_BITS) | (queue_id & 0xFFFFFFFF)


def distinct_queues(batch: SubscriptionBatch) -> tuple[list[MessageQueue], IntArray]:
    """Return the distinct queues of a batch, and for each of its Q queues the position in that list (int64[Q])."""
    keys = queue_keys(batch, topic_numbers(batch))
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    distinct = map(
        MessageQueue,
        names(batch.topic)[owner_of_each(batch.queue_counts())[first]],
        names(batch.broker_names)[batch.broker_name_codes[first]],
        batch.queue_id[first].tolist(),
    )
    return list(distinct), inverse


def expand(starts: IntArray, counts: IntArray) -> IntArray:
    """Return the numbers `start`, `start + 1`, ... of each run, `count` of them, laid end to end."""
    return np.repeat(starts, counts) + position_in_run(counts)


def owners_from_slots(batch: SubscriptionBatch, slots: Slots) -> Owners:
    """Return the pairs behind one slot for every queue."""
    counts = batch.queue_counts()
    owned = np.flatnonzero(slots.slot != NO_OWNER)
    return Owners(
        subscription_index=owner_of_each(counts)[owned],
        queue_index=position_in_run(counts)[owned],
        client_index=slots.slot[owned].astype(np.int64),
        refused=slots.refused,
    )


def owners_from_pairs(
    batch: SubscriptionBatch,
    subscription_index: IntArray,
    queue_index: IntArray,
    client_index: IntArray,
    refused: Mapping[int, str] | None = None,
) -> Owners:
    """Build `Owners` from pairs of a queue and a client slot, in any order: sort them and drop repeats.

    Pairs with a later slot of a duplicated client id are left out: a client asks for its first slot only.
    """
    if len(client_index):
        first = first_slots(batch)[batch.client_offsets[subscription_index] + client_index]
        is_first = first == client_index
        subscription_index, queue_index = subscription_index[is_first], queue_index[is_first]
        client_index = client_index[is_first]
    most_clients = max(1, int(batch.client_counts().max(initial=0)))
    queue_row = batch.queue_offsets[subscription_index] + queue_index
    keys = np.sort(queue_row * most_clients + client_index)
    # Sorted beforehand, because np.unique by itself hashes, which takes ten times as long here.
    keys = keys[np.append(keys[:-1] != keys[1:], True)[: len(keys)]]
    rows, clients = keys // most_clients, keys % most_clients
    counts = batch.queue_counts()
    return Owners(
        subscription_index=owner_of_each(counts)[rows],
        queue_index=position_in_run(counts)[rows],
        client_index=clients,
        refused=MappingProxyType(dict(refused or {})),
    )
