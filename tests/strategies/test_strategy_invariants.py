"""Every strategy fulfils its guarantees, and the checker detects violations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import MessageQueue, Owners, SubscriptionBatch, get_strategy
from strategies.guarantees import Guarantees
from strategies.invariants import ViolatedGuarantee, check, check_move, promise
from tests.support.strategy_examples import STRATEGIES
from tests.support.strategy_generators import Subscription, batches, client_lists, queue_lists

MONOTONE = sorted(which for which in STRATEGIES if promise(STRATEGIES[which]()).is_monotone)


@pytest.mark.parametrize("which", STRATEGIES)
@settings(derandomize=True, max_examples=25, deadline=None)
@given(asked=batches)
def test_every_strategy_keeps_its_promise(which: str, asked: list[Subscription]) -> None:
    strategy, batch = STRATEGIES[which](), SubscriptionBatch.of(asked)
    assert check(strategy, batch, strategy.allocate_batch(batch)) == []


def test_every_hash_ring_of_rocketmq_is_monotone() -> None:
    assert {"hash", "hash with collisions", "hash in Go", "nearby hash"} <= set(MONOTONE)


@pytest.mark.parametrize("which", MONOTONE)
@settings(derandomize=True, max_examples=25, deadline=None)
@given(queues=queue_lists(), client_ids=client_lists.filter(bool), data=st.data())
def test_a_monotone_strategy_moves_only_what_it_must(
    which: str, queues: list[MessageQueue], client_ids: list[str], data: st.DataObject
) -> None:
    leaving = data.draw(st.sampled_from(client_ids))
    strategy = STRATEGIES[which]()
    full = SubscriptionBatch.of([(queues, client_ids)])
    without = SubscriptionBatch.of(
        [(queues, [client_id for client_id in client_ids if client_id != leaving])]
    )
    before, after = (full, strategy.allocate_batch(full)), (without, strategy.allocate_batch(without))
    assert check_move(strategy, before, after) == []
    assert check_move(strategy, after, before) == []


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("AVG", Guarantees(max_owner_count=1, min_owner_count=1, max_spread_count=1)),
        ("AVG_BY_CIRCLE", Guarantees(max_owner_count=1, min_owner_count=1, max_spread_count=1)),
        (
            "CONSISTENT_HASH",
            Guarantees(max_owner_count=1, min_owner_count=1, is_monotone=True, holds_with_duplicate_ids=True),
        ),
    ],
)
def test_promises_are_plain_numbers(name: str, stated: Guarantees) -> None:
    assert promise(get_strategy(name)) == stated


def test_what_the_4_7_1_machine_room_does_not_promise_it_does_not_keep() -> None:
    queues = [MessageQueue("T", broker, number) for broker in ("room0@a", "room1@a") for number in (0, 1)]
    batch = SubscriptionBatch.of([(queues, ["c1", "c2"])])
    old = get_strategy("MACHINE_ROOM", client_version="4.7.1", consumer_idcs={"room1"}).allocate_batch(batch)
    new = get_strategy("MACHINE_ROOM", client_version="4.8.0", consumer_idcs={"room1"})
    broken = {violation.broken for violation in check(new, batch, old)}
    assert broken == {ViolatedGuarantee.TOO_FEW_OWNERS, ViolatedGuarantee.NOT_COVERED}


QUEUES = [MessageQueue("T", "b", number) for number in range(6)]
BATCH = SubscriptionBatch.of([(QUEUES, ["a", "b", "c"]), (QUEUES[:3], ["a", "a", "b"])])
AVG = get_strategy("AVG")
GOOD = AVG.allocate_batch(BATCH)


def changed(rows: dict[int, tuple[int, int, int]], dropped: tuple[int, ...] = ()) -> Owners:
    columns = np.array([GOOD.subscription_index, GOOD.queue_index, GOOD.client_index])
    for row, values in rows.items():
        columns[:, row] = values
    columns = np.delete(columns, dropped, axis=1)
    return replace(GOOD, subscription_index=columns[0], queue_index=columns[1], client_index=columns[2])


@pytest.mark.parametrize(
    ("owners", "broken", "slot"),
    [
        (changed({}, dropped=(3,)), ViolatedGuarantee.TOO_FEW_OWNERS, 3),
        (changed({1: (0, 0, 1)}), ViolatedGuarantee.TOO_MANY_OWNERS, 0),
        (changed({0: (0, 6, 0)}), ViolatedGuarantee.FOREIGN_QUEUE, 6),
        (changed({0: (0, 0, 3)}), ViolatedGuarantee.FOREIGN_CLIENT, 3),
        (changed({6: (1, 0, 1)}), ViolatedGuarantee.FOREIGN_CLIENT, 1),
        (changed({2: (0, 2, 0)}), ViolatedGuarantee.SPREAD, -1),
    ],
)
def test_a_planted_fault_is_noticed(owners: Owners, broken: ViolatedGuarantee, slot: int) -> None:
    found = [(violation.broken, violation.slot) for violation in check(AVG, BATCH, owners)]
    assert (broken, slot) in found


def test_a_violation_says_what_was_seen_and_what_was_promised() -> None:
    (violation,) = [
        violation
        for violation in check(AVG, BATCH, changed({2: (0, 2, 0)}))
        if violation.broken is ViolatedGuarantee.SPREAD
    ]
    assert (violation.subscription, violation.observed, violation.promised) == (0, 2, 1)


def test_too_much_load_is_noticed() -> None:
    bounded = get_strategy("BOUNDED_LOAD_HASH", load_factor=1)
    everything_to_one = SubscriptionBatch.of([(QUEUES, ["a", "b", "c"])])
    owners = Owners(np.zeros(6, dtype=np.int64), np.arange(6), np.zeros(6, dtype=np.int64))
    found = [
        violation
        for violation in check(bounded, everything_to_one, owners)
        if violation.broken is ViolatedGuarantee.LOAD
    ]
    assert [(violation.slot, violation.observed, violation.promised) for violation in found] == [(0, 6, 2)]


def test_a_needless_move_is_noticed() -> None:
    ring = get_strategy("CONSISTENT_HASH")
    before = SubscriptionBatch.of([(QUEUES, ["a", "b", "c"])])
    after = SubscriptionBatch.of([(QUEUES, ["a", "b"])])
    moved = Owners(np.zeros(6, dtype=np.int64), np.arange(6), np.array([0, 0, 0, 1, 1, 1]))
    back = Owners(np.zeros(6, dtype=np.int64), np.arange(6), np.array([0, 0, 1, 1, 1, 0]))
    found = check_move(ring, (before, moved), (after, back))
    assert [violation.slot for violation in found] == [2, 5]
