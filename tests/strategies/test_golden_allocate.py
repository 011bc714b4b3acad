"""Every strategy answers every case as the Java classes of every version did."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from strategy_golden import (
    cases,
    expectations,
    expected_error,
    expected_queues,
    outcome,
    queues,
    strategy_of,
)

from strategies import Strategy


@pytest.mark.parametrize(
    ("name", "least_comparisons"),
    [
        ("AVG", 20_000),
        ("AVG_BY_CIRCLE", 20_000),
        ("CONFIG", 2_000),
        ("CONSISTENT_HASH", 40_000),
        ("MACHINE_ROOM", 25_000),
        ("MACHINE_ROOM_NEARBY", 35_000),
    ],
)
def test_answers_what_the_java_classes_answered(name: str, least_comparisons: int) -> None:
    compared = 0
    for case in cases("allocate"):
        if case["strategy"] != name:
            continue
        listed = queues(case["mq_all"])
        for version, answer in expectations(case):
            strategy: Any = outcome(partial(strategy_of, name, case.get("params"), version))
            if "constructor" in answer:
                assert strategy == expected_error(answer["constructor"]["error"]), (case["id"], version)
                continue
            assert isinstance(strategy, Strategy)
            assert strategy.name == answer["name"]
            for client_id, expected in zip(case["asked"], answer["by_cid"], strict=True):
                got = outcome(partial(strategy.allocate, case["group"], client_id, listed, case["cid_all"]))
                assert got == expected_queues(expected, listed), (case["id"], version, client_id)
                compared += 1
    assert compared >= least_comparisons
