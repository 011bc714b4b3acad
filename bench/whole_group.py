"""(b) One group's whole assignment, against RocketMQ's own classes called once per client in one warm JVM.

1,024 queues of 16 brokers in four rooms, 5,000 clients in three of them, as lists in no order. What is timed:

- ours: sorting both lists, laying them out as a batch, and every owner by `owner_slots`, with new names and a new strategy
  each time, so that nothing is remembered;
- Java: `allocate`, once for each client, over lists that are sorted beforehand, by a clock inside the JVM. The way to
  Python and back is not in it.

Belongs here: the group, the turns, and the check that both sides name the same owners: a wrong answer has no speed.
Does not belong here: how Java is asked (`tools.rocketmq_java`).
"""

from __future__ import annotations

import gc
import random
import time
from dataclasses import dataclass, field
from statistics import mean, median
from typing import TYPE_CHECKING, Any, Final

from bench.report import Measurement
from strategies import (
    MessageQueue,
    RoomPart,
    SlotStrategy,
    SubscriptionBatch,
    get_strategy,
    sort_client_ids,
    sort_queues,
)
from strategies.batch import NO_OWNER
from tools.rocketmq_java.gateway import running

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.rocketmq_java.gateway import RocketMQ

RELEASE: Final = "5.3.3"

_SEED: Final = 20261121
_TOPIC: Final = "order-events"
_ROOMS: Final = ("room-1", "room-2", "room-3", "room-4")
_ROOMS_WITH_CLIENTS: Final = 3
_BROKER_COUNT: Final = 16
_NANOSECONDS: Final = 1e9
# Ours is over in less than the time for which another process gets the core; the mean of several is not.
_OUR_RUNS: Final = 10


@dataclass(frozen=True, slots=True)
class Rule:
    """A strategy on both sides, and how many times faster ours is to be.

    Attributes:
        strategy: Its name.
        bar: The promise.
        options: What `get_strategy` is given.
        params: The same for Java, see `tests/golden/README.md`.
        is_sampled: Whether Java would take hours: then a few calls are timed and multiplied.
    """

    strategy: str
    bar: float
    options: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    is_sampled: bool = False

    def ours(self) -> SlotStrategy:
        """Create a new instance of the strategy."""
        strategy = get_strategy(self.strategy, client_version=RELEASE, **self.options)
        if not isinstance(strategy, SlotStrategy):
            raise TypeError(f"{self.strategy} may give a queue to several clients, so it has no owner_slots.")
        return strategy


_BEFORE_AT: Final = RoomPart("@")

RULES: Final = (
    Rule("AVG", bar=10),
    Rule("AVG_BY_CIRCLE", bar=10),
    Rule(
        "MACHINE_ROOM",
        bar=50,
        options={"consumer_idcs": _ROOMS[:_ROOMS_WITH_CLIENTS]},
        params={"consumeridcs": _ROOMS[:_ROOMS_WITH_CLIENTS]},
    ),
    Rule(
        "MACHINE_ROOM_NEARBY",
        bar=50,
        options={
            "inner": get_strategy("AVG", client_version=RELEASE),
            "broker_room": _BEFORE_AT,
            "consumer_room": _BEFORE_AT,
        },
        params={"inner": "AVG", "room_before": "@"},
    ),
    Rule("CONSISTENT_HASH", bar=10_000, is_sampled=True),
)


@dataclass(frozen=True, slots=True)
class Group:
    """One group's subscription to one topic, both lists in no order."""

    queues: list[MessageQueue]
    client_ids: list[str]


def drawn_group(queue_count: int, client_count: int, order_seed: int = 0) -> Group:
    """Return always the same queues and client ids, as new objects, in an order that the seed decides."""
    draw = random.Random(_SEED)  # noqa: S311  no secret is drawn
    queues = [
        MessageQueue(_TOPIC, f"{_ROOMS[broker % len(_ROOMS)]}@broker-{broker:02}", queue_id)
        for queue_id, broker in (divmod(number, _BROKER_COUNT) for number in range(queue_count))
    ]
    client_ids = [
        f"{_ROOMS[number % _ROOMS_WITH_CLIENTS]}@10.{draw.randrange(32)}.{number // 250}.{number % 250}"
        f"@{draw.randrange(1, 60_000)}#{draw.randrange(10**15)}"
        for number in range(client_count)
    ]
    order = random.Random(order_seed)  # noqa: S311  no secret is drawn
    order.shuffle(queues)
    order.shuffle(client_ids)
    return Group(queues, client_ids)


