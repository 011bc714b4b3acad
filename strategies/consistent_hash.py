"""CONSISTENT_HASH: clients are virtual nodes on a hash ring; a queue goes to the next node on the ring.

When a client joins or leaves, only the queues next to its nodes change owner. Queue counts per client may differ widely.

Source: `AllocateMessageQueueConsistentHash` and `ConsistentHashRouter` (Java, the same rule from 4.1.0 to
5.5.0; before 5.0.0 strings are hashed in the platform's charset), `AllocateByConsistentHash` over
`stathat.com/c/consistent` 1.0.0 (Go). The C++ client does not have it.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from rebalance_ledger.rocketmq import java_strings as java
from rebalance_ledger.rocketmq.errors import RocketMQError, illegal_argument
from rebalance_ledger.rocketmq.message_queue import queue_text_stem, queue_text_tail
from strategies.batch import (
    NO_OWNER,
    QUEUE_ID_BITS,
    Slots,
    expand,
    names,
    offsets,
    owner_of_each,
    position_in_run,
    queue_keys,
    topic_numbers,
)
from strategies.guarantees import Guarantees
from strategies.md5 import first_words
from strategies.strategy import SlotStrategy, Strategy, client_position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from rebalance_ledger.rocketmq.message_queue import MessageQueue
    from rebalance_ledger.rocketmq.versions import Client
    from strategies.batch import IntArray, NameArray, Owners, SlotArray, SubscriptionBatch

    _Question = tuple[tuple[MessageQueue, ...], tuple[str, ...]]

DEFAULT_VIRTUAL_NODE_COUNT: Final = 10

_HASH_BITS: Final = 32


class ConsistentHash(SlotStrategy):
    """The ring of a Java client: the first node at or after the queue's hash owns the queue.

    Args:
        client: Language and version; `platform_charset` only affects versions before 5.0.0.
        virtual_node_count: Virtual nodes per client; with 0 no queue has an owner.
        hash_function: Maps a string to a number that fits Java's `long`; `None` for RocketMQ's own, the
            first four bytes of the MD5 hash.
        platform_charset: Python's name of the charset in which clients before 5.0.0 encode strings.
            Python's tables of the Chinese charsets differ from Java's in a few characters and the private use area
            (GBK: U+20AC, U+2295, U+2641, U+E000 to U+E864).

    Raises:
        RocketMQError: `IllegalArgumentException` for a negative `virtual_node_count`.
        LookupError: Python does not know the charset.
    """

    name = "CONSISTENT_HASH"

    def __init__(
        self,
        client: Client,
        *,
        virtual_node_count: int = DEFAULT_VIRTUAL_NODE_COUNT,
        hash_function: Callable[[str], int] | None = None,
        platform_charset: str = "utf-8",
    ) -> None:
        if virtual_node_count < 0:
            raise illegal_argument(f"illegal virtualNodeCnt :{virtual_node_count}")
        self._client = client
        self._last_answer: tuple[_Question | None, SlotArray] = None, np.empty(0, dtype=np.int32)
        self._node_count = virtual_node_count
        self._hash_function = hash_function
        self.promise = Guarantees(
            max_owner_count=1,
            min_owner_count=min(1, virtual_node_count),
            is_monotone=True,
            holds_with_duplicate_ids=True,
        )
        self._charset = platform_charset if client.before(5, 0, 0) else "utf-8"
        "".encode(self._charset)

    def allocate(
        self,
        consumer_group: str | None,  # noqa: ARG002  only for RocketMQ's log
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,
    ) -> list[MessageQueue]:
        """Return the queues whose next node on the ring is this client's; see `Strategy.allocate`."""
        slot = client_position(self._client, current_cid, mq_all, cid_all)
        if slot is None or mq_all is None or cid_all is None:
            return []
        owners = self._owners(tuple(mq_all), tuple(cid_all))
        return [mq_all[position] for position in np.flatnonzero(owners == slot).tolist()]

    def _owners(self, queues: tuple[MessageQueue, ...], client_ids: tuple[str, ...]) -> SlotArray:
        """Return the slot that owns each queue; cache the last result for the other clients of the same group and topic."""
        question, owners = self._last_answer
        if question != (queues, client_ids):
            hashes = self._hashes(map(str, queues))
            code_of = {client_id: code for code, client_id in enumerate(dict.fromkeys(client_ids))}
            codes = np.array([code_of[client_id] for client_id in client_ids], dtype=np.int32)
            nodes = self._nodes(names(code_of), codes, np.array([0, len(codes)]))
            ring = np.zeros(len(queues), dtype=np.int64)
            owners = _owners_on_rings(nodes, ring, hashes, 1, self._side)
            self._last_answer = (queues, client_ids), owners
        return owners

    def raw_slots(self, batch: SubscriptionBatch) -> Slots:
        """Return each queue's owner on the ring of its subscription; see `SlotStrategy.raw_slots`.

        Consecutive subscriptions with the same clients share a ring, and each distinct string is hashed once.
        """
        is_new = ~_has_clients_of_predecessor(batch)
        first = np.flatnonzero(is_new)
        counts = batch.client_counts()[first]
        codes = batch.client_id_codes[expand(batch.client_offsets[first], counts)]
        slots = _owners_on_rings(
            self._nodes(names(batch.client_ids), codes, offsets(counts)),
            np.repeat(np.cumsum(is_new) - 1, batch.queue_counts()),
            self._queue_hashes(batch),
            len(first),
            self._side,
        )
        return Slots(slots)

    _side: Literal["left", "right"] = "left"
    """Side of `np.searchsorted` if a queue and a node have the same hash: with `left` that node owns the queue."""

    def _queue_hashes(self, batch: SubscriptionBatch) -> IntArray:
        """Return the hash of each queue's text, as int64[Q]."""
        keys = queue_keys(batch, topic_numbers(batch))
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        # The keys sort by topic and broker, then by id, so queues with the same stem are consecutive.
        stem_keys = keys[first] >> QUEUE_ID_BITS
        is_new = np.append(True, stem_keys[1:] != stem_keys[:-1])[: len(stem_keys)]
        topics = names(batch.topic)[np.searchsorted(batch.queue_offsets, first[is_new], side="right") - 1]
        brokers = names(batch.broker_names)[batch.broker_name_codes[first[is_new]]]
        stems = [queue_text_stem(topic, broker) for topic, broker in zip(topics, brokers, strict=True)]
        queue_ids, tail_codes = np.unique(batch.queue_id[first], return_inverse=True)
        tails = [queue_text_tail(queue_id) for queue_id in queue_ids.tolist()]
        hashes: IntArray = self._joined_hashes(stems, tails, np.cumsum(is_new) - 1, tail_codes)[inverse]
        return hashes

    def _nodes(self, client_ids: NameArray, codes: SlotArray, list_offsets: IntArray) -> _Nodes:
        """Return all nodes of some rings, in the order in which a client adds them.

        Args:
            client_ids: the distinct client ids.
            codes: int32[slots]: the ids of the rings' clients, ring by ring.
            list_offsets: int64[rings + 1]: where the clients of each ring start and end in `codes`.
        """
        counts = np.diff(list_offsets)
        ring, slot = owner_of_each(counts), position_in_run(counts)
        has_shared_ids = np.zeros(len(counts), dtype=bool)
        order = np.lexsort((codes, ring))
        is_duplicate = (ring[order][1:] == ring[order][:-1]) & (codes[order][1:] == codes[order][:-1])
        has_shared_ids[ring[order][1:][is_duplicate]] = True
        plain = np.flatnonzero(~has_shared_ids[ring])
        used, rows = np.unique(codes[plain], return_inverse=True)
        hashes = self._node_hashes(client_ids[used])
        node_lists = [
            _Nodes(
                ring=np.repeat(ring[plain], self._node_count),
                hash=hashes[rows].ravel(),
                slot=np.repeat(slot[plain].astype(np.int32), self._node_count),
            )
        ]
        for number in np.flatnonzero(has_shared_ids).tolist():
            start, stop = list_offsets[number : number + 2].tolist()
            node_lists.append(self._nodes_with_duplicate_ids(number, client_ids[codes[start:stop]].tolist()))
        return _Nodes(
            ring=np.concatenate([nodes.ring for nodes in node_lists]),
            hash=np.concatenate([nodes.hash for nodes in node_lists]),
            slot=np.concatenate([nodes.slot for nodes in node_lists]),
        )

    def _node_hashes(self, client_ids: NameArray) -> IntArray:
        """Return the hashes of the nodes of clients with distinct ids, as int64[clients, virtual nodes]."""
        replicas = [self._node_text("", replica) for replica in range(self._node_count)]
        hashes = self._joined_hashes(
            client_ids.tolist(),
            replicas,
            np.repeat(np.arange(len(client_ids)), self._node_count),
            np.tile(np.arange(self._node_count), len(client_ids)),
        )
        return hashes.reshape(len(client_ids), self._node_count)

    def _joined_hashes(
        self, stems: Sequence[str], tails: Sequence[str], stem_codes: IntArray, tail_codes: IntArray
    ) -> IntArray:
        """Return the hashes of texts that consist of a stem and a tail, as int64[N]; see `md5.first_words`."""
        if self._hash_function is None and self._charset == "utf-8":
            # A tail is ASCII, so in UTF-8 the two halves are encoded as the whole would be.
            return first_words(
                [java.encode(stem) for stem in stems],
                [tail.encode() for tail in tails],
                stem_codes,
                tail_codes,
            )
        pairs = zip(stem_codes.tolist(), tail_codes.tolist(), strict=True)
        return self._hashes(stems[stem] + tails[tail] for stem, tail in pairs)

    def _nodes_with_duplicate_ids(self, ring: int, client_ids: Sequence[str]) -> _Nodes:
        """Return the nodes of one client list with duplicate ids: the replicas of a duplicate continue the numbering.

        The next replica number is the count of the id's nodes on the ring, so overwritten nodes do not count.
        """
        first_slot = {client_id: slot for slot, client_id in reversed(list(enumerate(client_ids)))}
        slot_at: dict[int, int] = {}
        replica_count = dict.fromkeys(client_ids, 0)
        for client_id in client_ids:
            first_replica = replica_count[client_id]
            texts = (
                self._node_text(client_id, first_replica + replica) for replica in range(self._node_count)
            )
            for node_hash in self._hashes(texts).tolist():
                overwritten = slot_at.get(node_hash)
                if overwritten is not None:
                    replica_count[client_ids[overwritten]] -= 1
                slot_at[node_hash] = first_slot[client_id]
                replica_count[client_id] += 1
        return _Nodes(
            ring=np.full(len(slot_at), ring, dtype=np.int64),
            hash=np.fromiter(slot_at.keys(), np.int64, len(slot_at)),
            slot=np.fromiter(slot_at.values(), np.int32, len(slot_at)),
        )

    def _node_text(self, client_id: str, replica: int) -> str:
        return f"{client_id}-{replica}"

    def _hashes(self, texts: Iterable[str]) -> IntArray:
        """Return the hash of each text, in order, as int64."""
        if self._hash_function is not None:
            function = self._hash_function
            return np.array([java.to_long(function(text)) for text in texts], dtype=np.int64)
        return ring_hashes(texts, self._charset)


