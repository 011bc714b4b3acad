"""Each fault injected into drift, divergence and their findings violates its own expectation.

Two days are measured: one is unusual but valid, and in the other each group or topic has a different fault.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from expectations.suites import finding, metrics, ownership_drift, route_divergence
from tests.support.staged_day import BROKERS, NAMESERVERS, Row, StagedDay, healthy_day
from tests.support.staged_drift import add_divergence, add_drift, add_findings
from tests.support.staged_findings import explain, id_of, identify

if TYPE_CHECKING:
    from collections.abc import Callable


JUDGED = {
    expectation.expectation_id
    for suite in (ownership_drift.SUITE, route_divergence.SUITE, finding.SUITE)
    for expectation in suite.expectations
}
STATEMENTS = [text for text in metrics.METRIC_STATEMENTS if any(f"'{name}'" in text for name in JUDGED)]
NUMBERS: Row = {
    "route_state": "known",
    "client_count": 3,
    "unasked_client_count": 0,
    "absent_client_count": 0,
    "shared_client_id_count": 0,
    "repeated_client_id_count": 0,
    "unsubscribed_client_count": 0,
    "member_list_count": 1,
    "divergent_broker_count": 0,
    "strategy_count": 0,
    "language_count": 1,
    "version_count": 1,
    "newest_client_age_ms": None,
}
"""Numbers in the drift rows of a healthy group of three members."""
FAULTS: dict[str, tuple[Callable[[StagedDay, str], None], set[str]]] = {}
EXCUSED: dict[str, Callable[[StagedDay, str], None]] = {}


def fault(*expected: str) -> Callable[[Callable[[StagedDay, str], None]], Callable[[StagedDay, str], None]]:
    """Register a fault, injected into a group or topic named like the function, and the expectations that must detect it."""

    def register(plant: Callable[[StagedDay, str], None]) -> Callable[[StagedDay, str], None]:
        FAULTS[plant.__name__] = (plant, set(expected))
        return plant

    return register


def excused(plant: Callable[[StagedDay, str], None]) -> Callable[[StagedDay, str], None]:
    """Register a valid case that resembles a fault, injected into a group or topic named like the function."""
    EXCUSED[plant.__name__] = plant
    return plant


def group_of_three(day: StagedDay, group: str) -> list[Row]:
    """Add a healthy group of three members; return its drift rows."""
    day.add_group(group, "orders")
    return add_drift(day, group)


def silence(day: StagedDay, group: str, client: str) -> None:
    """Change the client to one that could not be queried."""
    day.of("consumer_client", consumer_group=group, client_id=client)[0]["state"] = "unknown"
    day.remove("observed_owner", consumer_group=group, client_id=client)


def remove_owners(day: StagedDay, group: str, reason: str) -> Row:
    """Remove the expected and the observed owner of queue 0 of broker-a; return the queue's assignment row."""
    queue = {"consumer_group": group, "broker_name": "broker-a", "queue_id": 0}
    day.remove("observed_owner", **queue)
    row = day.of("queue_assignment", **queue, is_effective=True)[0]
    row.update(client_id=None, client_connection_count=None, reason=reason)
    return row


# Faults of gold.ownership_drift


@fault("ownership_drift.queues_accounted")
def dropped_queue_of_drift(day: StagedDay, group: str) -> None:
    group_of_three(day, group)
    day.remove("ownership_drift", consumer_group=group, broker_name="broker-a", queue_id=0)


@fault("ownership_drift.queues_accounted")
def dropped_queue_that_was_only_seen(day: StagedDay, group: str) -> None:
    group_of_three(day, group)
    day.hold(group, "orders", "broker-b", 9, "c1")


@fault("ownership_drift.queues_accounted")
def invented_queue(day: StagedDay, group: str) -> None:
    row = group_of_three(day, group)[0]
    day.rows["ownership_drift"].append(row | {"queue_id": 9})


@fault("ownership_drift.one_row_per_queue")
def queue_reported_twice(day: StagedDay, group: str) -> None:
    day.rows["ownership_drift"].append(dict(group_of_three(day, group)[0]))


@fault("ownership_drift.words_known", "ownership_drift.state_follows_owners")
def state_off_the_list(day: StagedDay, group: str) -> None:
    group_of_three(day, group)[0]["state"] = "so-so"


@fault("ownership_drift.words_known", "finding.cause_known")
def cause_off_the_list(day: StagedDay, group: str) -> None:
    remove_holder(day, group)["likely_cause"] = "bad luck"


