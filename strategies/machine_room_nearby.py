"""MACHINE_ROOM_NEARBY: the clients of a machine room share its queues by an inner strategy.

The queues of a room without clients are shared by all clients.

Source: `AllocateMachineRoomNearby` (Java, the same from 4.1.0 to 5.5.0). The Go client's
`AllocateByMachineNearby` is AVG under another name. The C++ client does not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from rebalance_ledger.rocketmq import java_strings as java
from rebalance_ledger.rocketmq.errors import RocketMQError, illegal_argument, null_pointer
from rebalance_ledger.rocketmq.message_queue import MessageQueue
from strategies.averagely import Average
from strategies.batch import (
    NO_OWNER,
    Owners,
    Slots,
    SubscriptionBatch,
    distinct_queues,
    expand,
    names,
    offsets,
    owner_of_each,
    owners_from_pairs,
    position_in_run,
)
from strategies.strategy import SlotStrategy, Strategy, client_position

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from rebalance_ledger.rocketmq.versions import Client
    from strategies.batch import IntArray

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RoomPart:
    """A room that is one part of a name, for example the part before `@` in `room1@broker-a`.

    Attributes:
        delimiter: Separates the parts, as in Java's `String.split`.
        part: Index of the part that is the room, from 0. A name without that part has no room.
    """

    delimiter: str
    part: int = 0

    def __call__(self, name: str | None) -> str | None:
        """Return the room in a broker's name or a client id."""
        parts = [] if name is None else java.split(name, self.delimiter)
        return parts[self.part] if self.part < len(parts) else None


@dataclass(frozen=True, slots=True)
class RoomOfName:
    """A function from a name to a room. It is called once per broker name, not once per queue.

    Attributes:
        rule: Maps a broker name or a client id to its room; `None` for none.
    """

    rule: Callable[[str], str | None]

    def __call__(self, name: str | None) -> str | None:
        """Return the room in a broker's name or a client id."""
        return None if name is None else self.rule(name)


Names = Mapping[str, str | None] | RoomPart | RoomOfName
"""The room of each name: by a map, by a part of the name, or by a function."""

BrokerRoom = Callable[[MessageQueue], str | None] | Names
"""The room of a queue's broker: a function of the queue, or a rule for broker names."""

ConsumerRoom = Callable[[str], str | None] | Names
"""The room of a client: a function of the client id, or a rule for client ids."""