class GoConsistentHash(ConsistentHash):
    """The ring of a Go client: hashes are CRC-32 of `<replica><client id>`, and the node *after* the queue's hash owns it.

    A duplicate client id adds the same nodes again. Without virtual nodes the Go library divides by zero.
    """

    _side = "right"

    def __init__(self, client: Client, *, virtual_node_count: int = DEFAULT_VIRTUAL_NODE_COUNT) -> None:
        super().__init__(client, virtual_node_count=max(0, virtual_node_count))
        self._divides_by_zero = virtual_node_count == 0

    def allocate(
        self,
        consumer_group: str | None,
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,
    ) -> list[MessageQueue]:
        """See `ConsistentHash`.

        Raises:
            RocketMQError: A Go panic, if the ring has no virtual nodes.
        """
        if self._divides_by_zero and client_position(self._client, current_cid, mq_all, cid_all) is not None:
            raise RocketMQError("panic", "runtime error: integer divide by zero")
        return super().allocate(consumer_group, current_cid, mq_all, cid_all)

    def allocate_batch(self, batch: SubscriptionBatch) -> Owners:
        """See `Strategy.allocate_batch`."""
        return (
            Strategy.allocate_batch(self, batch) if self._divides_by_zero else super().allocate_batch(batch)
        )

    def _node_hashes(self, client_ids: NameArray) -> IntArray:
        texts = (
            self._node_text(client_id, replica)
            for client_id in client_ids
            for replica in range(self._node_count)
        )
        return self._hashes(texts).reshape(len(client_ids), self._node_count)

    def _joined_hashes(
        self, stems: Sequence[str], tails: Sequence[str], stem_codes: IntArray, tail_codes: IntArray
    ) -> IntArray:
        pairs = zip(stem_codes.tolist(), tail_codes.tolist(), strict=True)
        return self._hashes(stems[stem] + tails[tail] for stem, tail in pairs)

    def _nodes_with_duplicate_ids(self, ring: int, client_ids: Sequence[str]) -> _Nodes:
        hashes = self._hashes(
            self._node_text(client_id, replica)
            for client_id in client_ids
            for replica in range(self._node_count)
        )
        first_slot = {client_id: slot for slot, client_id in reversed(list(enumerate(client_ids)))}
        first = np.array([first_slot[client_id] for client_id in client_ids], dtype=np.int32)
        return _Nodes(
            ring=np.full(len(hashes), ring, dtype=np.int64),
            hash=hashes,
            slot=np.repeat(first, self._node_count),
        )

    def _node_text(self, client_id: str, replica: int) -> str:
        return f"{replica}{client_id}"

    def _hashes(self, texts: Iterable[str]) -> IntArray:
        return np.array([zlib.crc32(java.byte_order_key(text)) for text in texts], dtype=np.int64)


