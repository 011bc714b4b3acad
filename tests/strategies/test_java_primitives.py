"""Strings, queues and 32-bit numbers behave as they do in Java."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_ledger.rocketmq import java_strings as java
from strategies import MessageQueue, RocketMQError, sort_client_ids, sort_queues
from tests.support.golden_checks import check_hash
from tests.support.strategy_golden import cases, expectations

GOLDEN = list(cases("hash"))


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_primitives_are_those_of_the_java_classes(case: dict[str, Any]) -> None:
    compared = sum(check_hash(case, version, answer) for version, answer in expectations(case))
    assert compared > 0


def test_surrogates_sort_below_the_private_use_area() -> None:
    assert sort_client_ids(["\uffee", "\U0001f600", "a"]) == ["a", "\U0001f600", "\uffee"]
    assert sort_client_ids(["\uffee", "\U0001f600", "a"], "GO") == ["a", "\uffee", "\U0001f600"]


def test_an_unpaired_surrogate_is_encoded_as_one_question_mark() -> None:
    assert java.encode("a\ud800b") == b"a?b"
    assert java.encode("\ud83d\ude00") == "\U0001f600".encode()
    assert java.encode("\u4e2d\U0001f600", "iso-8859-1") == b"??"


def test_whitespace_is_javas() -> None:
    assert java.is_blank("\t\x1f\u2028\u3000 ")
    assert not any(java.is_blank(text) for text in ("\u00a0", "\u2007", "\u202f", "\x85", "\u180e", "a "))


def test_queue_ids_are_compared_by_a_subtraction_that_may_overflow() -> None:
    low, high = MessageQueue("T", "b", -(2**31)), MessageQueue("T", "b", 1)
    assert low > high
    assert sort_queues([low, high]) == [high, low]


def test_a_null_name_cannot_be_sorted() -> None:
    nameless = MessageQueue("T", None, 0)
    assert sort_queues([nameless]) == [nameless]
    with pytest.raises(RocketMQError) as caught:
        sort_queues([nameless, MessageQueue("T", "b", 0)])
    assert caught.value.java_class == "NullPointerException"


queues = st.builds(
    MessageQueue, st.sampled_from(["T", "%RETRY%G"]), st.text(max_size=3), st.integers(0, 2**31 - 1)
)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(listed=st.lists(queues, max_size=8))
def test_sorted_queues_are_in_compare_order(listed: list[MessageQueue]) -> None:
    ordered = sort_queues(listed)
    assert all(not one > other for one, other in itertools.pairwise(ordered))
    assert sorted(ordered, key=str) == sorted(listed, key=str)
