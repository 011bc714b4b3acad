"""Every strategy answers every case as the Java classes of every version did."""

from __future__ import annotations

from typing import Any

import pytest
from golden_cases import cases, expectations, expected_queues, outcome, queues

from strategies import get_strategy


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
def test_answers_what_the_java_classes_answered(strategy: str) -> None:
    compared = 0
    for case in cases("allocate"):
        if case["strategy"] != strategy:
            continue
        listed = queues(case["mq_all"])
        for version, answer in expectations(case):
            rule = get_strategy(strategy, client_version=version)
            assert rule.name == answer["name"]
            for client_id, expected in zip(case["asked"], answer["by_cid"], strict=True):
                got: Any = outcome(lambda: rule.allocate(case["group"], client_id, listed, case["cid_all"]))  # noqa: B023  called at once
                assert got == expected_queues(expected, listed), (case["id"], version, client_id)
                compared += 1
    assert compared > 1000
