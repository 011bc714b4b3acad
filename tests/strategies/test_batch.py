"""The whole-batch face says of many subscriptions what the per-client face says of one client."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import (
    MessageQueue,
    Owners,
    SlotStrategy,
    Strategy,
    SubscriptionBatch,
    get_strategy,
    sort_client_ids,
    sort_queues,
)

Subscription = tuple[list[MessageQueue], list[str]]

client_lists = st.lists(st.integers(0, 12).map(lambda n: f"10.0.0.{n}@{n}"), max_size=14).map(sort_client_ids)
queue_lists = st.builds(
    lambda topic, pairs: sort_queues(MessageQueue(topic, broker, number) for broker, number in pairs),
    st.sampled_from(["TopicTest", "%RETRY%G"]),
    st.sets(
        st.tuples(st.sampled_from(["broker-a", "broker-b", "room1@broker-c"]), st.integers(0, 9)), max_size=25
    ),
)
subscriptions = st.lists(st.tuples(queue_lists, client_lists), max_size=6)


def pairs(owners: Owners) -> list[tuple[int, int, int]]:
    return list(
        zip(
            owners.subscription_index.tolist(),
            owners.queue_index.tolist(),
            owners.client_index.tolist(),
            strict=True,
        )
    )


def pairs_client_by_client(strategy: Strategy, asked: list[Subscription]) -> list[tuple[int, int, int]]:
    found = set()
    for number, (queues, client_ids) in enumerate(asked):
        if queues and client_ids:
            for client_id in client_ids:
                for queue in strategy.allocate("G", client_id, queues, client_ids) or []:
                    found.add((number, queues.index(queue), client_ids.index(client_id)))
    return sorted(found)


@pytest.mark.parametrize("name", ["AVG", "AVG_BY_CIRCLE"])
@settings(derandomize=True, max_examples=150, deadline=None)
@given(asked=subscriptions)
def test_both_faces_agree(name: str, asked: list[Subscription]) -> None:
    strategy = get_strategy(name)
    owners = strategy.allocate_batch(SubscriptionBatch.of(asked))
    assert pairs(owners) == pairs_client_by_client(strategy, asked)
    assert owners.refused == {}


@pytest.mark.parametrize("name", ["AVG", "AVG_BY_CIRCLE"])
@settings(derandomize=True, max_examples=50, deadline=None)
@given(asked=subscriptions)
def test_the_default_batch_of_any_strategy_says_the_same(name: str, asked: list[Subscription]) -> None:
    strategy, batch = get_strategy(name), SubscriptionBatch.of(asked)
    assert pairs(Strategy.allocate_batch(strategy, batch)) == pairs(strategy.allocate_batch(batch))


def test_owner_slots_are_positions_inside_the_subscription() -> None:
    queues = [MessageQueue("T", "b", number) for number in range(5)]
    strategy = get_strategy("AVG")
    assert isinstance(strategy, SlotStrategy)
    slots = strategy.owner_slots(SubscriptionBatch.of([(queues, ["a", "b"]), (queues[:2], ["c"])]))
    assert slots.tolist() == [0, 0, 0, 1, 1, 0, 0]
    assert slots.dtype == np.int32


def test_the_share_of_a_duplicated_client_ids_second_slot_is_owned_by_nobody() -> None:
    queues = [MessageQueue("T", "b", number) for number in range(6)]
    batch = SubscriptionBatch.of([(queues, ["a", "a", "b"])])
    slots = {}
    for name in ("AVG", "AVG_BY_CIRCLE"):
        strategy = get_strategy(name)
        assert isinstance(strategy, SlotStrategy)
        slots[name] = strategy.owner_slots(batch).tolist()
    assert slots == {"AVG": [0, 0, -1, -1, 2, 2], "AVG_BY_CIRCLE": [0, -1, 2, 0, -1, 2]}


@pytest.mark.parametrize("name", ["AVG", "AVG_BY_CIRCLE"])
def test_without_queues_or_without_clients_nobody_owns_anything(name: str) -> None:
    queues = [MessageQueue("T", "b", number) for number in range(3)]
    strategy = get_strategy(name)
    owners = strategy.allocate_batch(
        SubscriptionBatch.of([([], ["a"]), (queues, []), ([], []), (queues, ["a"])])
    )
    assert pairs(owners) == [(3, 0, 0), (3, 1, 0), (3, 2, 0)]
    assert pairs(strategy.allocate_batch(SubscriptionBatch.of([]))) == []


def test_a_subscription_is_of_one_topic() -> None:
    with pytest.raises(ValueError, match="one topic"):
        SubscriptionBatch.of([([MessageQueue("T", "b", 0), MessageQueue("U", "b", 0)], ["a"])])
