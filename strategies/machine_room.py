"""MACHINE_ROOM: clients share the queues of the configured machine rooms; other queues have no owner.

A broker's room is the prefix of its name, `<room>@<broker>`. Each client takes an equal run of the rooms' queues, and
the queues that remain go to the first clients, one to each. For example, with `consumer_idcs=["r1"]`, the queues 0 to 2
of `r1@b`, the queues 0 and 1 of `r2@b`, and the clients c0 and c1:

    c0: r1@b/0, r1@b/2
    c1: r1@b/1

Source: `AllocateMessageQueueByMachineRoom` (Java: 4.7.1 and earlier, 4.8.0 to 4.9.2, 4.9.3, 4.9.4 and later
differ), `AllocateByMachineRoom` (Go). The C++ client does not have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from rebalance_ledger.rocketmq import java_strings as java
from rebalance_ledger.rocketmq.errors import RocketMQError, null_pointer
from rebalance_ledger.rocketmq.versions import Client, Language
from strategies.batch import (
    NO_OWNER,
    Owners,
    Slots,
    first_slots,
    owner_of_each,
    owners_from_pairs,
    position_in_run,
)
from strategies.guarantees import EVEN_SHARES, Guarantees
from strategies.strategy import SlotStrategy, Strategy, client_position, first_position

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from rebalance_ledger.rocketmq.message_queue import MessageQueue
    from strategies.batch import IntArray, SubscriptionBatch

_DELIMITER: Final = "@"
_PART_COUNT: Final = 2


class _Rooms:
    """The configured rooms, and how often a queue of a broker counts as one of theirs."""

    def __init__(self, client: Client, consumer_idcs: Iterable[str] | None) -> None:
        self._client = client
        self._rooms = None if consumer_idcs is None else list(consumer_idcs)

    def times(self, broker_name: str | None) -> int:
        """Return 1 for a broker in one of the rooms, else 0. A Go client counts a room as often as it is listed.

        Raises:
            RocketMQError: `NullPointerException`, if a Java client reads a null name or a null set.
        """
        if self._client.language is Language.GO:
            parts = (broker_name or "").split(_DELIMITER)
            return (self._rooms or []).count(parts[0]) if len(parts) == _PART_COUNT else 0
        if broker_name is None:
            raise null_pointer("a broker name is null")
        parts = java.split(broker_name, _DELIMITER)
        if len(parts) != _PART_COUNT:
            return 0
        if self._rooms is None:
            raise null_pointer("consumeridcs is null")
        return int(parts[0] in self._rooms)

    def times_of_queues(self, batch: SubscriptionBatch) -> tuple[IntArray, dict[int, str]]:
        """Return `times` of every queue's broker, as int64[Q], and the subscriptions where it throws."""
        times, errors = [], {}
        for code, name in enumerate(batch.broker_names):
            try:
                times.append(self.times(name))
            except RocketMQError as error:
                times.append(0)
                errors[code] = str(error)
        of_queue = np.array([*times, 0], dtype=np.int64)[batch.broker_name_codes]
        throws = np.flatnonzero(np.isin(batch.broker_name_codes, list(errors)))
        subscriptions = owner_of_each(batch.queue_counts())[throws]
        has_clients = batch.client_counts()[subscriptions] > 0
        refused = {
            subscription: errors[code]
            for subscription, code in zip(
                subscriptions[has_clients][::-1].tolist(),
                batch.broker_name_codes[throws][has_clients][::-1].tolist(),
                strict=True,
            )
        }
        of_queue[np.isin(owner_of_each(batch.queue_counts()), list(refused))] = 0
        return of_queue, refused


