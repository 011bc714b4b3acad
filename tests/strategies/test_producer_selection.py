"""The queue that a producer selects, by version, and the resulting traffic of the brokers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import MessageQueue
from strategies.producer import (
    BrokerFaults,
    BrokerPlaces,
    QueueSelector,
    broker_places,
    isolation_ms,
    spread,
    spread_batch,
)
from tests.support.golden_checks import check_producer_select
from tests.support.strategy_golden import cases, expectations


def queues_of(*counts: tuple[str, int]) -> list[MessageQueue]:
    return [MessageQueue("T", broker, number) for broker, count in counts for number in range(count)]


@pytest.mark.parametrize(
    ("api", "least_comparisons"),
    [
        ("publish_info", 5_000),
        ("fault_strategy", 5_000),
        ("latency_faults", 2_000),
        ("isolation", 300),
        ("select_by_hash", 3_000),
    ],
)
def test_producers_choose_as_in_java(api: str, least_comparisons: int) -> None:
    compared = sum(
        check_producer_select(case, version, answer)
        for case in cases("producer_select")
        if case["api"] == api
        for version, answer in expectations(case)
    )
    assert compared > least_comparisons


LISTED = queues_of(("broker-a", 2), ("broker-b", 2))


def chosen(
    version: str, start: int, faults: BrokerFaults, last_broker: str | None = None
) -> tuple[MessageQueue, int]:
    selector = QueueSelector(LISTED, start=start, client_version=version)
    return selector.select_with_faults(faults, last_broker), selector.index


def test_an_unavailable_broker_is_passed_over() -> None:
    faults = BrokerFaults(unavailable=frozenset({"broker-a"}))
    assert chosen("5.3.3", -1, faults) == (LISTED[2], 2)
    assert chosen("5.1.3", -1, faults) == (LISTED[2], 0)
    assert chosen("4.7.1", -1, faults) == (LISTED[2], 0)


@pytest.mark.parametrize(
    ("version", "broker"),
    [
        ("4.7.1", "broker-a"),
        ("4.8.0", "broker-a"),
        ("5.1.0", "broker-a"),
        ("5.1.1", "broker-b"),
        ("5.5.0", "broker-b"),
    ],
)
def test_a_retry_avoids_the_failed_broker_only_since_5_1_1(version: str, broker: str) -> None:
    queue, _ = chosen(version, -1, BrokerFaults(), "broker-a")
    assert queue.broker_name == broker


def test_up_to_4_7_1_a_retry_even_looks_for_the_failed_broker() -> None:
    assert chosen("4.7.1", 1, BrokerFaults(), "broker-a")[0] == LISTED[0]
    assert chosen("4.8.0", 1, BrokerFaults(), "broker-a")[0] == LISTED[2]


def test_without_an_available_broker_a_reachable_one_will_do() -> None:
    faults = BrokerFaults(frozenset({"broker-a", "broker-b"}), unreachable=frozenset({"broker-a"}))
    assert chosen("5.3.3", -1, faults)[0].broker_name == "broker-b"
    assert chosen("5.3.3", -1, BrokerFaults(faults.unavailable, faults.unavailable))[0] == LISTED[0]


def test_a_retry_starts_from_a_new_index() -> None:
    selector = QueueSelector(LISTED, start=0)
    assert selector.select_with_faults(BrokerFaults(), "broker-b", reset_index_to=3) == LISTED[0]


@pytest.mark.parametrize(("version", "is_overwritten"), [("4.9.7", True), ("4.9.8", False), ("5.1.3", True)])
def test_the_old_fallback_writes_into_the_shared_list(version: str, *, is_overwritten: bool) -> None:
    faults = BrokerFaults(
        unavailable=frozenset({"broker-a", "broker-b"}),
        least_bad="broker-b",
        write_queue_nums={"broker-b": 2},
    )
    selector = QueueSelector(LISTED, start=-1, client_version=version)
    assert selector.select_with_faults(faults) == MessageQueue("T", "broker-b", 0)
    assert (MessageQueue("T", "broker-b", 0) == selector.queues[1]) == is_overwritten
    assert selector.index == 2


def test_a_broker_that_the_route_no_longer_has_is_no_fallback() -> None:
    faults = BrokerFaults(unavailable=frozenset({"broker-a", "broker-b"}), least_bad="gone")
    assert chosen("5.1.3", -1, faults) == (LISTED[1], 1)


def test_an_index_that_overflows_while_it_probes_is_survived() -> None:
    listed = [MessageQueue("T", broker, 0) for broker in ("broker-a", "broker-b", "broker-c")]
    faults = BrokerFaults(unavailable=frozenset({"broker-b"}))
    for version, index in (("5.1.0", -(2**31)), ("4.9.7", 2**31 - 1)):
        selector = QueueSelector(listed, start=2**31 - 2, client_version=version)
        assert selector.select_with_faults(faults) == listed[0]
        assert selector.index == index


@pytest.mark.parametrize(
    ("latency_ms", "before_5_1_4_ms", "since_5_1_4_ms"),
    [(0, 0, 0), (549, 0, 0), (550, 30_000, 2_000), (1_800, 60_000, 5_000), (15_000, 600_000, 30_000)],
)
def test_slowness_is_avoided_for_a_while(latency_ms: int, before_5_1_4_ms: int, since_5_1_4_ms: int) -> None:
    assert isolation_ms(latency_ms, client_version="5.1.3") == before_5_1_4_ms
    assert isolation_ms(latency_ms, client_version="5.1.4") == since_5_1_4_ms


def test_failure_counts_as_a_long_latency() -> None:
    assert isolation_ms(1, isolation=True, client_version="4.9.8") == 600_000
    assert isolation_ms(1, isolation=True, client_version="5.3.3") == 10_000


def test_the_spread_of_an_even_topic() -> None:
    first, second = spread(LISTED)
    assert (first.broker_name, first.writable_queue_count, first.share) == ("broker-a", 2, 0.5)
    assert (first.retried_share_while_lost, first.largest_share_after_loss) == (0.5, 1.0)
    assert first.load_ratio_after_loss == 2.0
    assert second.broker_name == "broker-b"
    assert spread([]) == []


def test_losing_the_only_broker_loses_everything() -> None:
    (only,) = spread(queues_of(("broker-a", 3)))
    assert (only.share, only.retried_share_while_lost) == (1.0, 1.0)
    assert (only.largest_share_after_loss, only.load_ratio_after_loss) == (None, None)


def test_the_places_of_a_broker_are_counted_by_run_around_the_circle() -> None:
    listed = queues_of(("broker-b", 1), ("broker-a", 2), ("broker-b", 2), ("broker-c", 1), ("broker-b", 1))

    assert broker_places(listed) == {
        "broker-b": BrokerPlaces(4, 2),
        "broker-a": BrokerPlaces(2, 1),
        "broker-c": BrokerPlaces(1, 1),
    }
    assert broker_places(queues_of(("broker-a", 3))) == {"broker-a": BrokerPlaces(3, 1)}


def test_a_broker_without_writers_is_not_missed() -> None:
    batch = spread_batch(np.array([0, 3]), np.array([0, 6, 2]), np.array([0, 1, 1]))

    assert batch.share.tolist() == [0.0, 0.75, 0.25]
    assert batch.retried_share_while_lost.tolist() == [0.0, 0.5, pytest.approx(1 / 6)]
    assert batch.largest_share_after_loss.tolist() == [0.75, 1.0, 1.0]
    assert batch.load_ratio_after_loss.tolist() == [1.0, 4.0, pytest.approx(8 / 6)]


def test_where_no_broker_takes_messages_there_is_nothing_to_share() -> None:
    batch = spread_batch(np.array([0, 2, 2]), np.array([0, 0]), np.array([0, 0]))

    for numbers in (
        batch.share,
        batch.retried_share_while_lost,
        batch.largest_share_after_loss,
        batch.load_ratio_after_loss,
    ):
        assert np.isnan(numbers).tolist() == [True, True]


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    brokers=st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=2, max_size=12).filter(
        lambda names: len(set(names)) > 1
    ),
    start=st.integers(0, 11),
)
def test_the_spread_is_what_the_round_robin_does(brokers: list[str], start: int) -> None:
    listed = [MessageQueue("T", broker, number) for number, broker in enumerate(brokers)]
    for expected in spread(listed):
        lost, left = expected.broker_name, len(listed) - expected.writable_queue_count
        selector = QueueSelector(listed, start=start)
        laps = 3
        retried, taken = 0, []
        for _ in range(laps * left):
            queue = selector.select()
            if queue.broker_name == lost:
                retried += 1
                queue = selector.select(lost)
            taken.append(queue)
        assert retried == pytest.approx(expected.retried_share_while_lost * laps * left, abs=1.01)
        assert all(taken.count(queue) == laps for queue in listed if queue.broker_name != lost)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=9), max_size=6))
def test_many_topics_at_once_are_as_each_alone(topics: list[list[str]]) -> None:
    lists = [[MessageQueue("T", broker, number) for number, broker in enumerate(topic)] for topic in topics]
    places = [list(broker_places(queues).values()) for queues in lists]
    batch = spread_batch(
        np.cumsum([0, *map(len, places)]),
        np.array([of_broker.place_count for topic in places for of_broker in topic], dtype=np.int64),
        np.array([of_broker.run_count for topic in places for of_broker in topic], dtype=np.int64),
    )
    alone = [of_broker for queues in lists for of_broker in spread(queues)]

    assert batch.share.tolist() == [one.share for one in alone]
    assert batch.retried_share_while_lost.tolist() == [one.retried_share_while_lost for one in alone]
    assert [None if math.isnan(share) else share for share in batch.largest_share_after_loss.tolist()] == [
        one.largest_share_after_loss for one in alone
    ]
