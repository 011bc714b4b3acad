"""Strings, queues and 32-bit numbers behave as they do in Java."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategy_golden import cases, expectations

from strategies import MessageQueue, RocketMQError, java, sort_client_ids, sort_queues
from strategies.consistent_hash import ring_hashes

GOLDEN = list(cases("hash"))


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_primitives_are_those_of_the_java_classes(case: dict[str, list]) -> None:  # type: ignore[type-arg]  JSON
    for _, answer in expectations(case):
        if case["kind"] == "string":
            assert [java.hash_code(text) for text in case["values"]] == answer["hash_code"]
            assert ring_hashes(case["values"]).tolist() == answer["ring_hash"]
        elif case["kind"] == "queue":
            queues = [MessageQueue(*fields) for fields in case["values"]]
            assert [queue.hash_code() for queue in queues] == answer["hash_code"]
            assert [str(queue) for queue in queues] == answer["to_string"]
            assert ring_hashes(map(str, queues)).tolist() == answer["ring_hash"]
        elif case["kind"] == "compare_string":
            keys = [(java.order_key(one), java.order_key(other)) for one, other in case["pairs"]]
            assert [(one > other) - (one < other) for one, other in keys] == answer["sign"]
        elif case["kind"] == "compare_queue":
            pairs = [(MessageQueue(*one), MessageQueue(*other)) for one, other in case["pairs"]]
            got = [[sign(one.compare_to(other)), one == other] for one, other in pairs]
            assert got == answer["sign_and_equals"]
        else:
            assert case["kind"] == "split"
            assert [java.split(text, case["regex"]) for text in case["values"]] == answer["parts"]


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