class MachineRoom(SlotStrategy):
    """The rule of Java 4.8.0 and later: equal runs of the rooms' queues, and the remainder to the first clients.

    Queues of other rooms have no owner.

    Args:
        client: Language and version. 4.8.0 to 4.9.2 check no arguments, 4.9.3 refuses a blank client id.
        consumer_idcs: The rooms to serve. `None` stands for Java's null, which throws as soon as a broker has a room.
    """

    name = "MACHINE_ROOM"
    promise = EVEN_SHARES

    def __init__(self, client: Client, *, consumer_idcs: Iterable[str] | None) -> None:
        self._client = client
        self._rooms = _Rooms(client, consumer_idcs)

    def allocate(
        self,
        consumer_group: str | None,  # noqa: ARG002  not looked at
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,
    ) -> list[MessageQueue]:
        """Return the client's run of the rooms' queues and at most one of the remainder; see `Strategy.allocate`."""
        slot = _slot(self._client, current_cid, mq_all, cid_all)
        if slot is None or cid_all is None:
            return []
        if mq_all is None:
            raise null_pointer("mqAll is null")
        inside = _inside(self._rooms, mq_all)
        share, left_over = divmod(len(inside), len(cid_all))
        run = inside[slot * share : (slot + 1) * share]
        return run + inside[len(cid_all) * share :][slot : slot + 1] if slot < left_over else run

    def covered_queues(self, batch: SubscriptionBatch) -> npt.NDArray[np.bool_]:
        """Return which queues are in the rooms, as bool[Q]."""
        return self._rooms.times_of_queues(batch)[0] > 0

    def raw_slots(self, batch: SubscriptionBatch) -> Slots:
        """Return the owners of the runs and of the remainder; see `SlotStrategy.raw_slots`."""
        times, refused = self._rooms.times_of_queues(batch)
        result = np.full(len(times), NO_OWNER, dtype=np.int32)
        rows = np.flatnonzero(times)
        subscription = owner_of_each(batch.queue_counts())[rows]
        inside_counts = np.bincount(subscription, minlength=len(batch))
        client_counts = batch.client_counts()
        share = inside_counts // np.maximum(client_counts, 1)
        position = position_in_run(inside_counts)
        share_here, clients_here = share[subscription], client_counts[subscription]
        in_runs = position < share_here * clients_here
        slot = np.where(in_runs, position // np.maximum(share_here, 1), position - share_here * clients_here)
        result[rows] = np.where(clients_here > 0, slot, NO_OWNER)
        return Slots(result, refused)


class MachineRoomOfWholeList(Strategy):
    """The rule of Java up to 4.7.1 and of Go: the run length counts the rooms' queues, but runs are cut from the whole list.

    So a client may take queues of rooms that it does not serve, and some queues have two owners or none.
    Java checks no arguments here.
    """

    name = "MACHINE_ROOM"

    def __init__(self, client: Client, *, consumer_idcs: Iterable[str] | None) -> None:
        self._client = client
        self._rooms = _Rooms(client, consumer_idcs)
        # A queue is in at most one run, and in the remainder at most as often as it counts: once in Java.
        is_go = client.language is Language.GO
        self.promise = Guarantees(max_owner_count=None if is_go else 2, max_spread_count=1)

    def allocate(
        self,
        consumer_group: str | None,  # noqa: ARG002  not looked at
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,
    ) -> list[MessageQueue]:
        """Return the client's run of the whole list and at most one queue of its rooms; see `Strategy.allocate`.

        Raises:
            RocketMQError: A Go panic, if rooms that are listed repeatedly count more queues than exist.
        """
        slot = _slot(self._client, current_cid, mq_all, cid_all)
        if slot is None or cid_all is None:
            return []
        if mq_all is None:
            raise null_pointer("mqAll is null")
        inside = _inside(self._rooms, mq_all)
        share, left_over = divmod(len(inside), len(cid_all))
        stop = (slot + 1) * share
        if share and stop > len(mq_all):
            raise _out_of_range(max(slot * share, len(mq_all)), len(mq_all))
        run = list(mq_all[slot * share : stop])
        return [*run, inside[len(cid_all) * share + slot]] if slot < left_over else run

    def covered_queues(self, batch: SubscriptionBatch) -> npt.NDArray[np.bool_]:
        """Return which queues are in the rooms, as bool[Q]; some of these have no owner under this rule."""
        return self._rooms.times_of_queues(batch)[0] > 0

    def allocate_batch(self, batch: SubscriptionBatch) -> Owners:
        """Return the owners of every queue; see `Strategy.allocate_batch`."""
        times, refused = self._rooms.times_of_queues(batch)
        queue_counts, client_counts = batch.queue_counts(), batch.client_counts()
        subscription, position = owner_of_each(queue_counts), position_in_run(queue_counts)
        inside_counts = np.bincount(subscription, weights=times, minlength=len(batch)).astype(np.int64)
        divisor = np.maximum(client_counts, 1)
        share, left_over = inside_counts // divisor, inside_counts % divisor
        refused.update(self._beyond_the_end(batch, share))
        share[list(refused)] = left_over[list(refused)] = 0

        share_here = share[subscription]
        in_runs = np.flatnonzero(position < share_here * client_counts[subscription])
        inside_rows = np.repeat(np.arange(len(times)), times)
        inside_subscription = subscription[inside_rows]
        rest = position_in_run(inside_counts) - (share * client_counts)[inside_subscription]
        is_rest = (rest >= 0) & (rest < left_over[inside_subscription])
        is_rest &= client_counts[inside_subscription] > 0
        rows = np.concatenate([in_runs, inside_rows[is_rest]])
        slots = np.concatenate([position[in_runs] // share_here[in_runs], rest[is_rest]])
        return owners_from_pairs(batch, subscription[rows], position[rows], slots, refused)

    def _beyond_the_end(self, batch: SubscriptionBatch, share: IntArray) -> dict[int, str]:
        """Return the subscriptions in which some client's run ends after the whole list, with the error that is thrown."""
        queue_counts, client_counts = batch.queue_counts(), batch.client_counts()
        subscription, slot = owner_of_each(client_counts), position_in_run(client_counts)
        share_here, length = share[subscription], queue_counts[subscription]
        beyond = np.flatnonzero(
            ((slot + 1) * share_here > length)
            & (share_here > 0)
            & (length > 0)
            & (first_slots(batch) == slot)
        )
        numbers, first = np.unique(subscription[beyond], return_index=True)
        at = beyond[first]
        index = np.maximum(slot[at] * share_here[at], length[at])
        return {
            number: str(_out_of_range(missing, count))
            for number, missing, count in zip(
                numbers.tolist(), index.tolist(), length[at].tolist(), strict=True
            )
        }


def machine_room(client: Client, *, consumer_idcs: Iterable[str] | None) -> Strategy:
    """Return the rule for the client's language and version: `MachineRoom` or `MachineRoomOfWholeList`."""
    if client.language is Language.GO or client.before(4, 8, 0):
        return MachineRoomOfWholeList(client, consumer_idcs=consumer_idcs)
    return MachineRoom(client, consumer_idcs=consumer_idcs)


def _slot(
    client: Client,
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str] | None,
) -> int | None:
    if client.language is Language.GO or not client.before(4, 9, 3):
        is_4_9_3 = client.version == (4, 9, 3)
        return client_position(client, current_cid, mq_all, cid_all, blank_is_empty=is_4_9_3)
    if cid_all is None:
        raise null_pointer("cidAll is null")
    return first_position(current_cid, cid_all)


def _inside(rooms: _Rooms, mq_all: Sequence[MessageQueue]) -> list[MessageQueue]:
    return [queue for queue in mq_all for _ in range(rooms.times(queue.broker_name))]


def _out_of_range(index: int, length: int) -> RocketMQError:
    return RocketMQError("panic", f"runtime error: index out of range [{index}] with length {length}")
