"""Checks of the library against the answers of the Java classes, for one case and one release at a time.

Belongs here: one check per golden family; it raises AssertionError at the first difference and returns the number of
compared answers. The golden tests pass cases from files, the differential tests generated ones.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rebalance_ledger.rocketmq import java_strings as java
from rebalance_ledger.rocketmq.routes import (
    BrokerData,
    PublishList,
    QueueData,
    Route,
    TopicQueueMapping,
    publish_queues,
    static_endpoints,
    subscribe_queues,
)
from strategies import (
    ClientView,
    MessageModel,
    MessageQueue,
    Reason,
    Rebalanced,
    Strategy,
    get_strategy,
    rebalance_by_topic,
)
from strategies.consistent_hash import ring_hashes
from strategies.pop import allocate_for_pop
from strategies.producer import BrokerFaults, QueueSelector, isolation_ms, select_by_hash
from tests.support.strategy_golden import expected_error, expected_queues, outcome, queues, strategy_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[dict[str, Any], str, dict[str, Any]], int]


def check_allocate(case: dict[str, Any], version: str, answer: dict[str, Any]) -> int:
    strategy: Any = outcome(partial(strategy_of, case["strategy"], case.get("params"), version))
    if "constructor" in answer:
        assert strategy == expected_error(answer["constructor"]["error"]), (case["id"], version)
        return 0
    assert isinstance(strategy, Strategy), (case["id"], version, strategy)
    assert strategy.name == answer["name"], (case["id"], version)
    listed = queues(case["mq_all"])
    for client_id, expected in zip(case["asked"], answer["by_cid"], strict=True):
        got = outcome(partial(strategy.allocate, case["group"], client_id, listed, case["cid_all"]))
        assert got == expected_queues(expected, listed), (case["id"], version, client_id, got, expected)
    return len(case["asked"])


def check_rebalance(case: dict[str, Any], version: str, answer: dict[str, Any]) -> int:
    listed, strategy = queues(case["mq_set"]), strategy_of(case["strategy"], case.get("params"), version)
    places = answer["sorted_mq"]
    ordered = None if places is None else tuple((listed or [])[place] for place in places)
    for client_id, expected in zip(case["asked"], answer["by_cid"], strict=True):
        view = ClientView(
            consumer_group=case["group"],
            client_id=client_id,
            topic=case["topic"],
            queues=listed,
            client_ids=case["cid_all"],
            held=queues(case["held"]) or (),
            message_model=MessageModel(case.get("model") or "CLUSTERING"),
        )
        got = rebalance_by_topic(strategy, view, client_version=version)
        where = (case["id"], version, client_id, got, expected)
        assert got.sorted_queues == ordered, where
        assert list(got.sorted_client_ids or ()) == (answer["sorted_cid"] or []), where
        _check_round(got, expected, ordered or (), where)
    return len(case["asked"])


def _check_round(
    got: Rebalanced, expected: dict[str, Any], ordered: tuple[MessageQueue, ...], where: tuple[Any, ...]
) -> None:
    table = [ordered[item] if isinstance(item, int) else MessageQueue(*item) for item in expected["table"]]
    assert list(got.table) == table, where
    assert [list(call) for call in got.listener_calls] == expected["listener"], where
    assert got.balanced == expected.get("balanced"), where
    thrown = expected.get("strategy")
    assert (got.reason is Reason.STRATEGY_RETURNED_NULL) == (thrown == "null"), where
    if isinstance(thrown, dict):
        assert got.error is not None, where
        error = got.error

        def raised() -> None:
            raise error

        assert outcome(raised) == expected_error(thrown["error"]), where
    else:
        assert got.error is None, where


def check_queues_from_route(case: dict[str, Any], version: str, answer: dict[str, Any]) -> int:
    where, topic, route = (case["id"], version), case["topic"], route_of(case["route"])
    subscribed = outcome(partial(subscribe_queues, topic, route, client_version=version))
    expected = answer["subscribe"]
    if isinstance(expected, dict):
        assert subscribed == expected_error(expected["error"]), (where, subscribed, expected)
    else:
        assert pairs(subscribed) == expected, (where, subscribed, expected)
    published = outcome(partial(publish_queues, topic, route, client_version=version))
    _check_publish_list(published, answer["publish"], route, where)
    if "endpoints" in answer:
        endpoints = static_endpoints(topic, route)
        listed = [[queue.broker_name, queue.queue_id, broker] for queue, broker in endpoints.items()]
        assert sorted(listed) == sorted(answer["endpoints"]), where
    return len(answer)


def _check_publish_list(got: Any, expected: dict[str, Any], route: Route, where: tuple[str, str]) -> None:
    if "error" in expected:
        assert got == expected_error(expected["error"]), (where, got, expected)
        return
    assert isinstance(got, PublishList), (where, got, expected)
    assert (got.order_topic, got.is_ok) == (expected["order_topic"], expected["ok"]), where
    listed = pairs(list(got.queues))
    if order_is_of_hash_map(route):
        assert [number for _, number in listed] == [number for _, number in expected["queues"]], where
        assert sorted(listed) == sorted(expected["queues"]), where
    else:
        assert listed == expected["queues"], (where, listed, expected)


def route_of(described: dict[str, Any]) -> Route:
    queue_datas, broker_datas = described.get("queueDatas"), described.get("brokerDatas")
    mappings = described.get("topicQueueMappingByBroker")
    return Route(
        queue_datas=queue_datas
        and [
            QueueData(data["brokerName"], data["perm"], data["readQueueNums"], data["writeQueueNums"])
            for data in queue_datas
        ],
        broker_datas=broker_datas
        and [
            BrokerData(
                data["brokerName"], {int(number): addr for number, addr in data["brokerAddrs"].items()}
            )
            for data in broker_datas
        ],
        order_topic_conf=described.get("orderTopicConf"),
        topic_queue_mapping_by_broker=mappings
        and {
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


def pairs(listed: list[MessageQueue]) -> list[list[Any]]:
    """Return queues in the format of the golden vectors of routes."""
    return [[queue.broker_name, queue.queue_id] for queue in listed]


def order_is_of_hash_map(route: Route) -> bool:
    """Return whether Java's publish list has the order of a Java hash map."""
    mappings = (route.topic_queue_mapping_by_broker or {}).values()
    return route.order_topic_conf is None and len({mapping.scope for mapping in mappings}) > 1