class MachineRoomNearby(Strategy):
    """A room's clients share its queues; all clients share the queues of a room without clients.

    Args:
        client: Language and version.
        inner: The strategy inside a room.
        broker_room: See `BrokerRoom`. A name that is missing in a map has no room. A function is called once per
            distinct queue; the other three once per broker name.
        consumer_room: See `ConsumerRoom`.

    Raises:
        RocketMQError: `NullPointerException` for a null strategy or resolver, as the Java constructor.
    """

    def __init__(
        self,
        client: Client,
        *,
        inner: Strategy | None,
        broker_room: BrokerRoom | None,
        consumer_room: ConsumerRoom | None,
    ) -> None:
        if inner is None:
            raise null_pointer("allocateMessageQueueStrategy is null")
        if broker_room is None or consumer_room is None:
            raise null_pointer("machineRoomResolver is null")
        self._client = client
        self._inner = inner
        self._of_broker_name: Callable[[str], str | None] | None = None
        if isinstance(broker_room, Mapping):
            self._of_broker_name = broker_room.get
        elif isinstance(broker_room, (RoomPart, RoomOfName)):
            self._of_broker_name = broker_room
        else:
            self._of_queue = broker_room
        self._of_client = consumer_room.get if isinstance(consumer_room, Mapping) else consumer_room
        self.only_given_queues = inner.only_given_queues
        # Rooms differ in size, so the inner strategy's bounds on shares do not hold across rooms.
        if inner.only_given_queues:
            self.promise = replace(inner.promise, max_spread_count=None, max_load_factor=None)

    @property
    def name(self) -> str:
        """The strategy's own name, followed by the inner strategy's name."""
        return f"MACHINE_ROOM_NEARBY-{self._inner.name}"

    def allocate(
        self,
        consumer_group: str | None,
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,
    ) -> list[MessageQueue]:
        """Return the client's queues of its own room, then those of the rooms without clients.

        Raises:
            RocketMQError: Also `IllegalArgumentException` for a queue or client without a room.
        """
        if client_position(self._client, current_cid, mq_all, cid_all) is None or not mq_all or not cid_all:
            return []
        queues_of: dict[str, list[MessageQueue]] = {}
        for queue in mq_all:
            room = self._room_of_queue(queue)
            if not room:
                raise illegal_argument(f"Machine room is null for mq {queue}")
            queues_of.setdefault(room, []).append(queue)
        clients_of: dict[str, list[str]] = {}
        for client_id in cid_all:
            room = self._of_client(client_id)
            if not room:
                raise illegal_argument(f"Machine room is null for consumer id {client_id}")
            clients_of.setdefault(room, []).append(client_id)

        own_room = next(room for room, client_ids in clients_of.items() if current_cid in client_ids)
        result = []
        for room in [own_room, *sorted(queues_of.keys() - clients_of.keys(), key=java.order_key)]:
            if room in queues_of:
                members = clients_of.get(room, cid_all)
                taken = self._inner.allocate(consumer_group, current_cid, queues_of[room], members)
                if taken is None:
                    raise null_pointer("the inner strategy returned null")
                result.extend(taken)
        return result

    def allocate_batch(self, batch: SubscriptionBatch) -> Owners:
        """Return the inner strategy's batch over one sub-batch for each room; see `Strategy.allocate_batch`."""
        if not self.only_given_queues:
            # Such a strategy answers each room with queues of others, and cannot be composed room by room.
            return super().allocate_batch(batch)
        by_room = self._by_room(batch)
        inner = self._inner.allocate_batch(by_room.batch)
        refused = by_room.refused_with(inner.refused)
        queue_rows = by_room.queue_rows[
            by_room.batch.queue_offsets[inner.subscription_index] + inner.queue_index
        ]
        client_rows = by_room.client_rows[
            by_room.batch.client_offsets[inner.subscription_index] + inner.client_index
        ]
        subscription = by_room.subscription[inner.subscription_index]
        kept = ~np.isin(subscription, list(refused))
        return owners_from_pairs(
            batch,
            subscription[kept],
            position_in_run(batch.queue_counts())[queue_rows[kept]],
            position_in_run(batch.client_counts())[client_rows[kept]],
            refused,
        )

    def _by_room(self, batch: SubscriptionBatch) -> _ByRoom:
        """Cut every subscription into one for each room: the room's queues with the clients that share them."""
        queue_counts, client_counts = batch.queue_counts(), batch.client_counts()
        rooms: dict[str, int] = {}
        queue_rooms = self._queue_rooms(batch, rooms)
        client_rooms = _numbers(self._of_client, batch.client_ids, rooms)[batch.client_id_codes]
        asked = (queue_counts > 0) & (client_counts > 0)
        refused = self._refused(batch, asked, queue_rooms, client_rooms)
        asked[list(refused)] = False

        # A room of a subscription is one number, so that sorting by it lays room beside room.
        room_count = max(1, len(rooms))
        queue_rows = np.flatnonzero(np.repeat(asked, queue_counts))
        queue_places = (owner_of_each(queue_counts) * room_count + queue_rooms)[queue_rows]
        queue_rows, places, queues_here = _group(queue_rows, queue_places)
        # A client without a room has no number, and its subscription is refused.
        slots = np.flatnonzero(np.repeat(asked, client_counts))
        client_places = (owner_of_each(client_counts) * room_count + client_rooms)[slots]
        in_rooms, served, clients_here = _group(slots, client_places)
        served_start = offsets(clients_here)

        at = np.searchsorted(served, places)
        is_served = np.append(served, -1)[at] == places
        subscription = places // room_count
        # The clients of a room stand in `in_rooms`; behind it, all clients of a subscription as they are.
        start = np.where(is_served, served_start[at], len(in_rooms) + batch.client_offsets[subscription])
        count = np.where(is_served, np.append(clients_here, 0)[at], client_counts[subscription])
        every_slot = np.arange(len(batch.client_id_codes))
        client_rows = np.concatenate([in_rooms, every_slot])[expand(start, count)]
        return _ByRoom(
            batch=SubscriptionBatch(
                queue_offsets=offsets(queues_here),
                client_offsets=offsets(count),
                topic=names(batch.topic)[subscription],
                broker_name_codes=batch.broker_name_codes[queue_rows],
                broker_names=batch.broker_names,
                queue_id=batch.queue_id[queue_rows],
                client_id_codes=batch.client_id_codes[client_rows],
                client_ids=batch.client_ids,
            ),
            subscription=subscription,
            queue_rows=queue_rows,
            client_rows=client_rows,
            refused=refused,
        )

    def covered_queues(self, batch: SubscriptionBatch) -> npt.NDArray[np.bool_]:
        """Return which queues the inner strategy covers, as bool[Q]."""
        return self._inner.covered_queues(batch)

    def _room_of_queue(self, queue: MessageQueue) -> str | None:
        if self._of_broker_name is None:
            return self._of_queue(queue)
        return None if queue.broker_name is None else self._of_broker_name(queue.broker_name)

    def _queue_rooms(self, batch: SubscriptionBatch, rooms: dict[str, int]) -> IntArray:
        """Return the number of each queue's room, as int64[Q]; `_NO_ROOM` where there is none."""
        if self._of_broker_name is not None:
            return _numbers(self._of_broker_name, batch.broker_names, rooms)[batch.broker_name_codes]
        distinct, position = distinct_queues(batch)
        result: IntArray = _numbers(self._of_queue, distinct, rooms)[position]
        return result

    def _refused(
        self,
        batch: SubscriptionBatch,
        asked: npt.NDArray[np.bool_],
        queue_rooms: IntArray,
        client_rooms: IntArray,
    ) -> dict[int, str]:
        """Return the subscriptions with a queue or a client that has no room, and what `allocate` throws there."""
        homeless = np.zeros(len(batch), dtype=bool)
        homeless[owner_of_each(batch.queue_counts())[queue_rooms == _NO_ROOM]] = True
        homeless[owner_of_each(batch.client_counts())[client_rooms == _NO_ROOM]] = True
        refused = {}
        for number in np.flatnonzero(homeless & asked).tolist():
            client_ids = batch.clients_of(number)
            try:
                self.allocate(None, client_ids[0], batch.queues_of(number), client_ids)
            except RocketMQError as error:
                refused[number] = str(error)
        return refused


