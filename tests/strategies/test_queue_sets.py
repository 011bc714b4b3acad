"""The queues that clients read from routes, for consumers to assign and for producers to write to."""

from __future__ import annotations

import pytest

from rebalance_ledger.rocketmq.routes import (
    BrokerData,
    QueueData,
    Route,
    TopicQueueMapping,
    publish_queues,
    route_of_new_topic,
    static_endpoints,
    subscribe_queues,
)
from strategies import MessageQueue, RocketMQError
from tests.support.golden_checks import check_queues_from_route
from tests.support.strategy_golden import cases, expectations


def test_routes_are_read_as_the_java_client_reads_them() -> None:
    compared = sum(
        check_queues_from_route(case, version, answer)
        for case in cases("queues_from_route")
        for version, answer in expectations(case)
    )
    assert compared >= 5_000


MASTERED = [BrokerData("broker-a", {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"})]


def test_a_broker_without_a_master_is_read_but_not_written() -> None:
    route = Route([QueueData("broker-a", 6, 2, 2)], [BrokerData("broker-a", {1: "10.0.0.2:10911"})])
    assert subscribe_queues("T", route) == [
        MessageQueue("T", "broker-a", 0),
        MessageQueue("T", "broker-a", 1),
    ]
    assert not publish_queues("T", route).is_ok


def test_permissions_open_each_side_for_itself() -> None:
    route = Route([QueueData("broker-a", 4, 1, 8)], MASTERED)
    assert (len(subscribe_queues("T", route)), len(publish_queues("T", route).queues)) == (1, 0)
    route = Route([QueueData("broker-a", 2, 1, 8)], MASTERED)
    assert (len(subscribe_queues("T", route)), len(publish_queues("T", route).queues)) == (0, 8)


def test_an_order_configuration_decides_what_is_written_but_not_what_is_read() -> None:
    route = Route([QueueData("broker-a", 6, 1, 1)], MASTERED, order_topic_conf="broker-z:2;broker-a:1;")
    assert [str(queue.broker_name) for queue in publish_queues("T", route).queues] == [
        "broker-z",
        "broker-z",
        "broker-a",
    ]
    assert subscribe_queues("T", route) == [MessageQueue("T", "broker-a", 0)]


@pytest.mark.parametrize(
    ("conf", "java_class"),
    [
        ("broker-a", "ArrayIndexOutOfBoundsException"),
        ("broker-a:2;;broker-b:2", "ArrayIndexOutOfBoundsException"),
        ("broker-a: 2", "NumberFormatException"),
        ("broker-a:2147483648", "NumberFormatException"),
    ],
)
def test_a_bad_order_configuration_throws(conf: str, java_class: str) -> None:
    with pytest.raises(RocketMQError) as caught:
        publish_queues("T", Route([], [], order_topic_conf=conf))
    assert caught.value.java_class == java_class


def test_a_static_topic_shows_logical_queues_and_older_clients_do_not_know_it() -> None:
    mappings = {
        "broker-a": TopicQueueMapping("broker-a", "__global__", 3, epoch=2, curr_id_map={0: 0, 1: 1}),
        "broker-b": TopicQueueMapping("broker-b", "__global__", 3, epoch=1, curr_id_map={1: 5}),
    }
    route = Route([QueueData("broker-a", 6, 1, 1)], MASTERED, topic_queue_mapping_by_broker=mappings)
    logical = [MessageQueue("T", "__syslo__global__", number) for number in range(3)]
    assert subscribe_queues("T", route) == logical
    assert publish_queues("T", route).queues == tuple(logical)
    assert list(static_endpoints("T", route).values()) == ["broker-a", "broker-a", "__syslo__none__"]
    assert subscribe_queues("T", route, client_version="4.9.8") == [MessageQueue("T", "broker-a", 0)]


def test_a_topic_without_a_route_borrows_the_default_topics_and_at_most_four_queues() -> None:
    route = route_of_new_topic(
        Route([QueueData("broker-a", 6, 8, 8), QueueData("broker-b", 6, 2, 8)], MASTERED)
    )
    counts = [(data.read_queue_nums, data.write_queue_nums) for data in route.queue_datas or ()]
    assert counts == [(4, 4), (2, 2)]