def measure(
    *,
    queue_count: int = 1024,
    client_count: int = 5000,
    repetitions: int = 9,
    warm_up_s: float = 5.0,
    rules: Sequence[Rule] = RULES,
) -> list[Measurement]:
    """Time every rule on both sides, in turns.

    Args:
        queue_count: Of the group.
        client_count: Of the group; of a rule that is sampled, one client a repetition is asked.
        repetitions: Pairs of Java's run and the mean of ten of ours.
        warm_up_s: How long Java runs before the first pair; one run at least.
        rules: Which.

    Raises:
        SetUpError: The Java classes cannot be run.
        RuntimeError: Both sides do not name the same owners.
    """
    measured = []
    for rule in rules:
        # A JVM each: what the compiler has learnt from one class must not slow the next.
        with running(RELEASE, timed=True) as release:
            measured.append(_measure_rule(release, rule, queue_count, client_count, repetitions, warm_up_s))
    return measured


def _measure_rule(
    release: RocketMQ, rule: Rule, queue_count: int, client_count: int, repetitions: int, warm_up_s: float
) -> Measurement:
    sides = Sides(release, rule, queue_count, client_count)
    calls = 1 if rule.is_sampled else client_count
    _warm_up(sides, calls, warm_up_s)
    seconds, calls_seconds = [], []
    for repetition in range(repetitions):
        orders = range(repetition * _OUR_RUNS, (repetition + 1) * _OUR_RUNS)
        seconds.append(mean(sides.run_ours(order) for order in orders))
        first = repetition % client_count if rule.is_sampled else 0
        calls_seconds.append(sides.run_java(first, first + calls))
    return Measurement(
        name=rule.strategy.lower(),
        what=f"{rule.strategy}: {queue_count:,} queues, {client_count:,} clients",
        baseline=f"RocketMQ {RELEASE}'s class, once for each client",
        seconds=tuple(seconds),
        baseline_seconds=tuple(of_calls * client_count / calls for of_calls in calls_seconds),
        bar=rule.bar,
        direction="at_least",
        note=(
            f"Java's time is extrapolated: one client of {client_count:,} is asked in each repetition "
            f"({median(calls_seconds):.1f} s a call)."
            if rule.is_sampled
            else ""
        ),
        extra={
            "queue_count": queue_count,
            "client_count": client_count,
            "java_calls_timed": calls * repetitions,
        },
    )


def _warm_up(sides: Sides, calls: int, warm_up_s: float) -> None:
    begin = time.perf_counter()
    while True:
        sides.run_java(0, calls)
        if time.perf_counter() - begin >= warm_up_s:
            return


class Sides:
    """One rule over one group on both sides; each run of Java's is held against our last one."""

    def __init__(self, release: RocketMQ, rule: Rule, queue_count: int, client_count: int) -> None:
        self._rule = rule
        self._size = queue_count, client_count
        self._owned: dict[int, list[int]] = {}
        self.run_ours(0)
        # Most of so many clients own nothing: a sample says more of those that do, so they are asked first.
        self._asked = list(dict.fromkeys([*self._owned, *range(client_count)]))
        group = drawn_group(*self._size)
        client_ids = sort_client_ids(group.client_ids)
        self._java = release.timed_group(
            {
                "strategy": rule.strategy,
                "params": rule.params,
                "group": "order-audit",
                "mq_all": [
                    [queue.topic, queue.broker_name, queue.queue_id] for queue in sort_queues(group.queues)
                ],
                "cid_all": client_ids,
                "asked": [client_ids[slot] for slot in self._asked],
            }
        )

    def run_ours(self, order_seed: int) -> float:
        """Return the seconds from two unsorted lists to every owner."""
        group = drawn_group(*self._size, order_seed)
        gc.collect()
        begin = time.perf_counter()
        batch = SubscriptionBatch.of([(sort_queues(group.queues), sort_client_ids(group.client_ids))])
        slots = self._rule.ours().owner_slots(batch)
        took_s = time.perf_counter() - begin
        self._owned = {}
        for position, slot in enumerate(slots.tolist()):
            if slot != NO_OWNER:
                self._owned.setdefault(slot, []).append(position)
        return took_s

    def run_java(self, start: int, stop: int) -> float:
        """Return the seconds in the JVM to ask some of the clients, one call each.

        Raises:
            RuntimeError: One of them is given other queues than ours gives it.
        """
        took_s = self._java.ask(start, stop) / _NANOSECONDS
        for slot, places in zip(self._asked[start:stop], self._java.answers(), strict=True):
            if sorted(places) != self._owned.get(slot, []):
                raise RuntimeError(
                    f"{self._rule.strategy}: RocketMQ {RELEASE} gives the client in slot {slot} the queues "
                    f"{sorted(places)}, and ours gives it {self._owned.get(slot, [])}; a wrong answer has no speed."
                )
        return took_s