HASH_CODE: dict[str, Callable[[Any], int | None]] = {
    "String": java.hash_code,
    "Integer": int,
    "Long": java.long_hash_code,
    "null": lambda _: None,
}


def check_producer_select(case: dict[str, Any], version: str, answer: dict[str, Any]) -> int:
    where = (case["id"], version)
    if case["api"] == "select_by_hash":
        listed = [MessageQueue("T", "b", number) for number in range(case["queue_count"])]
        for (kind, value), expected in zip(case["args"], answer["positions"], strict=True):
            got = outcome(partial(select_by_hash, listed, HASH_CODE[kind](value), client_version=version))
            assert got == _chosen(expected, listed), (where, kind, value, got, expected)
        return len(case["args"])
    if case["api"] == "isolation":
        for (latency_ms, isolation), expected in zip(case["sent"], answer["isolation_ms"], strict=True):
            got = isolation_ms(latency_ms, isolation=isolation, client_version=version)
            assert got == expected, (where, latency_ms, isolation, got, expected)
        return len(case["sent"])
    if case["api"] == "latency_faults":
        return _check_latency_faults(case, version, answer)
    listed = queues(case["queues"]) or []
    selector = QueueSelector(listed, start=case["start"], client_version=version)
    for step, last_broker in enumerate(case["calls"]):
        got = outcome(partial(selector.select, last_broker))
        expected = answer["positions"][step]
        assert got == _chosen(expected, listed), (where, step, got, expected)
        assert selector.index == answer["index_after"][step], (where, step)
    return len(case["calls"])


def _check_latency_faults(case: dict[str, Any], version: str, answer: dict[str, Any]) -> int:
    described = case["faults"]
    faults = BrokerFaults(
        unavailable=frozenset(described["unavailable"]),
        unreachable=frozenset(described["unreachable"]),
        least_bad=described["least_bad"],
        write_queue_nums=described["write_queue_nums"],
    )
    selector = QueueSelector(queues(case["queues"]) or [], start=case["start"], client_version=version)
    for step, last_broker in enumerate(case["calls"]):
        got = outcome(partial(selector.select_with_faults, faults, last_broker))
        expected = answer["chosen"][step]
        wanted = expected_error(expected["error"]) if isinstance(expected, dict) else MessageQueue(*expected)
        assert got == wanted, (case["id"], version, step, got, expected)
        assert selector.index == answer["index_after"][step], (case["id"], version, step, selector.index)
    assert selector.queues == queues(answer["queues_after"]), (case["id"], version)
    return len(case["calls"])


def _chosen(position: Any, listed: list[MessageQueue]) -> Any:
    return expected_error(position["error"]) if isinstance(position, dict) else listed[position]


def check_pop(case: dict[str, Any], version: str, answer: dict[str, Any]) -> int:
    listed, strategy = queues(case["mq_all"]), get_strategy(case["strategy"], client_version=version)
    for client_id, expected in zip(case["asked"], answer["by_cid"], strict=True):
        arguments = (strategy, case["group"], client_id, listed, case["cid_all"], case["share"])
        got = outcome(partial(allocate_for_pop, *arguments))
        assert got == expected_queues(expected, listed), (case["id"], version, client_id, got, expected)
    return len(case["asked"])


def check_hash(case: dict[str, Any], version: str, answer: dict[str, Any]) -> int:
    got: dict[str, Any] = {}
    if case["kind"] == "string":
        got["hash_code"] = [java.hash_code(text) for text in case["values"]]
        got["ring_hash"] = ring_hashes(case["values"]).tolist()
    elif case["kind"] == "queue":
        listed = [MessageQueue(*fields) for fields in case["values"]]
        got["hash_code"] = [queue.hash_code() for queue in listed]
        got["to_string"] = [str(queue) for queue in listed]
        got["ring_hash"] = ring_hashes(map(str, listed)).tolist()
    elif case["kind"] == "compare_string":
        keys = [(java.order_key(one), java.order_key(other)) for one, other in case["pairs"]]
        got["sign"] = [(one > other) - (one < other) for one, other in keys]
    elif case["kind"] == "compare_queue":
        compared = [(MessageQueue(*one), MessageQueue(*other)) for one, other in case["pairs"]]
        got["sign_and_equals"] = [[_sign(one.compare_to(other)), one == other] for one, other in compared]
    else:
        assert case["kind"] == "split"
        got["parts"] = [java.split(text, case["regex"]) for text in case["values"]]
    for name, values in got.items():
        for item, ours, theirs in zip(case.get("values") or case["pairs"], values, answer[name], strict=True):
            assert ours == theirs, (case["id"], version, name, item, ours, theirs)
    return sum(map(len, got.values()))


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


CHECKS: dict[str, Check] = {
    "allocate": check_allocate,
    "hash": check_hash,
    "pop": check_pop,
    "producer_select": check_producer_select,
    "queues_from_route": check_queues_from_route,
    "rebalance": check_rebalance,
}