def remove_holder(day: StagedDay, group: str) -> Row:
    """Add a group in which no member holds queue 0 of broker-a; return the queue's drift row."""
    day.add_group(group, "orders")
    queue = {"consumer_group": group, "broker_name": "broker-a", "queue_id": 0}
    day.remove("observed_owner", **queue)
    add_drift(day, group)
    return day.of("ownership_drift", **queue)[0]


@fault("ownership_drift.words_known")
def cause_of_a_match(day: StagedDay, group: str) -> None:
    # The evidence exists, but a match has no cause.
    day.add_group(group, "orders", clients=("c1", "c1", "c2"), strategies=("BROADCASTING",))
    add_drift(day, group)[0]["likely_cause"] = "duplicate_client_id"


@fault("ownership_drift.words_known")
def unknown_without_a_reason(day: StagedDay, group: str) -> None:
    day.add_silent_group(group, "orders", "unknown", "members_unknown")
    add_drift(day, group)[0]["unknown_reason"] = None


@fault("ownership_drift.words_known")
def match_with_a_reason(day: StagedDay, group: str) -> None:
    group_of_three(day, group)[0]["unknown_reason"] = "client_unreachable"


@fault("ownership_drift.words_known")
def parameters_of_no_member(day: StagedDay, group: str) -> None:
    group_of_three(day, group)[0]["deviating_parameters"] = "consumeridcs = hz"


@fault("ownership_drift.words_known", "ownership_drift.parameters_explain")
def deviating_member_of_a_match(day: StagedDay, group: str) -> None:
    group_of_three(day, group)[0].update(deviating_client_id="c1", deviating_parameters="consumeridcs = hz")


@fault("ownership_drift.owners_equal_sources")
def another_expected_client(day: StagedDay, group: str) -> None:
    group_of_three(day, group)[0]["expected_client_ids"] = ["c3"]


@fault("ownership_drift.owners_equal_sources")
def empty_where_it_is_unknown(day: StagedDay, group: str) -> None:
    day.add_silent_group(group, "orders", "unknown", "members_unknown")
    add_drift(day, group)[0]["expected_client_ids"] = []


@fault("ownership_drift.owners_equal_sources")
def another_observed_client(day: StagedDay, group: str) -> None:
    group_of_three(day, group)[0]["observed_client_ids"] = ["c3"]


@fault("ownership_drift.owners_equal_sources", "ownership_drift.state_follows_owners")
def duplicate_client_ids_counted_as_one(day: StagedDay, group: str) -> None:
    duplicate_client_ids_that_answered(day, group)
    row = add_drift(day, group)[0]
    row.update(observed_process_count=1, state="match", likely_cause=None)


