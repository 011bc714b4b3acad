"""A broker's answer to a client that does not rebalance itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strategies import ClientView, MessageModel, MessageQueue
from strategies.pop import (
    RequestMode,
    RequestSetting,
    effective_setting,
    query_assignment,
)
from tests.support.golden_checks import check_pop
from tests.support.strategy_golden import cases, expectations


def test_shares_are_those_of_the_java_broker() -> None:
    compared = sum(
        check_pop(case, version, answer) for case in cases("pop") for version, answer in expectations(case)
    )
    assert compared > 7_000


QUEUES = [MessageQueue("T", "broker-a", number) for number in range(4)]
VIEW = ClientView("G", "c1", "T", QUEUES, ["c4", "c1", "c3", "c2"])
PULL, POP_1 = RequestSetting(), RequestSetting(RequestMode.POP, 1)


def test_a_client_that_pulls_gets_the_strategys_share() -> None:
    assert query_assignment("AVG", VIEW, PULL, broker_name="broker-a") == {QUEUES[0]}


def test_a_client_that_pops_shares_the_queues_of_the_next_clients() -> None:
    assert query_assignment("AVG", VIEW, POP_1, broker_name="broker-a") == {QUEUES[0], QUEUES[1]}


@pytest.mark.parametrize("share", [-1, 0, 3])
def test_shared_by_all_a_broker_appears_once_with_the_id_that_means_any_queue(share: int) -> None:
    setting = RequestSetting(RequestMode.POP, share)
    answer = query_assignment("AVG", replace(VIEW, client_id="stranger"), setting, broker_name="broker-a")
    assert answer == {MessageQueue("T", "broker-a", -1)}


def test_without_an_answer_the_client_keeps_what_it_has() -> None:
    assert query_assignment("CONSISTENT_HASH", VIEW, PULL, broker_name="broker-a") is None
    assert query_assignment("AVG", replace(VIEW, queues=None), PULL, broker_name="broker-a") is None
    assert query_assignment("AVG", replace(VIEW, client_ids=None), PULL, broker_name="broker-a") is None
    assert query_assignment("AVG", replace(VIEW, queues=[]), PULL, broker_name="broker-a") is None


def test_broadcasting_or_with_the_balancer_off_every_client_gets_every_queue() -> None:
    everything = frozenset(QUEUES)
    broadcasting = replace(VIEW, message_model=MessageModel.BROADCASTING)
    assert query_assignment("AVG", broadcasting, POP_1, broker_name="broker-a") == everything
    off = query_assignment("OTHER", VIEW, POP_1, broker_name="broker-a", server_load_balancer_enable=False)
    assert off == everything


def test_a_light_message_queue_has_one_queue_on_the_broker_that_answers() -> None:
    view = ClientView("G", "c1", "%LMQ%device-7", None, ["c1"])
    assert query_assignment("AVG", view, PULL, broker_name="broker-b") == {
        MessageQueue("%LMQ%device-7", "broker-b", 0)
    }


def test_a_retry_topic_is_pulled_unless_it_has_an_entry_of_its_own() -> None:
    assert effective_setting("%RETRY%G", None, POP_1) == PULL
    assert effective_setting("T", None, POP_1) == POP_1
    assert effective_setting("%RETRY%G", POP_1, PULL) == POP_1
