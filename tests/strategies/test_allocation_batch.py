"""The batch API returns the same results for many subscriptions as the per-client API for each client."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from strategies import (
    MessageQueue,
    SlotStrategy,
    Strategy,
    SubscriptionBatch,
    get_strategy,
)
from tests.support.strategy_examples import STRATEGIES, nearby
from tests.support.strategy_generators import Subscription, ask_client_by_client, batches, owner_pairs


@pytest.mark.parametrize("which", STRATEGIES)
@settings(derandomize=True, max_examples=25, deadline=None)
@given(asked=batches)
def test_both_apis_agree(which: str, asked: list[Subscription]) -> None:
    strategy = STRATEGIES[which]()
    owners = strategy.allocate_batch(SubscriptionBatch.of(asked))
    assert (owner_pairs(owners), dict(owners.refused)) == ask_client_by_client(strategy, asked)


@pytest.mark.parametrize("name", ["average", "room 4.7.1"])
@settings(derandomize=True, max_examples=30, deadline=None)
@given(asked=batches)
def test_a_strategy_that_states_no_batch_inherits_one(name: str, asked: list[Subscription]) -> None:
    strategy, batch = STRATEGIES[name](), SubscriptionBatch.of(asked)
    assert owner_pairs(Strategy.allocate_batch(strategy, batch)) == owner_pairs(
        strategy.allocate_batch(batch)
    )


def owner_slots(name: str, batch: SubscriptionBatch) -> list[int]:
    strategy = get_strategy(name)
    assert isinstance(strategy, SlotStrategy)
    slots = strategy.owner_slots(batch)
    assert slots.dtype == np.int32
    return slots.tolist()


def test_owner_slots_are_positions_inside_the_subscription() -> None:
    queues = [MessageQueue("T", "b", number) for number in range(5)]
    batch = SubscriptionBatch.of([(queues, ["a", "b"]), (queues[:2], ["c"])])
    assert owner_slots("AVG", batch) == [0, 0, 0, 1, 1, 0, 0]
    assert owner_slots("AVG_BY_CIRCLE", batch) == [0, 1, 0, 1, 0, 0, 0]


def test_the_share_of_a_duplicated_client_ids_second_slot_is_owned_by_nobody() -> None:
    queues = [MessageQueue("T", "b", number) for number in range(6)]
    batch = SubscriptionBatch.of([(queues, ["a", "a", "b"])])
    assert owner_slots("AVG", batch) == [0, 0, -1, -1, 2, 2]
    assert owner_slots("AVG_BY_CIRCLE", batch) == [0, -1, 2, 0, -1, 2]


@pytest.mark.parametrize("which", sorted(STRATEGIES.keys() - {"config", "config null", "hash empty ring"}))
def test_without_queues_or_without_clients_nobody_owns_anything(which: str) -> None:
    queues = [MessageQueue("T", "b", number) for number in range(3)]
    empty = SubscriptionBatch.of([([], ["a"]), (queues, []), ([], [])])
    owners = STRATEGIES[which]().allocate_batch(empty)
    assert owner_pairs(owners) == []
    assert owners.refused == {}


def test_a_subscription_that_a_client_would_refuse_has_no_owners_and_says_why() -> None:
    good, bad = MessageQueue("T", "broker-a", 0), MessageQueue("T", "@", 0)
    owners = nearby(partial(get_strategy, "AVG")).allocate_batch(
        SubscriptionBatch.of([([good], ["a"]), ([bad, good], ["a"])])
    )
    assert owner_pairs(owners) == [(0, 0, 0)]
    assert owners.refused == {1: f"Machine room is null for mq {bad}"}


@pytest.mark.parametrize("queue_count", [0, 2])
def test_a_client_without_a_room_affects_no_other_subscription(queue_count: int) -> None:
    queues = [MessageQueue("T", "b", number) for number in range(2)]
    strategy = get_strategy(
        "MACHINE_ROOM_NEARBY",
        inner=get_strategy("AVG_BY_CIRCLE"),
        broker_room=lambda _: "room",
        consumer_room={"a": "room"}.get,
    )
    batch = SubscriptionBatch.of(
        [(queues, ["a"]), (queues[:queue_count], ["a", "homeless"]), (queues, ["a"])]
    )

    assert owner_pairs(strategy.allocate_batch(batch)) == [(0, 0, 0), (0, 1, 0), (2, 0, 0), (2, 1, 0)]


def test_a_subscription_is_of_one_topic() -> None:
    with pytest.raises(ValueError, match="one topic"):
        SubscriptionBatch.of([([MessageQueue("T", "b", 0), MessageQueue("U", "b", 0)], ["a"])])