class MachineRoomNearbyOfSlots(MachineRoomNearby, SlotStrategy):
    """The same over an inner strategy with at most one owner for each queue, which then holds here too."""

    def __init__(
        self,
        client: Client,
        *,
        inner: SlotStrategy,
        broker_room: BrokerRoom | None,
        consumer_room: ConsumerRoom | None,
    ) -> None:
        super().__init__(client, inner=inner, broker_room=broker_room, consumer_room=consumer_room)
        self._inner_slots = inner

    def raw_slots(self, batch: SubscriptionBatch) -> Slots:
        """Return the inner strategy's slots, room by room; see `SlotStrategy.raw_slots`."""
        by_room = self._by_room(batch)
        inner = self._inner_slots.slots(by_room.batch)
        owned = np.flatnonzero(inner.slot != NO_OWNER)
        starts = np.repeat(by_room.batch.client_offsets[:-1], by_room.batch.queue_counts())
        client_rows = by_room.client_rows[starts[owned] + inner.slot[owned]]
        result = np.full(len(batch.queue_id), NO_OWNER, dtype=np.int32)
        result[by_room.queue_rows[owned]] = position_in_run(batch.client_counts())[client_rows]
        refused = by_room.refused_with(inner.refused)
        result[np.isin(owner_of_each(batch.queue_counts()), list(refused))] = NO_OWNER
        return Slots(result, refused)

    def allocate_batch(self, batch: SubscriptionBatch) -> Owners:
        """Return the owners of every queue; see `Strategy.allocate_batch`."""
        return SlotStrategy.allocate_batch(self, batch)


def machine_room_nearby(
    client: Client,
    *,
    inner: Strategy | None,
    broker_room: BrokerRoom | None,
    consumer_room: ConsumerRoom | None,
) -> MachineRoomNearby:
    """Return the rule over this inner strategy; see `MachineRoomNearby` for the arguments and errors."""
    if isinstance(inner, SlotStrategy):
        return MachineRoomNearbyOfSlots(
            client, inner=inner, broker_room=broker_room, consumer_room=consumer_room
        )
    return MachineRoomNearby(client, inner=inner, broker_room=broker_room, consumer_room=consumer_room)


class GoMachineNearby(Average):
    """What the Go client offers under this name: AVG, whatever the rooms are."""

    name = "MACHINE_ROOM_NEARBY"

    def __init__(self, client: Client, **_ignored: object) -> None:
        super().__init__(client)


_NO_ROOM: Final = -1


@dataclass(frozen=True, slots=True)
class _ByRoom:
    """Subscriptions cut into rooms.

    Attributes:
        batch: One subscription for every room of every subscription that is not refused.
        subscription: int64, the subscription that each of them is a part of.
        queue_rows: int64, the row in the whole batch of each queue here.
        client_rows: int64, the row in the whole batch of each client slot here.
        refused: The subscriptions that are refused as a whole, and why.
    """

    batch: SubscriptionBatch
    subscription: IntArray
    queue_rows: IntArray
    client_rows: IntArray
    refused: dict[int, str]

    def refused_with(self, inner: Mapping[int, str]) -> dict[int, str]:
        """Return all refused subscriptions, given the rooms that the inner strategy refused."""
        of_rooms: dict[int, str] = {}
        for room, text in sorted(inner.items()):
            of_rooms.setdefault(int(self.subscription[room]), text)
        return {**of_rooms, **self.refused}


def _group(rows: IntArray, places: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the rows sorted by place, otherwise in order; the distinct places; and the number of rows in each."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else ordered
    return rows[order], ordered[starts], np.diff(np.append(starts, len(ordered)))


def _numbers(resolve: Callable[[T], str | None], values: Iterable[T], rooms: dict[str, int]) -> IntArray:
    """Return the number of every value's room, as int64, `_NO_ROOM` for none; add new rooms to `rooms`.

    A resolver that throws RocketMQ's own kind of error has no room to give; `_refused` asks it again.
    """
    numbers = []
    for value in values:
        try:
            room = resolve(value)
        except RocketMQError:
            room = None
        numbers.append(rooms.setdefault(room, len(rooms)) if room else _NO_ROOM)
    # One more, so that an array of codes works as an index even when there are no values.
    return np.array([*numbers, _NO_ROOM], dtype=np.int64)
