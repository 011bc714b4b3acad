"""CONFIG: each client takes the queues of its own configured list, regardless of the other clients.

Source: `AllocateMessageQueueByConfig` (Java, the same from 4.1.0 to 5.5.0), `AllocateByConfig` (Go).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rebalance_ledger.rocketmq.message_queue import MessageQueue
from strategies.batch import (
    expand,
    offsets,
    owner_of_each,
    owners_from_pairs,
    position_in_run,
    queue_key,
    queue_keys,
    topic_numbers,
)
from strategies.strategy import Strategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from rebalance_ledger.rocketmq.versions import Client
    from strategies.batch import IntArray, Owners, SubscriptionBatch


class Config(Strategy):
    """The configured list as it is: it may be null, contain duplicates, or name queues that do not exist.

    Arguments are not checked, and two clients may list the same queue. `allocate_batch` assumes that all
    clients of a group have the same list; see `ConfigByClient` for different lists.
    """

    name = "CONFIG"
    only_given_queues = False

    def __init__(self, client: Client, *, message_queues: Iterable[MessageQueue] | None) -> None:
        self._client = client
        self._queues = None if message_queues is None else list(message_queues)

    def allocate(
        self,
        consumer_group: str | None,  # noqa: ARG002  not looked at
        current_cid: str | None,  # noqa: ARG002  not looked at
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,  # noqa: ARG002  not looked at
    ) -> list[MessageQueue] | None:
        """Return the configured list, `None` if it is null; see `Strategy.allocate`."""
        if self._queues is None:
            return None
        given = {queue: queue for queue in mq_all or ()}
        return [given.get(queue, queue) for queue in self._queues]

    def allocate_batch(self, batch: SubscriptionBatch) -> Owners:
        """Return each configured queue of the topic with each client; see `Strategy.allocate_batch`."""
        topics = topic_numbers(batch)
        brokers = {name: code for code, name in enumerate(batch.broker_names)}
        wanted = [
            (topics[queue.topic], brokers[queue.broker_name], queue.queue_id)
            for queue in self._queues or ()
            if queue.topic in topics and queue.broker_name in brokers
        ]
        columns = np.array(wanted, dtype=np.int64).reshape(-1, 3).T
        configured = queue_key(columns[0], columns[1], columns[2], len(brokers))
        rows = np.flatnonzero(np.isin(queue_keys(batch, topics), configured))
        counts = batch.queue_counts()
        subscription = owner_of_each(counts)[rows]
        clients = batch.client_counts()[subscription]
        return owners_from_pairs(
            batch,
            np.repeat(subscription, clients),
            np.repeat(position_in_run(counts)[rows], clients),
            expand(np.zeros(len(clients), dtype=np.int64), clients),
        )


class ListedQueues(Protocol):
    """An entry of a configured list: queues of one topic on one broker."""

    @property
    def topic(self) -> str:
        """The topic."""

    @property
    def broker_name(self) -> str:
        """The broker."""

    @property
    def queue_ids(self) -> Sequence[int]:
        """The queue ids on that broker."""


class ConfigByClient(Strategy):
    """CONFIG for a group in which each client has its own list.

    Args:
        lists: Client id -> its list. A client that is missing has no list.
    """

    name = "CONFIG"
    only_given_queues = False

    def __init__(self, lists: Mapping[str, Sequence[ListedQueues]]) -> None:
        self._clients = {client_id: code for code, client_id in enumerate(lists)}
        parts = [part for listed in lists.values() for part in listed]
        part_counts = np.fromiter(map(len, lists.values()), np.int64, len(lists))
        self._topics, self._topic = _coded([part.topic for part in parts])
        self._brokers, self._broker = _coded([part.broker_name for part in parts])
        queue_ids = [part.queue_ids for part in parts]
        self._id_offsets = offsets(np.fromiter(map(len, queue_ids), np.int64, len(parts)))
        self._queue_ids = np.fromiter(chain.from_iterable(queue_ids), np.int32, self._id_offsets[-1])
        self._part_offsets = offsets(part_counts)
        # Sorted by client and topic, so that a client's entries for one topic are consecutive.
        keys = owner_of_each(part_counts) * max(1, len(self._topics)) + self._topic
        self._by_key = np.argsort(keys, kind="stable")
        self._keys = keys[self._by_key]

    def allocate(
        self,
        consumer_group: str | None,  # noqa: ARG002  only for RocketMQ's log
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,  # noqa: ARG002  not looked at
    ) -> list[MessageQueue] | None:
        """Return the client's own list, `None` for a client without one; see `Strategy.allocate`."""
        if current_cid not in self._clients:
            return None
        given = {queue: queue for queue in mq_all or ()}
        topics, brokers = list(self._topics), list(self._brokers)
        listed = [
            MessageQueue(topics[self._topic[part]], brokers[self._broker[part]], queue_id)
            for part in self._parts_of(current_cid)
            for queue_id in self._ids_of(part)
        ]
        return [given.get(queue, queue) for queue in listed]

    def queues_without_route(self, batch: SubscriptionBatch) -> Iterator[tuple[int, int, str, int]]:
        """Yield the listed queues of a subscription's topic that are not in the subscription; clients take these too.

        Yields:
            Subscription, first slot of the client, broker name, queue id; each once.
        """
        brokers = list(self._brokers)
        for subscription in range(len(batch)):
            topic = self._topics.get(batch.topic[subscription] or "", -1)
            client_ids = batch.clients_of(subscription)
            if topic < 0 or not client_ids or batch.queue_counts()[subscription] == 0:
                continue
            routed = {(queue.broker_name, queue.queue_id) for queue in batch.queues_of(subscription)}
            for client_id in dict.fromkeys(client_ids):
                listed = dict.fromkeys(
                    (brokers[self._broker[part]], queue_id)
                    for part in self._parts_of(client_id)
                    if self._topic[part] == topic
                    for queue_id in self._ids_of(part)
                )
                for broker_name, queue_id in listed:
                    if (broker_name, queue_id) not in routed:
                        yield subscription, client_ids.index(client_id), broker_name, queue_id

    def _parts_of(self, client_id: str) -> range:
        client = self._clients.get(client_id)
        return range(0) if client is None else range(*self._part_offsets[client : client + 2].tolist())

    def _ids_of(self, part: int) -> list[int]:
        ids: list[int] = self._queue_ids[self._id_offsets[part] : self._id_offsets[part + 1]].tolist()
        return ids

    def covered_queues(self, batch: SubscriptionBatch) -> npt.NDArray[np.bool_]:
        """Return False for every queue, as bool[Q]: a list guarantees no queue an owner."""
        return np.zeros(len(batch.queue_id), dtype=np.bool_)

    def allocate_batch(self, batch: SubscriptionBatch) -> Owners:
        """Return the queues of each client's list that exist in its topics; see `Strategy.allocate_batch`."""
        counts = batch.client_counts()
        subscription, slot = owner_of_each(counts), position_in_run(counts)
        client = _codes_in(self._clients, batch.client_ids)[batch.client_id_codes]
        topic = _codes_in(self._topics, batch.topic)[subscription]
        asks = np.flatnonzero((client >= 0) & (topic >= 0))

        wanted = client[asks] * max(1, len(self._topics)) + topic[asks]
        start = np.searchsorted(self._keys, wanted, side="left")
        part_counts = np.searchsorted(self._keys, wanted, side="right") - start
        parts = self._by_key[expand(start, part_counts)]
        id_counts = np.diff(self._id_offsets)[parts]
        queue_id = self._queue_ids[expand(self._id_offsets[parts], id_counts)].astype(np.int64)
        brokers = {name: code for code, name in enumerate(batch.broker_names)}
        broker = np.repeat(_codes_in(brokers, self._brokers)[self._broker[parts]], id_counts)
        asking = np.repeat(np.repeat(asks, part_counts), id_counts)

        found = _queue_rows(batch, subscription[asking], broker, queue_id)
        asking, found = asking[found >= 0], found[found >= 0]
        return owners_from_pairs(
            batch, subscription[asking], position_in_run(batch.queue_counts())[found], slot[asking]
        )