def ring_hashes(texts: Iterable[str], charset: str = "utf-8") -> IntArray:
    """Return RocketMQ's own ring hash of each text, as int64: the first four bytes of its MD5 hash, unsigned.

    Source: `ConsistentHashRouter.MD5Hash`.
    """
    md5, encode = hashlib.md5, java.encode
    digests = [md5(encode(text, charset), usedforsecurity=False).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype=">u4")[::4].astype(np.int64)


def _has_clients_of_predecessor(batch: SubscriptionBatch) -> npt.NDArray[np.bool_]:
    """Return whether each subscription has the same clients, slot by slot, as the previous one, as bool[S]."""
    counts = batch.client_counts()
    is_as_long = np.append(False, counts[1:] == counts[:-1])[: len(counts)]
    subscription, slot = owner_of_each(counts), position_in_run(counts)
    # The same slot of the previous subscription; any slot if there is none, because lengths are compared too.
    before = np.maximum(batch.client_offsets[np.maximum(subscription - 1, 0)] + slot, 0)
    before = np.minimum(before, np.arange(len(subscription)))
    is_other = batch.client_id_codes[before] != batch.client_id_codes
    result: npt.NDArray[np.bool_] = is_as_long & (
        np.bincount(subscription[is_other], minlength=len(counts)) == 0
    )
    return result


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Nodes of many rings, in insertion order; a later node replaces one with the same hash."""

    ring: IntArray
    hash: IntArray
    slot: SlotArray


def _owners_on_rings(
    nodes: _Nodes,
    queue_ring: IntArray,
    queue_hash: IntArray,
    ring_count: int,
    side: Literal["left", "right"],
) -> SlotArray:
    """Return the slot that owns each queue on its ring, as int32; `NO_OWNER` on an empty ring.

    All rings are one sorted array of (ring, hash), so that one binary search finds the owners of all queues.
    """
    node_hash = nodes.hash
    if min(node_hash.min(initial=0), queue_hash.min(initial=0)) < 0 or (
        max(node_hash.max(initial=0), queue_hash.max(initial=0)) >> _HASH_BITS
    ):
        # A custom hash may be any long. Its rank has the same order and fits into the key beside the ring's number.
        _, ranks = np.unique(np.concatenate([node_hash, queue_hash]), return_inverse=True)
        node_hash, queue_hash = ranks[: len(node_hash)], ranks[len(node_hash) :]
    keys = nodes.ring << _HASH_BITS | node_hash
    order = np.argsort(keys, kind="stable")
    keys, slots = keys[order], nodes.slot[order]
    is_last_put = np.append(keys[1:] != keys[:-1], True) if len(keys) else np.empty(0, dtype=bool)
    keys, slots = keys[is_last_put], slots[is_last_put]

    ring_starts = np.searchsorted(keys, np.arange(ring_count + 1, dtype=np.int64) << _HASH_BITS)
    positions = np.searchsorted(keys, queue_ring << _HASH_BITS | queue_hash, side=side)
    start, stop = ring_starts[queue_ring], ring_starts[queue_ring + 1]
    positions = np.where(positions == stop, start, positions)
    result = np.full(len(queue_ring), NO_OWNER, dtype=np.int32)
    on_a_ring = start < stop
    result[on_a_ring] = slots[positions[on_a_ring]]
    return result