@fault("ownership_drift.owners_equal_sources", "ownership_drift.state_follows_owners")
def connections_counted_as_processes(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", clients=("c1", "c1", "c2"), strategies=("AVG",))
    row = add_drift(day, group)[0]
    row.update(observed_process_count=2, state="multiple_owners", unknown_reason=None)


@fault("ownership_drift.state_follows_owners")
def id_with_several_connections_called_one_process(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", clients=("c1", "c1", "c2"), strategies=("AVG",))
    add_drift(day, group)[0].update(state="match", unknown_reason=None)


@fault("ownership_drift.state_follows_owners")
def pull_consumer_that_is_said_to_hold_nothing(day: StagedDay, group: str) -> None:
    """Remove the process table from a consumer's answer: the queues that it should own are not unowned."""
    day.add_group(group, "orders")
    for row in day.of("consumer_client", consumer_group=group, client_id="c2"):
        row.update(reports_queues=False, consume_type="CONSUME_ACTIVELY", subscription_count=1)
    day.remove("observed_owner", consumer_group=group, client_id="c2")
    add_drift(day, group)


@fault("ownership_drift.owners_equal_sources", "ownership_drift.state_follows_owners")
def group_that_assigns_by_hand_and_is_expected_to_read_all(day: StagedDay, group: str) -> None:
    day.add_group(group, "config", strategies=("BROADCASTING",), message_model="BROADCASTING")
    for row in day.of("consumer_client", consumer_group=group):
        row.update(reports_queues=True, consume_type="CONSUME_ACTIVELY", subscription_count=0)
    day.remove("observed_owner", consumer_group=group, broker_name="broker-a", client_id="c3")
    add_drift(day, group)


@fault("ownership_drift.owners_equal_sources", "ownership_drift.state_follows_owners")
def processes_out_of_nowhere(day: StagedDay, group: str) -> None:
    group_of_three(day, group)[0].update(observed_process_count=2, state="multiple_owners", likely_cause=None)


@fault("ownership_drift.owners_equal_sources")
def routed_queue_that_is_said_to_be_in_no_route(day: StagedDay, group: str) -> None:
    group_of_three(day, group)[0]["is_routed"] = False


@fault("ownership_drift.state_follows_owners")
def lost_queue_called_a_match(day: StagedDay, group: str) -> None:
    remove_holder(day, group)["state"] = "match"


@fault("ownership_drift.state_follows_owners")
def stranger_called_a_match(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    row = day.of("observed_owner", consumer_group=group, broker_name="broker-a", queue_id=0)[0]
    row["client_id"] = "c3"
    add_drift(day, group)[0]["state"] = "match"


@fault("ownership_drift.state_follows_owners")
def two_owners_called_a_match(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.hold(group, "orders", "broker-a", 0, "c3")
    add_drift(day, group)[0]["state"] = "match"


@fault("ownership_drift.state_follows_owners")
def client_that_was_not_asked_leaves_its_queue_unowned(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    silence(day, group, "c2")
    add_drift(day, group)
    row = day.of("ownership_drift", consumer_group=group, state="unknown")[0]
    row.update(state="unowned", unknown_reason=None)


@fault("ownership_drift.state_follows_owners")
def bad_news_hidden_as_unknown(day: StagedDay, group: str) -> None:
    remove_holder(day, group).update(state="unknown", unknown_reason="client_unreachable")


@fault("ownership_drift.state_follows_owners")
def reader_that_lost_a_broadcast_queue(day: StagedDay, group: str) -> None:
    reader_without_a_queue(day, group)
    for row in day.of("ownership_drift", consumer_group=group, state="unowned"):
        row["state"] = "match"


def reader_without_a_queue(day: StagedDay, group: str) -> None:
    """Add a broadcasting group in which a member that answered does not hold one queue."""
    day.add_group(group, "config", strategies=("BROADCASTING",), message_model="BROADCASTING")
    day.remove("observed_owner", consumer_group=group, broker_name="broker-a", client_id="c3")
    add_drift(day, group)


@fault("ownership_drift.state_follows_owners")
def readers_of_a_broadcast_queue_called_owners(day: StagedDay, group: str) -> None:
    queue_that_all_read_and_no_route_has(day, group).update(state="multiple_owners", likely_cause=None)


def queue_that_all_read_and_no_route_has(day: StagedDay, group: str) -> Row:
    """Add a broadcasting group whose members all hold a queue that is missing from the route; return its drift row."""
    day.add_group(group, "config", strategies=("BROADCASTING",), message_model="BROADCASTING")
    for client in ("c1", "c2", "c3"):
        day.hold(group, "config", "broker-a", 9, client)
    add_drift(day, group)
    return day.of("ownership_drift", consumer_group=group, queue_id=9)[0]


@fault("ownership_drift.cause_has_evidence")
def unreported_mixed_strategies(day: StagedDay, group: str) -> None:
    remove_holder(day, group)["likely_cause"] = "mixed_strategies"


@fault("ownership_drift.cause_has_evidence")
def other_releases_blamed_for_a_queue_that_its_owner_lost(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    for row in day.of("consumer_client", consumer_group=group, client_id="c3"):
        row["client_version"] = "V5_1_0"
    day.remove("observed_owner", consumer_group=group, broker_name="broker-a", queue_id=0)
    add_drift(day, group)[0]["likely_cause"] = "mixed_clients"


@fault("ownership_drift.cause_has_evidence")
def duplicate_client_ids_that_no_broker_lists(day: StagedDay, group: str) -> None:
    remove_holder(day, group)["likely_cause"] = "duplicate_client_id"


@fault("ownership_drift.cause_has_evidence")
def start_long_ago_called_recent(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    for row in day.of("consumer_client", consumer_group=group):
        row.update(captured_at="2026-11-16T12:00:00Z", started_at="2026-11-16T11:50:00Z")
    day.remove("observed_owner", consumer_group=group, broker_name="broker-a", queue_id=0)
    add_drift(day, group)[0]["likely_cause"] = "not_yet_rebalanced"


@fault("ownership_drift.cause_has_evidence")
def name_servers_that_agree_called_at_odds(day: StagedDay, group: str) -> None:
    remove_holder(day, group)["likely_cause"] = "route_views_differ"


@fault("ownership_drift.cause_has_evidence")
def route_that_is_there_called_vanished(day: StagedDay, group: str) -> None:
    remove_holder(day, group)["likely_cause"] = "route_missing"


@fault("ownership_drift.cause_has_evidence")
def lists_that_agree_called_different(day: StagedDay, group: str) -> None:
    remove_holder(day, group)["likely_cause"] = "member_lists_differ"


@fault("ownership_drift.cause_has_evidence")
def members_that_all_pull_called_mixed(day: StagedDay, group: str) -> None:
    remove_holder(day, group)["likely_cause"] = "mixed_request_modes"


@fault("ownership_drift.cause_has_evidence")
def broker_that_divides_blamed_for_two_owners(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    for row in day.of("consumer_client", consumer_group=group):
        row["is_client_rebalance"] = False
    day.hold(group, "orders", "broker-a", 0, "c3")
    add_drift(day, group)[0]["likely_cause"] = "server_load_balancer_off"


@fault("ownership_drift.cause_has_evidence", "ownership_drift.parameters_explain")
def parameters_blamed_where_two_members_deviate(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("CONSISTENT_HASH",))
    for row in day.of("observed_owner", consumer_group=group, broker_name="broker-a"):
        row["client_id"] = "c3" if row["client_id"] == "c1" else "c1"
    for row in add_drift(day, group):
        if row["state"] == "unexpected_owner":
            row.update(
                likely_cause="parameters_differ",
                deviating_client_id="c1",
                deviating_parameters="virtualNodeCnt = 1",
            )


@fault("ownership_drift.words_known", "ownership_drift.parameters_explain")
def odd_member_without_the_cause(day: StagedDay, group: str) -> None:
    remove_holder(day, group).update(deviating_client_id="c1", deviating_parameters="consumeridcs = hz")


@fault("ownership_drift.cause_given")
def gap_without_a_cause(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("CONFIG",))
    remove_owners(day, group, "not_in_config_list")
    add_drift(day, group)[0]["likely_cause"] = None


@fault("process_owner.process_answered")
def process_that_did_not_answer(day: StagedDay, group: str) -> None:
    duplicate_client_ids_that_answered(day, group)
    day.of("client_process", consumer_group=group, process="p1")[0]["process"] = "p9"
    add_drift(day, group)


@fault("ownership_drift.owners_equal_sources", "ownership_drift.state_follows_owners")
def broker_believed_over_the_process(day: StagedDay, group: str) -> None:
    """Add a direct answer of the only process of c1, without one queue. The drift rows still follow the broker's answer."""
    group_of_three(day, group)
    subject = {"consumer_group": group, "client_id": "c1", "process": "p1"}
    day.add("client_process", **subject, state="online")
    for row in day.of("observed_owner", consumer_group=group, client_id="c1")[1:]:
        queue = {name: row[name] for name in ("topic", "broker_name", "queue_id")}
        day.add("process_owner", **subject, **queue, is_pop=False)


def duplicate_client_ids_that_answered(day: StagedDay, group: str) -> None:
    """Add a group in which two processes with the client id c1 both report their process tables."""
    day.add_group(group, "orders", clients=("c1", "c1", "c2"), strategies=("AVG",))
    for process in ("p1", "p2"):
        subject = {"consumer_group": group, "client_id": "c1", "process": process}
        day.add("client_process", **subject, state="online")
        for row in day.of("observed_owner", consumer_group=group, client_id="c1"):
            queue = {name: row[name] for name in ("topic", "broker_name", "queue_id")}
            day.add("process_owner", **subject, **queue, is_pop=False)


def add_numbers(day: StagedDay, group: str) -> list[Row]:
    """Add the numbers of a group of three members to its drift rows; return the rows."""
    rows = group_of_three(day, group)
    for row in rows:
        row.update(NUMBERS)
    return rows


@fault("ownership_drift.numbers_equal_sources")
def a_number_that_differs_between_queues(day: StagedDay, group: str) -> None:
    add_numbers(day, group)[0]["version_count"] = 2


def number(column: str, value: int | str | None) -> None:
    """Register a fault: a different value in all rows of a group."""

    def plant(day: StagedDay, group: str) -> None:
        for row in add_numbers(day, group):
            row[column] = value

    plant.__name__ = f"{column}_is_{value}"
    fault("ownership_drift.numbers_equal_sources")(plant)


for _column, _value in (
    ("route_state", "none"),
    ("client_count", 4),
    ("client_count", None),
    ("unasked_client_count", 1),
    ("absent_client_count", 1),
    ("shared_client_id_count", 1),
    ("repeated_client_id_count", None),
    ("unsubscribed_client_count", 1),
    ("divergent_broker_count", 1),
    ("strategy_count", 1),
    ("language_count", 0),
    ("version_count", 2),
    ("newest_client_age_ms", 1),
):
    number(_column, _value)


@excused
def numbers_of_a_group_that_is_well(day: StagedDay, group: str) -> None:
    add_numbers(day, group)


@excused
def numbers_where_brokers_list_different_members(day: StagedDay, group: str) -> None:
    for row in add_numbers(day, group):
        row["client_count"] = 2
    day.remove("consumer_connection", consumer_group=group, broker_name="broker-b", client_id="c3")


@fault("ownership_drift.owners_equal_sources")
def a_reason_of_an_owner_that_is_there(day: StagedDay, group: str) -> None:
    group_of_three(day, group)[0]["expected_reason"] = "room_without_clients"


@fault("ownership_drift.owners_equal_sources")
def a_release_that_no_client_reports(day: StagedDay, group: str) -> None:
    group_of_three(day, group)[0]["is_being_released"] = True


# Faults of gold.route_divergence


@fault("route_divergence.answers_accounted")
def dropped_answer(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    add_divergence(day, topic)
    day.remove("route_divergence", topic=topic, broker_name="broker-b", nameserver=NAMESERVERS[1])


@fault("route_divergence.answers_accounted")
def invented_answer(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.rows["route_divergence"].append(add_divergence(day, topic)[0] | {"broker_name": "broker-z"})


@fault("route_divergence.words_known", "route_divergence.differences_follow_answers")
def difference_off_the_list(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    add_divergence(day, topic)[0].update(differences=["mood"], state="differs")


@fault("route_divergence.words_known")
def difference_called_the_same(day: StagedDay, topic: str) -> None:
    wiped_on_one_name_server(day, topic)
    add_divergence(day, topic)[0]["state"] = "same"


@fault("route_divergence.words_known")
def silent_name_server_called_the_same(day: StagedDay, topic: str) -> None:
    silent_name_server(day, topic)
    day.of("route_divergence", topic=topic, state="unknown")[0]["state"] = "same"


@fault("route_divergence.answers_equal_sources")
def another_permission(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    add_divergence(day, topic)[0]["perm"] = 2


@fault("route_divergence.answers_equal_sources")
def another_number_of_name_servers(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    add_divergence(day, topic)[0]["nameserver_count"] = 3


@fault("route_divergence.answers_equal_sources")
def an_agreement_that_is_none(day: StagedDay, topic: str) -> None:
    wiped_on_one_name_server(day, topic)
    add_divergence(day, topic)[0]["agreeing_nameserver_count"] = 2


@fault("route_divergence.answers_equal_sources")
def affected_readers_without_a_difference(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    for row in add_divergence(day, topic):
        row["is_read_affected"] = True


@fault("route_divergence.answers_equal_sources")
def another_address(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    add_divergence(day, topic)[0]["broker_addrs"] = ["0=127.0.0.1:1"]


@fault("route_divergence.differences_follow_answers")
def difference_not_reported(day: StagedDay, topic: str) -> None:
    wiped_on_one_name_server(day, topic)
    for row in add_divergence(day, topic):
        row.update(differences=[], state="same")


@fault("route_divergence.differences_follow_answers")
def difference_from_the_broker_not_reported(day: StagedDay, topic: str) -> None:
    broker_with_fewer_queues(day, topic)
    day.of("route_divergence", topic=topic)[0]["differences"] = ["config_read_queues"]


def wiped_on_one_name_server(day: StagedDay, topic: str) -> None:
    """Remove the topic's write permission on broker-a at one name server."""
    day.add_topic(topic)
    row = day.of("topic_route", topic=topic, nameserver=NAMESERVERS[1], broker_name="broker-a")[0]
    row["perm"] = 4


def broker_with_fewer_queues(day: StagedDay, topic: str) -> None:
    """Add a broker that reports fewer queues than its routes contain; it has no other topic."""
    broker = f"broker of {topic}"
    day.add_route_answers(topic, ("payload", "payload"))
    for nameserver in NAMESERVERS:
        day.add_route(nameserver, topic, broker, 4)
    config = {"perm": 6, "read_queue_count": 2, "write_queue_count": 2}
    day.add("topic_config", topic=topic, broker_name=broker, **config)
    file = f"configurations of {broker}"
    day.add_export_file(file)
    day.of("export_record", file=file)[0].update(kind="broker_topic_config", broker_name=broker)
    add_divergence(day, topic)


# Faults between these tables and gold.finding


@fault("finding.drift_has_finding")
def drift_without_a_finding(day: StagedDay, group: str) -> None:
    remove_holder(day, group)
    day.undetermined.add(group)


@fault("finding.drift_has_finding")
def drift_reported_for_a_healthy_group(day: StagedDay, group: str) -> None:
    group_of_three(day, group)
    day.add_finding(kind="multiple_owners", consumer_group=group, topic="orders", queue_count=1)


@fault("finding.drift_has_finding")
def drift_reported_with_another_cause(day: StagedDay, group: str) -> None:
    remove_holder(day, group)
    add_findings(day)
    row = day.of("finding", consumer_group=group)[0]
    row.update(likely_cause="not_yet_rebalanced", severity="warning")


@fault("finding.drift_has_finding")
def finding_that_lists_another_queue(day: StagedDay, group: str) -> None:
    remove_holder(day, group)
    add_findings(day)
    day.of("finding", consumer_group=group)[0]["examples"] = ["broker-z/7"]


@fault("finding.drift_has_finding")
def finding_with_another_number_of_members(day: StagedDay, group: str) -> None:
    row = remove_holder(day, group)
    day.add_finding(
        kind="unowned",
        consumer_group=group,
        topic="orders",
        likely_cause=row["likely_cause"],
        queue_count=1,
        client_total_count=17,
    )


@fault("finding.divergence_has_finding")
def divergence_reported_for_a_healthy_topic(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.add_finding(kind="route_differs", topic=topic)


@fault("finding.divergence_has_finding")
def divergence_without_a_finding(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.remove("topic_route", topic=topic, nameserver=NAMESERVERS[1], broker_name="broker-b")
    day.undetermined.add(topic)


@fault("finding.evidence_given")
def finding_with_its_evidence_in_words_only(day: StagedDay, group: str) -> None:
    day.add_finding(consumer_group=group, client_count=None)


@fault("finding.text_fields_not_empty")
def finding_with_the_page_of_another_kind(day: StagedDay, group: str) -> None:
    day.add_finding(consumer_group=group, page="docs/findings/load_imbalanced.md")


@fault("finding.id_follows_key")
def finding_with_the_id_of_another_one(day: StagedDay, group: str) -> None:
    day.add_finding(consumer_group=group, finding_id="0123456789abcdef")


@fault("finding.root_exists")
def finding_below_one_that_is_not_there(day: StagedDay, group: str) -> None:
    _, idle = uneven_group(day, group)
    idle.update(parent_finding_id="0" * 16, root_finding_id="0" * 16)


@fault("finding.root_exists")
def finding_with_a_parent_and_another_root(day: StagedDay, group: str) -> None:
    uneven, idle = uneven_group(day, group)
    explain(uneven, [idle])
    idle["root_finding_id"] = idle["finding_id"]


@fault("finding.explained_by_rule")
def finding_below_one_of_another_topic(day: StagedDay, group: str) -> None:
    uneven, idle = uneven_group(day, group)
    idle.update(topic="config", finding_id=None)
    idle["finding_id"] = id_of(idle)
    explain(uneven, [idle])


@fault("finding.explained_by_rule")
def finding_below_one_with_another_cause(day: StagedDay, group: str) -> None:
    strategies = day.add_finding(kind="mixed_strategies", consumer_group=group)
    idle = day.add_finding(consumer_group=group, topic="orders", seen_values=["AVG"])
    identify(day)
    explain(strategies, [idle])


@fault("finding.explained_where_possible")
def finding_left_beside_the_one_that_explains_it(day: StagedDay, group: str) -> None:
    uneven_group(day, group)


@fault("finding.explained_where_possible")
def findings_of_one_cause_left_side_by_side(day: StagedDay, group: str) -> None:
    first, _ = queues_of_two_topics(day, group)
    day.of("finding", parent_finding_id=first["finding_id"])[0].update(
        parent_finding_id=None, root_finding_id=None, severity="critical"
    )


@fault("finding.severity_follows")
def finding_as_severe_as_the_one_above_it(day: StagedDay, group: str) -> None:
    uneven, idle = uneven_group(day, group)
    explain(uneven, [idle])
    idle["severity"] = "warning"


@fault("finding.severity_follows")
def root_milder_than_what_is_below_it(day: StagedDay, group: str) -> None:
    first, _ = queues_of_two_topics(day, group)
    first["severity"] = "warning"


@fault("finding.severity_follows")
def critical_idle_clients(day: StagedDay, group: str) -> None:
    day.add_finding(consumer_group=group, topic="orders", severity="critical")


@fault("finding.severity_follows", "ownership_drift.cause_has_evidence")
def critical_finding_of_a_cause_that_passes(day: StagedDay, group: str) -> None:
    remove_holder(day, group)["likely_cause"] = "not_yet_rebalanced"
    add_findings(day)
    day.of("finding", consumer_group=group)[0]["severity"] = "critical"


@fault("finding.waiting_counted")
def messages_that_wait_and_are_not_counted(day: StagedDay, group: str) -> None:
    remove_holder(day, group)
    queue = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
    day.add("consume_progress", consumer_group=group, **queue, broker_offset=40, consumer_offset=5)


@fault("finding.waiting_counted")
def messages_counted_where_nothing_is_known(day: StagedDay, group: str) -> None:
    remove_holder(day, group)
    add_findings(day)
    day.of("finding", consumer_group=group)[0]["waiting_message_count"] = 0


def unread_queue(day: StagedDay, group: str, **setting: str) -> None:
    """Add a queue without an owner and a committed offset, and where the group starts there by its brokers."""
    remove_holder(day, group)
    queue = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
    day.add("consume_progress", consumer_group=group, **queue, broker_offset=5000, consumer_offset=0)
    if not day.of("queue_offset", **queue):
        day.add("queue_offset", **queue, min_offset=1000, max_offset=5000)
    for row in day.of("group_presence", consumer_group=group):
        row.update(consume_type="CONSUME_PASSIVELY", **setting)
    add_findings(day)


@fault("finding.waiting_counted")
def messages_counted_where_the_group_may_skip_them(day: StagedDay, group: str) -> None:
    unread_queue(day, group, consume_from_where="CONSUME_FROM_LAST_OFFSET")
    day.of("finding", consumer_group=group)[0]["waiting_message_count"] = 4000


@fault("finding.waiting_counted")
def messages_counted_where_one_broker_has_another_setting(day: StagedDay, group: str) -> None:
    unread_queue(day, group, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    day.of("group_presence", consumer_group=group)[0]["consume_from_where"] = None
    day.of("finding", consumer_group=group)[0]["waiting_message_count"] = 4000


@fault("finding.waiting_counted")
def messages_that_a_group_starts_with_and_are_not_counted(day: StagedDay, group: str) -> None:
    unread_queue(day, group, consume_from_where="CONSUME_FROM_FIRST_OFFSET")


def uneven_group(day: StagedDay, group: str) -> tuple[Row, Row]:
    """Add a finding about an uneven load and one about idle clients. The first explains the second, but both are still roots."""
    counts = {"client_total_count": 3, "queue_total_count": 8}
    uneven = day.add_finding(kind="load_imbalanced", consumer_group=group, topic="orders", **counts)
    idle = day.add_finding(consumer_group=group, topic="orders", **counts)
    identify(day)
    return uneven, idle


def queues_of_two_topics(day: StagedDay, group: str) -> tuple[Row, Row]:
    """Add two topics with a queue in a room without clients: the finding of the first topic explains that of the second."""
    clients = ("c1", "c2", "c3")
    day.add_group(group, "orders", clients, strategies=("MACHINE_ROOM",))
    for broker in BROKERS:
        day.add("subscription", broker_name=broker, consumer_group=group, topic="config")
    for client in clients:
        day.add("client_subscription", consumer_group=group, client_id=client, topic="config")
    day.assign(group, "config", "MACHINE_ROOM", clients, is_effective=True)
    for topic in ("orders", "config"):
        queue = {"consumer_group": group, "topic": topic, "broker_name": "broker-a", "queue_id": 0}
        day.remove("observed_owner", **queue)
        day.of("queue_assignment", **queue, is_effective=True)[0].update(
            client_id=None, client_connection_count=None, reason="room_without_clients"
        )
    add_drift(day, group)
    add_findings(day)
    identify(day)
    first, second = day.of("finding", kind="unowned", consumer_group=group)
    return first, second


# Valid cases that resemble a fault


@excused
def findings_below_the_one_that_explains_them(day: StagedDay, group: str) -> None:
    uneven, idle = uneven_group(day, group)
    explain(uneven, [idle])


@excused
def queues_of_two_topics_with_one_cause(day: StagedDay, group: str) -> None:
    queues_of_two_topics(day, group)


@excused
def messages_that_a_group_may_skip(day: StagedDay, group: str) -> None:
    unread_queue(day, group, consume_from_where="CONSUME_FROM_LAST_OFFSET")


@excused
def messages_that_a_group_starts_with(day: StagedDay, group: str) -> None:
    unread_queue(day, group, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    day.of("finding", consumer_group=group)[0]["waiting_message_count"] = 4000


@excused
def duplicate_client_ids_that_each_answered(day: StagedDay, group: str) -> None:
    duplicate_client_ids_that_answered(day, group)


@excused
def duplicate_client_ids_that_only_a_broker_could_ask(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", clients=("c1", "c1", "c2"), strategies=("AVG",))


@excused
def client_that_could_not_be_asked(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    silence(day, group, "c2")


@excused
def absent_settings_and_an_unheld_queue(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("CONFIG",))
    for row in day.of("queue_assignment", consumer_group=group):
        row.update(client_id=None, client_connection_count=None, reason="settings_missing")
    day.remove("observed_owner", consumer_group=group, broker_name="broker-a", queue_id=0)
    day.rate(group, "orders", "CONFIG", None).update(
        group_state="online", group_state_reason=None, client_count=3
    )


@excused
def broadcasting_member_that_lost_a_queue(day: StagedDay, group: str) -> None:
    reader_without_a_queue(day, group)


@excused
def queue_that_a_broadcasting_group_reads_and_no_route_has(day: StagedDay, group: str) -> None:
    queue_that_all_read_and_no_route_has(day, group)


@excused
def queue_of_a_route_that_the_ledger_did_not_take(day: StagedDay, group: str) -> None:
    group_of_three_with_a_stranger_queue(day, group)


def group_of_three_with_a_stranger_queue(day: StagedDay, group: str) -> None:
    """Add a group with a member that holds a queue of no assignment."""
    day.add_group(group, "orders")
    day.hold(group, "orders", "broker-z", 0, "c2")


@excused
def permission_wiped_on_one_name_server(day: StagedDay, topic: str) -> None:
    wiped_on_one_name_server(day, topic)


@excused
def broker_that_registered_other_queues(day: StagedDay, topic: str) -> None:
    broker_with_fewer_queues(day, topic)


@excused
def silent_name_server(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.remove("topic_route", topic=topic, nameserver=NAMESERVERS[1])
    file = f"routes of {topic}"
    row = day.of("export_record", file=file, nameserver=NAMESERVERS[1])[0]
    row["state"] = "error"
    next(entry for entry in day.manifest if entry["path"] == file)["error_count"] = 1
    add_divergence(day, topic)


@pytest.fixture(scope="module")
def healthy_metrics() -> dict[str, Row]:
    day = healthy_day()
    for name, plant in EXCUSED.items():
        plant(day, name)
    return {row["expectation_id"]: row for row in day.measure(STATEMENTS)}


@pytest.fixture(scope="module")
def corrupted_metrics() -> dict[str, Row]:
    day = healthy_day()
    for name, (plant, _) in FAULTS.items():
        plant(day, name)
    return {row["expectation_id"]: row for row in day.measure(STATEMENTS)}


@pytest.mark.parametrize("expectation_id", sorted(JUDGED))
def test_an_unusual_but_valid_day_violates_nothing(
    expectation_id: str, healthy_metrics: dict[str, Row]
) -> None:
    assert healthy_metrics[expectation_id]["observed"] == 0, healthy_metrics[expectation_id]


def examples_of(measure: Row) -> list[str]:
    """Return the examples of each affected group. The list for all groups contains only the first few examples."""
    return [example for subject in measure["affected_subjects"] for example in subject["examples"]]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_violates_its_own_expectation(name: str, corrupted_metrics: dict[str, Row]) -> None:
    seen = {
        expectation_id
        for expectation_id in JUDGED
        if any(
            re.search(rf"(?<![\w-]){name}(?![\w-])", example)
            for example in examples_of(corrupted_metrics[expectation_id])
        )
    }

    assert seen == FAULTS[name][1]


def test_an_example_names_the_queue_and_the_values_of_its_sources(corrupted_metrics: dict[str, Row]) -> None:
    examples = examples_of(corrupted_metrics["ownership_drift.state_follows_owners"])

    assert (
        "group two_owners_called_a_match, topic orders, queue broker-a/0: match where multiple_owners follows from "
        "expected [c1], observed [c1 c3]" in examples
    )