def _queue_rows(
    batch: SubscriptionBatch, subscription: IntArray, broker: IntArray, queue_id: IntArray
) -> IntArray:
    """Return the row of each queue among all queues of a batch, as int64[N]; -1 if its subscription does not have it.

    A queue is identified within its subscription by its broker (a code, -1 for a broker that is not in the batch)
    and its id.
    """
    broker_count = len(batch.broker_names)
    of_batch = batch.broker_name_codes.astype(np.int64), batch.queue_id.astype(np.int64)
    there = queue_key(owner_of_each(batch.queue_counts()), *of_batch, broker_count)
    wanted = np.where(broker >= 0, queue_key(subscription, broker, queue_id, broker_count), -1)
    order = np.argsort(there, kind="stable")
    rows, keys = np.append(order, -1), np.append(there[order], -2)
    at = np.searchsorted(keys[:-1], wanted)
    result: IntArray = np.where(keys[at] == wanted, rows[at], -1)
    return result


def _coded(names: Sequence[str]) -> tuple[dict[str, int], npt.NDArray[np.int32]]:
    """Return the distinct names with a number each, and every name's number."""
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return codes, np.fromiter(map(codes.__getitem__, names), np.int32, len(names))


def _codes_in(codes: Mapping[str, int], names: Iterable[str]) -> IntArray:
    """Return the code of each name, as int64; -1 for a name without one."""
    return np.array([codes.get(name, -1) for name in names], dtype=np.int64)
