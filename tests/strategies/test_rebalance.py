"""Clients' handling of the strategy's result, and of missing or empty lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strategies import (
    ClientView,
    Effect,
    MessageModel,
    MessageQueue,
    Reason,
    Rebalanced,
    get_strategy,
    rebalance_by_topic,
    retry_topic,
)
from tests.support.golden_checks import check_rebalance
from tests.support.strategy_golden import cases, expectations

QUEUES = tuple(
    MessageQueue("TopicTest", broker, number) for broker in ("broker-a", "broker-b") for number in (0, 1)
)
HELD = (QUEUES[0], MessageQueue("TopicTest", "gone-broker", 0))
VIEW = ClientView(
    consumer_group="G", client_id="c1", topic="TopicTest", queues=QUEUES, client_ids=["c2", "c1"], held=HELD
)


def one_round(view: ClientView, language: str = "JAVA", version: str = "5.3.3", **params: Any) -> Rebalanced:
    strategy = get_strategy("AVG", client_language=language, client_version=version, **params)
    return rebalance_by_topic(strategy, view, client_language=language, client_version=version)


def test_every_round_ends_as_it_did_in_the_java_client() -> None:
    compared = sum(
        check_rebalance(case, version, answer)
        for case in cases("rebalance")
        for version, answer in expectations(case)
    )
    assert compared > 13_000


def test_a_share_replaces_what_was_held() -> None:
    ended = one_round(VIEW)
    assert (ended.effect, ended.reason) == (Effect.APPLIED, Reason.STRATEGY_ANSWERED)
    assert ended.assigned == ended.table == QUEUES[:2]
    assert ended.listener_calls == ((4, 2),)
    assert ended.balanced is True


def test_a_client_that_the_group_does_not_list_drops_everything() -> None:
    ended = one_round(replace(VIEW, client_id="stranger"))
    assert (ended.effect, ended.reason, ended.table) == (Effect.DROPPED, Reason.OWN_ID_MISSING, ())


def test_more_clients_than_queues_leave_some_without_a_share() -> None:
    ended = one_round(replace(VIEW, client_id="c9", client_ids=[f"c{number}" for number in range(1, 10)]))
    assert (ended.effect, ended.reason) == (Effect.DROPPED, Reason.NO_SHARE)


@pytest.mark.parametrize(
    ("changes", "language", "version", "effect", "reason", "balanced"),
    [
        ({"queues": None}, "JAVA", "5.3.3", Effect.KEPT, Reason.QUEUES_UNKNOWN, True),
        ({"queues": ()}, "JAVA", "4.9.8", Effect.KEPT, Reason.QUEUES_EMPTY, None),
        ({"queues": ()}, "JAVA", "5.4.0", Effect.KEPT, Reason.QUEUES_EMPTY, False),
        ({"queues": ()}, "JAVA", "5.5.0", Effect.KEPT, Reason.QUEUES_EMPTY, True),
        ({"queues": ()}, "GO", "5.3.3", Effect.DROPPED, Reason.QUEUES_EMPTY, None),
        ({"queues": ()}, "CPP", "5.3.3", Effect.KEPT, Reason.QUEUES_EMPTY, None),
        ({"client_ids": None}, "JAVA", "5.3.3", Effect.KEPT, Reason.CLIENTS_UNKNOWN, True),
        ({"client_ids": None}, "GO", "5.3.3", Effect.KEPT, Reason.CLIENTS_UNKNOWN, None),
        ({"client_ids": ()}, "JAVA", "5.3.3", Effect.KEPT, Reason.CLIENTS_EMPTY, False),
        ({"client_ids": ()}, "JAVA", "5.5.0", Effect.KEPT, Reason.CLIENTS_EMPTY, True),
        ({"client_ids": ()}, "GO", "5.3.3", Effect.DROPPED, Reason.CLIENTS_EMPTY, None),
        ({"client_ids": ()}, "CPP", "5.3.3", Effect.KEPT, Reason.CLIENTS_EMPTY, None),
    ],
)
def test_a_missing_or_empty_list_keeps_the_assignment_or_drops_it(
    changes: dict[str, Any],
    language: str,
    version: str,
    effect: Effect,
    reason: Reason,
    *,
    balanced: bool | None,
) -> None:
    ended = one_round(replace(VIEW, **changes), language, version)
    assert (ended.effect, ended.reason, ended.balanced) == (effect, reason, balanced)
    assert ended.table == (HELD if effect is Effect.KEPT else ())
    assert ended.ends_round == (language == "CPP")


def test_a_broadcasting_client_takes_every_queue_and_asks_nobody() -> None:
    ended = one_round(replace(VIEW, client_ids=None, message_model=MessageModel.BROADCASTING))
    assert (ended.effect, ended.reason, ended.table) == (Effect.APPLIED, Reason.EVERY_QUEUE, QUEUES)


def test_queues_of_topics_that_are_no_longer_subscribed_are_dropped() -> None:
    retry = MessageQueue(retry_topic("G"), "broker-a", 0)
    held = (retry, MessageQueue("Unsubscribed", "broker-a", 0))
    ended = one_round(replace(VIEW, held=held, other_topics=[retry_topic("G")]))
    assert ended.table == (retry, *QUEUES[:2])


def test_a_configured_list_is_applied_for_the_retry_topic_too_and_never_balances() -> None:
    view = replace(
        VIEW, topic=retry_topic("G"), queues=[MessageQueue(retry_topic("G"), "broker-a", 0)], held=()
    )
    ended = rebalance_by_topic(get_strategy("CONFIG", message_queues=QUEUES[:1]), view)
    assert ended.assigned == QUEUES[:1]
    assert ended.table == ()
    assert ended.balanced is False
