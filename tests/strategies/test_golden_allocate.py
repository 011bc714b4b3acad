"""Every strategy returns the same result for every case as the Java classes of every version."""

from __future__ import annotations

import pytest

from tests.support.golden_checks import check_allocate
from tests.support.strategy_golden import cases, expectations


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
    compared = sum(
        check_allocate(case, version, answer)
        for case in cases("allocate")
        if case["strategy"] == name
        for version, answer in expectations(case)
    )
    assert compared >= least_comparisons
