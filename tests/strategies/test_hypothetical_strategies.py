"""Guarantees of the hypothetical strategies beyond unique owners and bounds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import (
    MessageQueue,
    RocketMQError,
    SlotStrategy,
    Strategy,
    SubscriptionBatch,
    get_strategy,
    sort_client_ids,
    strategy_names,
)
from strategies.canary import canary_queue_counts
from strategies.sticky import least_moves, slots_of_clients, sticky_slots
from tests.support.strategy_generators import client_lists, queue_lists

NEEDED = {
    "STICKY": {"previous": {}},
    "BOUNDED_LOAD_HASH": {},
    "LAG_WEIGHTED": {"lag_count": {}},
    "CROSS_TOPIC_FAIR": {"queue_counts": {}},
    "CANARY": {"is_canary": (), "share": 0.5},
}
CLIENTS = ["c1", "c2", "c3"]


def queues_of(topic: str, count: int) -> list[MessageQueue]:
    return [MessageQueue(topic, "broker-a", number) for number in range(count)]


def shares(
    strategy: Strategy, queues: list[MessageQueue], client_ids: list[str]
) -> dict[str, list[MessageQueue]]:
    return {
        client_id: strategy.allocate("G", client_id, queues, client_ids) or [] for client_id in client_ids
    }


@pytest.mark.parametrize("name", NEEDED)
def test_they_are_marked_as_what_no_client_has(name: str) -> None:
    strategy = get_strategy(name, **NEEDED[name])
    assert strategy.hypothetical
    assert strategy.name == name
    assert name in strategy_names("CPP")
    assert not get_strategy("AVG").hypothetical
    with pytest.raises(RocketMQError, match="currentCID is empty"):
        strategy.allocate("G", "", queues_of("T", 1), CLIENTS)


def test_sticky_moves_nothing_without_need() -> None:
    queues = queues_of("T", 6)
    previous = dict(zip(queues, ["c2", "c1", "c2", "c3", "c1", "c3"], strict=True))
    divided = shares(get_strategy("STICKY", previous=previous), queues, CLIENTS)
    assert {queue: client for client, taken in divided.items() for queue in taken} == previous


def test_sticky_gives_a_newcomer_its_share_and_no_more() -> None:
    queues = queues_of("T", 6)
    previous = dict(zip(queues, ["c1", "c1", "c1", "c2", "c2", "c2"], strict=True))
    divided = shares(get_strategy("STICKY", previous=previous), queues, CLIENTS)
    assert divided == {"c1": queues[:2], "c2": queues[3:5], "c3": [queues[2], queues[5]]}


@settings(derandomize=True, max_examples=80, deadline=None)
@given(
    owners=st.lists(st.sampled_from(["c1", "c2", "c3", "gone", ""]), min_size=1, max_size=6),
    client_count=st.integers(1, 3),
)
def test_sticky_needs_no_more_moves_than_any_assignment_with_equal_shares(
    owners: list[str], client_count: int
) -> None:
    queues, client_ids = queues_of("T", len(owners)), CLIENTS[:client_count]
    batch = SubscriptionBatch.of([(queues, client_ids)])
    codes = [client_ids.index(owner) if owner in client_ids else -1 for owner in owners]
    previous = slots_of_clients(batch, np.array(codes, dtype=np.int64))
    moves = int((sticky_slots(batch, previous) != previous).sum())

    def is_even(slots: tuple[int, ...]) -> bool:
        loads = [slots.count(slot) for slot in range(client_count)]
        return max(loads) - min(loads) <= 1

    every_even_one = filter(is_even, product(range(client_count), repeat=len(queues)))
    fewest = min(
        sum(one != before for one, before in zip(slots, codes, strict=True)) for slots in every_even_one
    )
    assert moves == fewest == least_moves(batch, previous).tolist()[0]


@settings(derandomize=True, max_examples=60, deadline=None)
@given(queues=queue_lists(), client_ids=client_lists.filter(bool), data=st.data())
def test_lag_is_spread_to_within_the_most_lagging_queue(
    queues: list[MessageQueue], client_ids: list[str], data: st.DataObject
) -> None:
    lags = {queue: data.draw(st.integers(0, 1000)) for queue in queues}
    if not queues:
        return
    divided = shares(get_strategy("LAG_WEIGHTED", lag_count=lags), queues, client_ids)
    backlogs = [sum(lags[queue] for queue in taken) for taken in divided.values()]
    assert max(backlogs) - min(backlogs) <= max(lags.values())


def test_an_unknown_lag_is_not_a_lag_of_zero() -> None:
    queues = queues_of("T", 2)
    strategy = get_strategy("LAG_WEIGHTED", lag_count={queues[0]: 7})
    with pytest.raises(RocketMQError, match="No lag is known of MessageQueue"):
        strategy.allocate("G", "c1", queues, CLIENTS)
    assert strategy.allocate_batch(SubscriptionBatch.of([(queues, CLIENTS)])).refused == {
        0: f"No lag is known of {queues[1]}"
    }


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    counts=st.dictionaries(st.text(max_size=2), st.integers(0, 9), min_size=1, max_size=5),
    client_count=st.integers(1, 7),
)
def test_turns_go_on_from_topic_to_topic(counts: dict[str, int], client_count: int) -> None:
    client_ids = sort_client_ids(f"c{number}" for number in range(client_count))
    strategy = get_strategy("CROSS_TOPIC_FAIR", queue_counts=counts)
    assert isinstance(strategy, SlotStrategy)
    batch = SubscriptionBatch.of(
        [(queues_of(topic, count), client_ids) for topic, count in counts.items() if count]
    )
    totals = np.bincount(strategy.owner_slots(batch), minlength=client_count)
    assert totals.max() - totals.min() <= 1


@settings(derandomize=True, max_examples=60, deadline=None)
@given(queue_count=st.integers(1, 30), canary_count=st.integers(1, 4), share=st.floats(0, 1))
def test_canaries_get_their_part_of_the_queues_evenly(
    queue_count: int, canary_count: int, share: float
) -> None:
    canaries = [f"canary-{number}" for number in range(canary_count)]
    client_ids = sort_client_ids([*canaries, *CLIENTS])
    strategy = get_strategy("CANARY", is_canary=canaries, share=share)
    divided = shares(strategy, queues_of("T", queue_count), client_ids)
    part = int(canary_queue_counts(np.array([queue_count]), share)[0])
    for group, total in ((canaries, part), (CLIENTS, queue_count - part)):
        loads = [len(divided[client_id]) for client_id in group]
        assert sum(loads) == total
        assert max(loads) - min(loads) <= 1


def test_canary_queues_are_picked_from_all_over_the_list() -> None:
    strategy = get_strategy("CANARY", is_canary=["c3"], share=0.25)
    taken = strategy.allocate("G", "c3", queues_of("T", 8), CLIENTS)
    assert [queue.queue_id for queue in taken or ()] == [3, 7]


@pytest.mark.parametrize("marked", [[], CLIENTS])
def test_without_two_kinds_of_clients_all_queues_are_divided_among_all(marked: list[str]) -> None:
    queues = queues_of("T", 6)
    strategy = get_strategy("CANARY", is_canary=marked, share=0.5)
    assert shares(strategy, queues, CLIENTS) == shares(get_strategy("AVG"), queues, CLIENTS)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("CANARY", {"is_canary": [], "share": 1.5}),
        ("BOUNDED_LOAD_HASH", {"load_factor": 0.9}),
        ("BOUNDED_LOAD_HASH", {"virtual_node_count": 0}),
    ],
)
def test_a_parameter_that_cannot_work_is_refused(name: str, params: dict[str, object]) -> None:
    with pytest.raises(RocketMQError) as caught:
        get_strategy(name, **params)
    assert caught.value.java_class == "IllegalArgumentException"
