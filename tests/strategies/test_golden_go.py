"""The Go client's strategies compared with the results of rocketmq-client-go 2.1.2 (tests/golden/go writes the vectors)."""

from __future__ import annotations

from typing import Any

from strategies import RocketMQError, get_strategy, sort_client_ids, sort_queues
from tests.support.strategy_golden import cases, queues


def params_of(case: dict[str, Any]) -> dict[str, Any]:
    if case["strategy"] == "MACHINE_ROOM":
        return {"consumer_idcs": case["consumeridcs"]}
    return {"virtual_node_count": case["virtual_nodes"]} if case["strategy"] == "CONSISTENT_HASH" else {}


def test_answers_what_the_go_client_answered() -> None:
    compared, panics = 0, 0
    for case in cases("go_allocate"):
        listed = queues(case["mq_all"]) or []
        strategy = get_strategy(case["strategy"], client_language="GO", **params_of(case))
        for client_id, expected in zip(case["asked"], case["answers"], strict=True):
            where = (case["id"], client_id)
            try:
                got: Any = strategy.allocate("G", client_id, listed, case["cid_all"])
            except RocketMQError as error:
                got = (error.java_class, str(error))
            if "panic" in expected:
                assert got == ("panic", expected["panic"]), where
                panics += 1
            else:
                assert got == [listed[position] for position in expected["positions"]], where
            compared += 1
    assert compared > 5_000
    assert panics > 100


def test_go_sorts_by_byte() -> None:
    for case in cases("go_allocate"):
        listed = queues(case["mq_all"]) or []
        assert sort_queues(reversed(listed), "GO") == listed
        assert sort_client_ids(reversed(case["cid_all"]), "GO") == case["cid_all"]
