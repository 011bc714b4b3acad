"""Failures of a capture, and its quality."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rebalance_ledger.collectors.admin import Answer, Question
from rebalance_ledger.collectors.tally import Tally, is_failure
from rebalance_ledger.exports.contract import NOT_ASKED
from rebalance_ledger.settings import CaptureQuality
from tests.support.simulated_cluster import refused, silence, success

DEFAULTS = CaptureQuality()


def tally(*answers: tuple[dict[str, Any], Answer], counts_proxies: bool = False) -> Tally:
    counted = Tally(counts_proxies=counts_proxies)
    for fields, answer in answers:
        counted.add(Question(**{"kind": "broker_config", "broker_addr": "a:1", **fields}), answer)
    return counted


@pytest.mark.parametrize(
    ("kind", "answer", "has_failed"),
    [
        ("consumer_connection", success({}), False),
        ("consumer_connection", silence(), True),
        ("consumer_connection", refused(206, "not online"), False),
        ("consumer_connection", refused(16, "no permission"), True),
        ("consumer_connection", refused(1, "org.apache.rocketmq.acl.common.AclException: denied"), True),
        ("consumer_connection", refused(1, "system error"), True),
        ("nameserver_route", refused(17, "no route"), False),
        ("broker_message_request_mode", refused(3, "request type 402 not supported"), False),
        ("broker_message_request_mode", Answer(error_type=NOT_ASKED, error_message="release"), False),
        ("consumer_running_info", refused(1, "The Consumer <g> <c> not online"), False),
        ("consumer_running_info", refused(207, "Timeout"), False),
        ("consumer_running_info", refused(2, "system busy"), True),
        ("consumer_running_info", silence(), True),
    ],
)
def test_answers_are_distinguished_from_failures(kind: str, answer: Answer, *, has_failed: bool) -> None:
    assert is_failure(kind, answer) == has_failed


@pytest.mark.parametrize(
    ("failed", "quality"), [(0, "complete"), (5, "complete"), (6, "degraded"), (51, "failed")]
)
def test_the_failure_rate_decides_the_quality(failed: int, quality: str) -> None:
    answers = [({}, silence() if number < failed else success({})) for number in range(100)]
    assert tally(*answers).verdict(DEFAULTS) == quality


def test_a_group_without_an_answer_from_any_broker_degrades_the_capture() -> None:
    many = [({}, success({}))] * 1000
    unanswered = ({"kind": "consumer_connection", "group": "g"}, silence())
    answered = ({"kind": "consumer_connection", "group": "g", "broker_addr": "b:1"}, success({}))
    assert tally(*many, unanswered).verdict(DEFAULTS) == "degraded"
    assert tally(*many, unanswered, answered).verdict(DEFAULTS) == "complete"
    assert tally(*many, answered, unanswered).verdict(DEFAULTS) == "complete"


def test_a_group_without_read_permission_is_reported_as_such() -> None:
    counted = tally(
        *[({}, success({}))] * 1000, ({"kind": "consumer_connection", "group": "g"}, refused(16, "no"))
    )
    assert counted.verdict(DEFAULTS) == "complete"
    assert counted.refused == {"consumer_connection": 1}


def test_one_answering_name_server_is_enough_for_a_topic() -> None:
    fields = {"kind": "nameserver_route", "topic": "t", "broker_addr": ""}
    up, down = (fields | {"nameserver": "up:1"}, success({})), (fields | {"nameserver": "down:1"}, silence())
    for order in ((up, down), (down, up)):
        assert (tally(*order).asked_count, tally(*order).failed_count) == (1, 0)
    assert tally(down, down).failed_count == 1


def test_the_document_counts_failures_by_kind_server_and_group() -> None:
    counted = tally(({"group": "g"}, silence()), ({"broker_addr": "b:1"}, success({})))
    assert counted.document() == {
        "asked_count": 2,
        "failed_count": 1,
        "failed_by_kind": {"broker_config": {"asked": 2, "failed": 1}},
        "failed_by_server": {"a:1": {"asked": 1, "failed": 1}},
        "failed_by_group": {"g": {"asked": 1, "failed": 1}},
        "unanswered_group_count": 0,
    }


def test_thresholds_are_in_order() -> None:
    with pytest.raises(ValidationError, match="degraded_above must not be above failed_above"):
        CaptureQuality(degraded_above=0.6, failed_above=0.5)
