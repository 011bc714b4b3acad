"""Queue selection by producers: round robin, retries that avoid a broker, latency faults, and the hash selector.

Belongs here: the choice of a queue from a publish list (see `rocketmq.routes`), and the resulting share of traffic.
Does not belong here: measuring latency, clocks and random numbers; start indices and the state of brokers are
arguments.

Source: `TopicPublishInfo`, `ThreadLocalIndex`, `MQFaultStrategy`, `SelectMessageQueueByHash`; differences between
releases were read from the jars of 4.7.1 to 5.5.0.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from rebalance_ledger.rocketmq import java_strings as java
from rebalance_ledger.rocketmq.errors import RocketMQError, null_pointer
from rebalance_ledger.rocketmq.message_queue import MessageQueue
from rebalance_ledger.rocketmq.versions import DEFAULT_VERSION, Client
from strategies.batch import owner_of_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    IntArray = npt.NDArray[np.int64]
    FloatArray = npt.NDArray[np.float64]

_LATENCY_MS: Final = (50, 100, 550, 1800, 3000, 5000, 15000)
_ISOLATION_MS: Final = (0, 0, 2000, 5000, 6000, 10000, 30000)
_LATENCY_OF_FAILURE_MS: Final = 10_000

_OLD_LATENCY_MS: Final = (50, 100, 550, 1000, 2000, 3000, 15000)
_OLD_ISOLATION_MS: Final = (0, 0, 30_000, 60_000, 120_000, 180_000, 600_000)
_OLD_LATENCY_OF_FAILURE_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class BrokerFaults:
    """State of the brokers, according to a producer's latency fault tolerance, at the time of a choice.

    Attributes:
        unavailable: Brokers that were slow or failed, and are still avoided.
        unreachable: Brokers that cannot be reached at all (5.1.4 and later).
        least_bad: Before 5.1.4, the broker that `pickOneAtLeast` would return if none is available.
        write_queue_nums: Before 5.1.4, each broker's number of writable queues in the route.
    """

    unavailable: frozenset[str] = frozenset()
    unreachable: frozenset[str] = frozenset()
    least_bad: str | None = None
    write_queue_nums: Mapping[str, int] = field(default_factory=dict)


class QueueSelector:
    """The round robin of one producer thread over one topic's publish list.

    Args:
        queues: The publish list.
        start: The thread's index before the first choice, a random 32-bit number in Java.
        client_version: A RocketMQ release number.

    Attributes:
        queues: The publish list. Before 5.1.4 (except 4.9.8) the latency fault strategy modifies it.
        index: The thread's stored index.

    Raises:
        UnknownNameError: The version is unknown.
    """

    def __init__(
        self, queues: Iterable[MessageQueue], *, start: int, client_version: str = DEFAULT_VERSION
    ) -> None:
        self.queues = list(queues)
        self.index = start
        self._client = Client.parse(client_version=client_version)

    def select(self, last_broker_name: str | None = None) -> MessageQueue:
        """`selectOneMessageQueue`; the fault strategy does the same while it is disabled.

        Args:
            last_broker_name: On a retry, the broker that failed; it is avoided if there is another one.

        Raises:
            RocketMQError: `ArithmeticException` for an empty list; the index has advanced nevertheless.
        """
        if last_broker_name is None:
            return self._next()
        alternative = self._probe(lambda queue: queue.broker_name != last_broker_name)
        return self._next() if alternative is None else alternative

    def select_with_faults(
        self, faults: BrokerFaults, last_broker_name: str | None = None, *, reset_index_to: int | None = None
    ) -> MessageQueue:
        """`MQFaultStrategy.selectOneMessageQueue` with latency faults enabled.

        Args:
            faults: State of the brokers.
            last_broker_name: On a retry, the broker that failed.
            reset_index_to: On a retry, 5.1.4 and later draw a new index from 0 to 2^31 - 2; `None` on a first
                attempt.

        Raises:
            RocketMQError: `ArithmeticException` for an empty list.
        """
        if self._client.before(5, 1, 4):
            return self._select_with_faults_before_5_1_4(faults, last_broker_name)
        if reset_index_to is not None:
            self.index = reset_index_to
        queue = self._probe(_outside(faults.unavailable, last_broker_name))
        if queue is None:
            queue = self._probe(_outside(faults.unreachable, last_broker_name))
        return self._next() if queue is None else queue

    def _advance(self) -> int:
        """`ThreadLocalIndex`: the next index, in its five histories."""
        following = java.to_int(self.index + 1)
        if self._client.before(4, 9, 0):
            following = java.absolute(following)
            if following < 0 and self._client.before(4, 8, 0):
                following = 0
            self.index = following
            return following
        self.index = following
        # From 4.9.0 to 4.9.3 the index counts down again once it has overflowed.
        return java.absolute(following) if self._client.before(4, 9, 4) else following & java.INT_MAX

    def _position(self, index: int) -> int:
        if not self.queues:
            raise RocketMQError("ArithmeticException", "/ by zero")
        if self._client.before(5, 0, 0):
            return max(0, java.remainder(java.absolute(index), len(self.queues)))
        return java.remainder(index, len(self.queues))

    def _next(self) -> MessageQueue:
        return self.queues[self._position(self._advance())]

    def _probe(self, is_good: Callable[[MessageQueue], bool]) -> MessageQueue | None:
        """Return the first good queue of one lap; up to 4.7.1 the lap runs on a copy of the index."""
        if self._client.before(4, 8, 0):
            return self._probe_ahead(self._advance(), is_good)
        for _ in self.queues:
            queue = self._next()
            if is_good(queue):
                return queue
        return None

    def _probe_ahead(self, index: int, is_good: Callable[[MessageQueue], bool]) -> MessageQueue | None:
        for step in range(len(self.queues)):
            position = self._position(java.to_int(index + step))
            if position < 0:
                raise RocketMQError("IndexOutOfBoundsException", f"Index {position} is negative")
            if is_good(self.queues[position]):
                return self.queues[position]
        return None

    def _select_with_faults_before_5_1_4(
        self, faults: BrokerFaults, last_broker_name: str | None
    ) -> MessageQueue:
        def is_good(queue: MessageQueue) -> bool:
            if queue.broker_name in faults.unavailable:
                return False
            if self._client.before(4, 8, 0):
                # Up to 4.7.1 a retry looks for the broker that failed instead of avoiding it.
                return last_broker_name is None or queue.broker_name == last_broker_name
            return self._client.before(5, 1, 1) or queue.broker_name != last_broker_name

        queue_count = faults.write_queue_nums.get(faults.least_bad or "", 0)
        try:
            alternative = self._probe_ahead(self._advance(), is_good)
            if alternative is None and queue_count > 0:
                alternative = self._overwrite(faults.least_bad, queue_count)
        except RocketMQError:
            # The client logs what goes wrong up to here and goes on: an empty list, and from 5.0.0 to 5.1.3 a copy
            # of the index that overflowed.
            alternative = None
        return self._next() if alternative is None else alternative

    def _overwrite(self, broker_name: str | None, queue_count: int) -> MessageQueue:
        """Take the next queue and write another broker and id into it, in the shared list."""
        position = self._position(self._advance())
        queue_id = java.remainder(self._advance(), queue_count)
        chosen = MessageQueue(self.queues[position].topic, broker_name, queue_id)
        if self._client.version != (4, 9, 8):
            self.queues[position] = chosen
        return chosen


def _outside(avoided: frozenset[str], last_broker_name: str | None) -> Callable[[MessageQueue], bool]:
    return lambda queue: queue.broker_name not in avoided and queue.broker_name != last_broker_name


def isolation_ms(latency_ms: int, *, isolation: bool = False, client_version: str = DEFAULT_VERSION) -> int:
    """Return for how many milliseconds a producer avoids a broker after a send, with latency faults switched on.

    Source: `MQFaultStrategy.updateFaultItem` and `computeNotAvailableDuration`; the tables changed in 5.1.4.

    Args:
        latency_ms: How long the send took.
        isolation: Whether the send failed in a way that counts as a fixed, long latency.
        client_version: A RocketMQ release number.

    Raises:
        UnknownNameError: There are no rules for the version.
    """
    if Client.parse(client_version=client_version).before(5, 1, 4):
        table, failure_ms = zip(_OLD_LATENCY_MS, _OLD_ISOLATION_MS, strict=True), _OLD_LATENCY_OF_FAILURE_MS
    else:
        table, failure_ms = zip(_LATENCY_MS, _ISOLATION_MS, strict=True), _LATENCY_OF_FAILURE_MS
    counted_ms = failure_ms if isolation else latency_ms
    return max((avoided_ms for least_ms, avoided_ms in table if counted_ms >= least_ms), default=0)


def select_by_hash(
    queues: Sequence[MessageQueue], hash_code: int | None, *, client_version: str = DEFAULT_VERSION
) -> MessageQueue:
    """`SelectMessageQueueByHash`: the queue for an argument with this hash code.

    Args:
        queues: The queues to choose from.
        hash_code: `java.hash_code` of a string, the number itself for an `Integer`, `java.long_hash_code` of a
            `Long`; `None` for a null argument.
        client_version: A RocketMQ release number.

    Raises:
        RocketMQError: `NullPointerException` for a null argument, `ArithmeticException` without queues; up to
            4.7.1 `IndexOutOfBoundsException` for the smallest hash code, unless the count divides it.
        UnknownNameError: There are no rules for the version.
    """
    if hash_code is None:
        raise null_pointer("the argument is null")
    if not queues:
        raise RocketMQError("ArithmeticException", "/ by zero")
    if Client.parse(client_version=client_version).before(4, 8, 0):
        position = java.remainder(java.absolute(hash_code), len(queues))
        if position < 0:
            raise RocketMQError(
                "IndexOutOfBoundsException", f"Index {position} out of bounds for length {len(queues)}"
            )
        return queues[position]
    return queues[abs(java.remainder(hash_code, len(queues)))]


@dataclass(frozen=True, slots=True)
class BrokerPlaces:
    """A broker's places in a publish list.

    Attributes:
        place_count: How many places: its writable queues, one that is listed twice counted twice.
        run_count: In how many runs of neighbours they lie, the list taken as a circle.
    """

    place_count: int
    run_count: int


def broker_places(queues: Sequence[MessageQueue]) -> dict[str, BrokerPlaces]:
    """Return the places of each broker of a publish list, in list order."""
    counts: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    broker_name = None
    for broker_name, run in groupby(str(queue.broker_name) for queue in queues):
        counts[broker_name] += sum(1 for _ in run)
        runs[broker_name] += 1
    if broker_name is not None and broker_name == str(queues[0].broker_name) and len(counts) > 1:
        # The list is a circle: its last run goes on into its first.
        runs[broker_name] -= 1
    return {name: BrokerPlaces(count, runs[name]) for name, count in counts.items()}


@dataclass(frozen=True, slots=True)
class BrokerSpread:
    """A broker's part in the round robin of one topic, and what losing the broker does to the producers.

    Attributes:
        broker_name: The broker.
        writable_queue_count: Its places in the publish list.
        share: The part of all messages that it gets, 0 to 1.
        retried_share_while_lost: While it is down and still in the list: the part of all messages whose
            first attempt fails and whose retry succeeds elsewhere, for producers from 4.8.0 on; 1 if there is
            no other broker, and then no retry succeeds.
        largest_share_after_loss: After it has left the list: the largest part that another broker then gets;
            `None` if there is no other broker.
        load_ratio_after_loss: After it has left the list: what each other broker gets, divided by what it got
            before; `None` if there is no other broker.
    """

    broker_name: str
    writable_queue_count: int
    share: float
    retried_share_while_lost: float
    largest_share_after_loss: float | None
    load_ratio_after_loss: float | None


def spread(queues: Sequence[MessageQueue]) -> list[BrokerSpread]:
    """Return how round robin spreads a topic's messages over the brokers of its publish list, in list order.

    A producer goes round the list. It reaches each run of neighbouring queues of a lost broker once a lap:
    one attempt fails, and the retry leads past the whole run, to a queue that then had its turn.

    Args:
        queues: The publish list of a topic; empty gives an empty list.
    """
    places = broker_places(queues)
    batch = spread_batch(
        np.array([0, len(places)], dtype=np.int64),
        np.array([of_broker.place_count for of_broker in places.values()], dtype=np.int64),
        np.array([of_broker.run_count for of_broker in places.values()], dtype=np.int64),
    )

    def number_or_none(value: float) -> float | None:
        return None if math.isnan(value) else value

    return [
        BrokerSpread(
            broker_name, of_broker.place_count, share, retried, number_or_none(largest), number_or_none(ratio)
        )
        for (broker_name, of_broker), share, retried, largest, ratio in zip(
            places.items(),
            batch.share.tolist(),
            batch.retried_share_while_lost.tolist(),
            batch.largest_share_after_loss.tolist(),
            batch.load_ratio_after_loss.tolist(),
            strict=True,
        )
    ]


@dataclass(frozen=True, slots=True)
class SpreadBatch:
    """What `BrokerSpread` says of one broker, for the B brokers of many topics laid end to end.

    Attributes:
        share: float64[B]; NaN where no broker of the topic has a place.
        retried_share_while_lost: float64[B]; NaN as above.
        largest_share_after_loss: float64[B]; NaN where no other broker has a place.
        load_ratio_after_loss: float64[B]; NaN as above.
    """

    share: FloatArray
    retried_share_while_lost: FloatArray
    largest_share_after_loss: FloatArray
    load_ratio_after_loss: FloatArray


def spread_batch(broker_offsets: IntArray, place_counts: IntArray, run_counts: IntArray) -> SpreadBatch:
    """Compute `spread` for many topics at once; a topic may also have brokers without a place.

    Args:
        broker_offsets: int64[T + 1]: where each topic's brokers start and end.
        place_counts: int64[B]: see `BrokerPlaces`.
        run_counts: int64[B]: see `BrokerPlaces`; 0 for a broker without a place.
    """
    broker_counts = np.diff(broker_offsets)
    topic = owner_of_each(broker_counts)
    total = np.bincount(topic, place_counts, len(broker_counts))[topic]
    left = total - place_counts
    # Within each topic the largest first: who is not the first of its topic has the first for the largest other.
    ranking = np.lexsort((-place_counts, topic))
    starts = broker_offsets[:-1][topic]
    has_others = broker_counts[topic] > 1
    largest, runner_up = ranking[starts], ranking[starts + has_others]
    largest_other = place_counts[np.where(largest == np.arange(len(topic)), runner_up, largest)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return SpreadBatch(
            share=place_counts / total,
            retried_share_while_lost=np.where((left == 0) & (total > 0), 1.0, run_counts / left),
            largest_share_after_loss=np.where(left > 0, largest_other / left, np.nan),
            load_ratio_after_loss=np.where(left > 0, total / left, np.nan),
        )
