"""Each fault injected into a group's state violates its own expectation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from expectations.suites import metrics, presence, thresholds
from rebalance_ledger.rocketmq import system_groups as groups
from tests.support.staged_day import BROKERS, Row, StagedDay, healthy_day

if TYPE_CHECKING:
    from collections.abc import Callable


JUDGED = {expectation.expectation_id for expectation in presence.SUITE.expectations}
STATEMENTS = [text for text in metrics.METRIC_STATEMENTS if any(f"'{name}'" in text for name in JUDGED)]
FAULTS: dict[str, tuple[Callable[[StagedDay, str], None], set[str]]] = {}
QUEUE = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}


def fault(*expected: str) -> Callable[[Callable[[StagedDay, str], None]], Callable[[StagedDay, str], None]]:
    """Register a fault, injected into a group named like the function, and the expectations that must detect it."""

    def register(plant: Callable[[StagedDay, str], None]) -> Callable[[StagedDay, str], None]:
        FAULTS[plant.__name__] = (plant, set(expected))
        return plant

    return register


def offline(day: StagedDay, group: str) -> Row:
    """Add a group that every broker reports as offline."""
    return day.add_silent_group(group, "orders", "offline", "group_offline")


@fault("assignment_fairness.absence_proven")
def a_broker_gave_no_answer(day: StagedDay, group: str) -> None:
    offline(day, group)
    day.of("group_presence", consumer_group=group)[0]["state"] = "unknown"


@fault("assignment_fairness.absence_proven")
def a_registered_broker_was_not_asked(day: StagedDay, group: str) -> None:
    offline(day, group)
    day.remove("group_presence", consumer_group=group, broker_name=BROKERS[0])


@fault("assignment_fairness.absence_proven")
def a_broker_has_it_online(day: StagedDay, group: str) -> None:
    offline(day, group)
    day.of("group_presence", consumer_group=group)[0]["state"] = "online"


@fault("assignment_fairness.absence_proven")
def a_proxy_has_it_online(day: StagedDay, group: str) -> None:
    offline(day, group)
    day.add("proxy_presence", proxy="p:8080", consumer_group=group, state="online")


@fault("assignment_fairness.absence_proven")
def it_has_a_pop_retry_topic(day: StagedDay, group: str) -> None:
    offline(day, group)
    day.remove("proxy_presence", consumer_group=group)
    day.add("consume_progress", consumer_group=group, **QUEUE, consumer_offset=4, pull_offset=4)
    day.add("topic_config", broker_name="broker-a", topic=f"%RETRY%{group}+orders")


@fault("assignment_fairness.absence_proven")
def its_messages_are_in_flight(day: StagedDay, group: str) -> None:
    offline(day, group)
    day.add("consume_progress", consumer_group=group, **QUEUE, consumer_offset=4, pull_offset=5)


@fault("assignment_fairness.absence_proven")
def its_offsets_moved(day: StagedDay, group: str) -> None:
    offline(day, group)
    day.add("consume_progress", consumer_group=group, **QUEUE, consumer_offset=5, pull_offset=5)
    day.before["consume_progress"].append({"consumer_group": group, **QUEUE, "consumer_offset": 4})


@fault("assignment_fairness.group_state_known", "assignment_fairness.group_state_has_evidence")
def unknown_without_a_reason(day: StagedDay, group: str) -> None:
    day.add_silent_group(group, "orders", "unknown", "members_unknown")["group_state_reason"] = None


@fault("assignment_fairness.group_state_known", "ownership_drift.group_state_same")
def another_state_for_one_strategy(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.of("assignment_fairness", consumer_group=group, is_effective=False)[0]["group_state"] = "broadcasting"


@fault("assignment_fairness.group_state_has_evidence")
def unknown_for_an_invented_reason(day: StagedDay, group: str) -> None:
    row = day.add_silent_group(group, "orders", "unknown", "members_unknown")
    row["group_state_reason"] = "offsets_moved"


@fault("assignment_fairness.group_state_has_evidence")
def only_a_broker_outside_the_route_lists_it(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    for row in day.of("group_presence", consumer_group=group):
        row["broker_name"] = "broker-z"


@fault("ownership_drift.group_state_same")
def another_state_in_drift(day: StagedDay, group: str) -> None:
    from tests.support.staged_drift import add_drift

    offline(day, group)
    add_drift(day, group)[0]["group_state"] = "unknown"


@fault(
    "assignment_fairness.users_groups_only",
    "ownership_drift.users_groups_only",
    "broadcast_offset_file.users_groups_only",
    "finding.users_groups_only",
)
def a_group_of_rocketmqs_own(day: StagedDay, group: str) -> None:
    own = f"{groups.SYSTEM_GROUP_PREFIX}%{group}"
    offline(day, own)
    day.add("proxy_presence", proxy="p:8080", consumer_group=own, state="offline")
    day.add("broadcast_offset_file", consumer_group=own, client_id="c1", state="unknown")
    day.add_finding(consumer_group=own)


@pytest.fixture(scope="module")
def corrupted_metrics() -> dict[str, Row]:
    day = with_brokers(healthy_day())
    for name, (plant, _) in FAULTS.items():
        day.add("proxy_presence", proxy="p:8080", consumer_group=name, state="offline")
        plant(day, name)
    return {row["expectation_id"]: row for row in day.measure(STATEMENTS)}


def with_brokers(day: StagedDay) -> StagedDay:
    """Register the day's brokers at a name server, and add a proxy that reports its groups as offline."""
    for broker in BROKERS:
        day.add("broker", nameserver="ns:9876", broker_name=broker, broker_id=0, broker_addr=f"{broker}:1")
    for group in sorted({row["consumer_group"] for row in day.rows["assignment_fairness"]}):
        day.add("proxy_presence", proxy="p:8080", consumer_group=group, state="offline")
    return day


def test_a_valid_day_violates_nothing() -> None:
    measured = {row["expectation_id"]: row for row in with_brokers(healthy_day()).measure(STATEMENTS)}

    assert {name: row for name, row in measured.items() if row["observed"] and name in JUDGED} == {}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_violates_its_own_expectation(name: str, corrupted_metrics: dict[str, Row]) -> None:
    seen = {
        expectation_id
        for expectation_id in JUDGED
        if any(
            re.search(rf"(?<![\w-]){name}(?![\w-])", example)
            for example in corrupted_metrics[expectation_id]["examples"]
        )
    }

    assert seen == FAULTS[name][1]


def test_the_gate_and_the_job_know_the_same_system_groups() -> None:
    assert set(thresholds.SYSTEM_GROUPS) == groups.SYSTEM_GROUPS
    assert thresholds.SYSTEM_GROUP_PREFIX == groups.SYSTEM_GROUP_PREFIX
    assert thresholds.PROXY_HEARTBEAT_GROUP == groups.PROXY_HEARTBEAT_GROUP
