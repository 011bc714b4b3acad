"""The queues that consumers divide and producers write to, as clients read them from routes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from strategy_golden import cases, expectations, expected_error, outcome

from strategies import MessageQueue, RocketMQError
from strategies.queue_sets import (
    BrokerData,
    PublishList,
    QueueData,
    Route,
    TopicQueueMapping,
    publish_queues,
    route_of_new_topic,
    static_endpoints,
    subscribe_queues,
)


def route_of(described: dict[str, Any]) -> Route:
    queue_datas, broker_datas = described.get("queueDatas"), described.get("brokerDatas")
    mappings = described.get("topicQueueMappingByBroker")
    return Route(
        queue_datas=None
        if queue_datas is None
        else [
            QueueData(data["brokerName"], data["perm"], data["readQueueNums"], data["writeQueueNums"])
            for data in queue_datas
        ],
        broker_datas=None
        if broker_datas is None
        else [
            BrokerData(
                data["brokerName"], {int(number): addr for number, addr in data["brokerAddrs"].items()}
            )
            for data in broker_datas
        ],
        order_topic_conf=described.get("orderTopicConf"),
        topic_queue_mapping_by_broker=None
        if mappings is None
        else {
            broker: TopicQueueMapping(
                bname=info["bname"],
                scope=info["scope"],
                total_queues=info["totalQueues"],
                epoch=info["epoch"],
                curr_id_map={int(logical): physical for logical, physical in info["currIdMap"].items()},
            )
            for broker, info in mappings.items()
        },
    )


def pairs(queues: list[MessageQueue] | tuple[Any, ...]) -> Any:
    """Queues as the golden vectors write them; an error stays as it is."""
    return [[queue.broker_name, queue.queue_id] for queue in queues] if isinstance(queues, list) else queues


def order_is_of_hash_map(route: Route) -> bool:
    """Whether Java's publish list has an order that only its hash map knows."""
    mappings = (route.topic_queue_mapping_by_broker or {}).values()
    return route.order_topic_conf is None and len({mapping.scope for mapping in mappings}) > 1


@pytest.mark.parametrize("side", ["subscribe", "publish", "endpoints"])
def test_routes_are_read_as_the_java_client_reads_them(side: str) -> None:
    compared = 0
    for case in cases("queues_from_route"):
        route = route_of(case["route"])
        for version, answer in expectations(case):
            where = (case["id"], version)
            expected = answer.get(side)
            if side == "subscribe":
                got = outcome(partial(subscribe_queues, case["topic"], route, client_version=version))
                assert pairs(got) == (
                    expected_error(expected["error"]) if isinstance(expected, dict) else expected
                ), where
            elif side == "publish":
                got = outcome(partial(publish_queues, case["topic"], route, client_version=version))
                check_publish_list(got, expected, route, where)
            elif expected is not None:
                endpoints = static_endpoints(case["topic"], route)
                listed = [[queue.broker_name, queue.queue_id, broker] for queue, broker in endpoints.items()]
                assert sorted(listed) == sorted(expected), where
            compared += expected is not None
    assert compared >= 400


def check_publish_list(got: Any, expected: dict[str, Any], route: Route, where: tuple[str, str]) -> None:
    if "error" in expected:
        assert got == expected_error(expected["error"]), where
        return
    assert isinstance(got, PublishList), where
    assert (got.order_topic, got.is_ok) == (expected["order_topic"], expected["ok"]), where
    listed = pairs(list(got.queues))
    if order_is_of_hash_map(route):
        assert [number for _, number in listed] == [number for _, number in expected["queues"]], where
        assert sorted(listed) == sorted(expected["queues"]), where
    else:
        assert listed == expected["queues"], where


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
