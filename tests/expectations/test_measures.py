"""Each fault injected into a staged day violates its own expectation and no other.

Two days are measured: one is valid, and in the other each group has a different fault.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from test_broadcast_measures import FAULTS as BROADCAST_FAULTS
from test_churn_measures import FAULTS as CHURN_FAULTS
from test_drift_measures import FAULTS as DRIFT_FAULTS
from test_export_comparison import FAULTS as EXPORT_FAULTS
from test_presence_measures import FAULTS as PRESENCE_FAULTS
from test_sharing_measures import FAULTS as SHARING_FAULTS

from expectations.measurement import gate_database
from expectations.suites import (
    broadcast_sources,
    deviating_member,
    every_table,
    finding_facts,
    recomputed_owners,
    uncounted_lines,
)
from expectations.suites.all_suites import EXPECTATIONS, SUITES
from expectations.suites.metrics import METRIC_STATEMENTS
from expectations.suites.model import metric_statement
from expectations.suites.thresholds import MOST_EXAMPLES
from rebalance_ledger.warehouse.sandbox import SANDBOX_CONFIG
from tests.support.staged_day import BROKERS, DS, NAMESERVERS, Row, StagedDay, healthy_day, keep_without_route

if TYPE_CHECKING:
    from collections.abc import Callable


CLIENTS = ("c1", "c2", "c3")
MANY = 1000
# test_finding_measures and test_owner_measures stage their facts, or test_broadcast_sources computes them.
SUITES_OF_OTHERS = (finding_facts.SUITE, recomputed_owners.SUITE, broadcast_sources.SUITE)
OF_OTHERS = {expectation.expectation_id for suite in SUITES_OF_OTHERS for expectation in suite.expectations}
STATEMENTS = [text for text in METRIC_STATEMENTS if not any(f"'{name}'" in text for name in OF_OTHERS)]
JUDGED = {name: rule for name, rule in EXPECTATIONS.items() if name not in OF_OTHERS}
UNEVEN = "assignment_fairness.even_enough"
LEFT_OUT_ARE_FEW = "quarantined_group.count_within_limit"
FAULTS: dict[str, tuple[Callable[[StagedDay, str], None], set[str]]] = {}
EXCUSED: dict[str, Callable[[StagedDay, str], None]] = {}


def fault(*expected: str) -> Callable[[Callable[[StagedDay, str], None]], Callable[[StagedDay, str], None]]:
    """Register a fault, injected into a group named like the function, and the expectations that must detect it."""

    def register(plant: Callable[[StagedDay, str], None]) -> Callable[[StagedDay, str], None]:
        FAULTS[plant.__name__] = (plant, set(expected))
        return plant

    return register


def excused(plant: Callable[[StagedDay, str], None]) -> Callable[[StagedDay, str], None]:
    """Register a valid case that resembles a fault, injected into a group named like the function."""
    EXCUSED[plant.__name__] = plant
    return plant


def first_row(day: StagedDay, group: str, strategy: str = "AVG") -> Row:
    return day.of("queue_assignment", consumer_group=group, strategy=strategy)[0]


def last_row(day: StagedDay, group: str, strategy: str = "AVG") -> Row:
    return day.of("queue_assignment", consumer_group=group, strategy=strategy)[-1]


def room_with_two_owners(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("MACHINE_ROOM",))
    day.rows["queue_assignment"].append(last_row(day, group, "MACHINE_ROOM") | {"client_id": "c3"})
    day.rate(group, "orders", "MACHINE_ROOM", CLIENTS)


# Faults of gold.queue_assignment


@fault("queue_assignment.one_owner")
def duplicated_owner(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.rows["queue_assignment"].append(first_row(day, group) | {"client_id": "c3"})
    day.rate(group, "orders", "AVG", CLIENTS)


@fault("queue_assignment.one_owner")
def duplicated_owner_in_rooms(day: StagedDay, group: str) -> None:
    room_with_two_owners(day, group)


@fault("queue_assignment.one_owner")
def old_release_that_only_brokers_list(day: StagedDay, group: str) -> None:
    """Add a member that itself reports a release that separates rooms; this report takes precedence over the brokers'."""
    room_with_two_owners(day, group)
    for row in day.of("consumer_connection", consumer_group=group, client_id="c2"):
        row["client_version"] = "4.7.1"
    day.of("consumer_client", consumer_group=group, client_id="c2")[0]["client_version"] = "5.3.3"


def list_with_a_queue_that_no_route_has(day: StagedDay, group: str, **values: Any) -> None:
    day.add_group(group, "orders", strategies=("CONFIG",))
    listed = {"queue_id": 9, "client_id": "c1", "reason": "queue_not_in_route", **values}
    day.rows["queue_assignment"].append(first_row(day, group, "CONFIG") | listed)


@fault(
    "queue_assignment.queues_equal_route",
    # Such queues must not be counted, but the fairness counts include them.
    "assignment_fairness.counts_equal_assignment",
    "assignment_fairness.ratios_equal_assignment",
)
def list_with_a_queue_that_every_route_has(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("CONFIG",))
    for row in day.of("queue_assignment", consumer_group=group, queue_id=3):
        row["reason"] = "queue_not_in_route"


@fault("queue_assignment.owner_is_member")
def list_of_a_stranger(day: StagedDay, group: str) -> None:
    list_with_a_queue_that_no_route_has(day, group, client_id="stranger")
    day.add("consumer_client", consumer_group=group, client_id="stranger", state="online")
    day.hold(group, "orders", "broker-a", 9, "stranger")


@fault(
    "queue_assignment.one_row_per_owner",
    # The number of a client's queues is its number of rows, so a duplicate row changes it too.
    "assignment_fairness.counts_equal_assignment",
    "assignment_fairness.ratios_equal_assignment",
    "queue_assignment.spread_within_bound",
)
def doubled_row(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.rows["queue_assignment"].append(dict(first_row(day, group)))


@fault("queue_assignment.owned_or_unowned")
def owned_and_unowned(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("CONFIG",))
    also = {"client_id": None, "client_connection_count": None, "reason": "not_in_config_list"}
    day.rows["queue_assignment"].append(first_row(day, group, "CONFIG") | also)


@fault("queue_assignment.queues_equal_route")
def dropped_queue(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.remove("queue_assignment", consumer_group=group, broker_name="broker-a", queue_id=0)
    for strategy in ("AVG", "AVG_BY_CIRCLE"):
        day.rate(group, "orders", strategy, CLIENTS)


@fault("queue_assignment.queues_equal_route", "queue_assignment.same_queues")
def dropped_queue_of_one_strategy(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.remove("queue_assignment", consumer_group=group, strategy="AVG", broker_name="broker-a", queue_id=0)
    day.rate(group, "orders", "AVG", CLIENTS)


@fault("queue_assignment.queues_equal_route")
def swapped_queue(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    for row in day.of("queue_assignment", consumer_group=group, broker_name="broker-b", queue_id=3):
        row["queue_id"] = 4


# Drift also marks queues that are held without a route, and its cause requires the missing route as evidence.
@fault("queue_assignment.queues_equal_route", "ownership_drift.cause_has_evidence")
def kept_although_routed(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    keep_without_route(day, group, "orders", owner="c3")


@fault("queue_assignment.subscribed_topic_present")
def dropped_topic(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.remove("queue_assignment", consumer_group=group)
    day.remove("assignment_fairness", consumer_group=group)


@fault("queue_assignment.owner_is_member")
def foreign_client(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    for row in day.of("queue_assignment", consumer_group=group, strategy="AVG", client_id="c1"):
        row["client_id"] = "c1-of-elsewhere"


# A fault of this day registers a broker-z, which was not queried about the group, so its absence is not proven either.
@fault("queue_assignment.owner_is_member", "assignment_fairness.absence_proven")
def foreign_client_of_a_group_without_members(day: StagedDay, group: str) -> None:
    day.add_silent_group(group, "orders", "offline", "group_offline")
    first_row(day, group).update(client_id="c1", reason=None)
    fairness = day.of("assignment_fairness", consumer_group=group)[0]
    fairness.update(unowned_queue_count=7, idle_client_count=None)


@fault("queue_assignment.owner_is_member")
def keeper_that_was_not_seen(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    keep_without_route(day, group, "vanished", owner="c1")
    day.remove("observed_owner", consumer_group=group)


@fault("queue_assignment.reason_given")
def missing_reason(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("CONFIG",))
    first_row(day, group, "CONFIG").update(client_id=None, client_connection_count=None)
    day.rate(group, "orders", "CONFIG", CLIENTS)


@fault("queue_assignment.no_reason_for_owner")
def reason_for_an_owner(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    first_row(day, group)["reason"] = "mixed_strategies"


@fault("queue_assignment.no_uncovered_queue")
def uncovered_queue(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    first_row(day, group).update(client_id=None, client_connection_count=None, reason="mixed_strategies")
    day.rate(group, "orders", "AVG", CLIENTS)


@fault("queue_assignment.source_known")
def two_sources(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    first_row(day, group)["strategy_source"] = "configured"


@fault("queue_assignment.source_known")
def unheard_of_source(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    for row in day.of("queue_assignment", consumer_group=group, strategy="AVG"):
        row["strategy_source"] = "guessed"


@fault("queue_assignment.one_effective_strategy", "ownership_drift.owners_equal_sources")
def two_effective_strategies(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    for row in day.of("queue_assignment", consumer_group=group):
        row["is_effective"] = True


@fault("queue_assignment.spread_within_bound", "assignment_fairness.bound_kept")
def unfair_spread(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    for row in day.of("queue_assignment", consumer_group=group, strategy="AVG", client_id="c2"):
        row["client_id"] = "c1"
    day.rate(group, "orders", "AVG", CLIENTS)


# Null makes no statement, and is invalid where all owners are known.
@fault("queue_assignment.spread_within_bound", "assignment_fairness.counts_equal_assignment")
def unfair_spread_that_fairness_hides(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.of("queue_assignment", consumer_group=group, strategy="AVG", client_id="c3")[0]["client_id"] = "c1"
    day.rate(group, "orders", "AVG", CLIENTS)["is_within_bound"] = None


@fault("queue_assignment.one_owner")
def duplicated_owner_on_a_ring(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("CONSISTENT_HASH",))
    day.rows["queue_assignment"].append(last_row(day, group, "CONSISTENT_HASH") | {"client_id": "c3"})
    day.rate(group, "orders", "CONSISTENT_HASH", CLIENTS)


# Faults of gold.assignment_fairness


@fault("assignment_fairness.counts_equal_assignment")
def wrong_count(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.of("assignment_fairness", consumer_group=group, strategy="AVG")[0]["max_queues_per_client"] += 1


@fault("assignment_fairness.counts_equal_assignment")
def count_that_is_not_given(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.of("assignment_fairness", consumer_group=group, strategy="AVG")[0]["unowned_queue_count"] = None


# The other numbers are consistent with the wrong client count, so they are not reported again.
@fault("assignment_fairness.counts_equal_assignment", "assignment_fairness.bound_kept")
def member_that_no_broker_lists(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.rate(group, "orders", "AVG", (*CLIENTS, "c4"))


@fault("assignment_fairness.counts_equal_assignment")
def member_that_is_left_out(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", clients=tuple(f"m{number:02}" for number in range(11)))
    # m10 owns no queue: without it all numbers are consistent.
    day.rate(group, "orders", "AVG", tuple(f"m{number:02}" for number in range(10)))


@fault("assignment_fairness.ratios_equal_assignment")
def wrong_ratio(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.of("assignment_fairness", consumer_group=group, strategy="AVG")[0]["max_over_mean"] *= 1 + 1e-6


@fault("assignment_fairness.jain_in_range", "assignment_fairness.ratios_equal_assignment")
def jain_above_one(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.of("assignment_fairness", consumer_group=group, strategy="AVG")[0]["jain_index"] = 1.5


@fault("assignment_fairness.rows_equal_assignment")
def unrated_strategy(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.remove("assignment_fairness", consumer_group=group, strategy="AVG")


@fault("assignment_fairness.rows_equal_assignment", "assignment_fairness.counts_equal_assignment")
def rated_strategy_without_rows(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    fairness = day.rate(group, "orders", "CONFIG", None)
    fairness.update(group_state="online", group_state_reason=None, queue_count=8, client_count=3)


@fault(
    "assignment_fairness.counts_equal_assignment",
    "assignment_fairness.ratios_equal_assignment",
    "assignment_fairness.jain_in_range",
)
def numbers_of_kept_queues(day: StagedDay, group: str) -> None:
    """Add a group with a client that holds a queue of a topic without a route, which no strategy assigns."""
    day.add_group(group, "orders")
    keep_without_route(day, group, "vanished", owner="c1")
    day.of("assignment_fairness", consumer_group=group, topic="vanished")[0].update(
        idle_client_count=2, unowned_queue_count=0, jain_index=3.0
    )


# Drift also lists the queue as held.
@fault(
    "queue_assignment.owner_is_member",
    "ownership_drift.state_follows_owners",
    "ownership_drift.owners_equal_sources",
)
def kept_although_dropped(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    keep_without_route(day, group, "vanished", owner="c1")
    day.of("observed_owner", consumer_group=group, topic="vanished")[0]["is_dropped"] = True


@fault("assignment_fairness.unknown_is_null")
def zero_where_nothing_is_known(day: StagedDay, group: str) -> None:
    day.add_silent_group(group, "orders", "unknown", "members_unknown")["idle_client_count"] = 0


@fault("assignment_fairness.unknown_is_null")
def count_under_unknown_settings(day: StagedDay, group: str) -> None:
    absent_settings(day, group)
    day.of("assignment_fairness", consumer_group=group)[0]["max_queues_per_client"] = 0


@fault("assignment_fairness.unknown_is_null")
def numbers_beside_a_member_of_unknown_strategy(day: StagedDay, group: str) -> None:
    """Add a member with an unknown strategy: the queues of the other members do not show how even the assignment is."""
    day.add_group(group, "orders")
    first_row(day, group).update(
        client_id=None, client_connection_count=None, reason="member_strategy_unknown"
    )
    day.rate(group, "orders", "AVG", CLIENTS)


@fault("assignment_fairness.one_row_per_key")
def group_rated_twice(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.rows["assignment_fairness"].append(dict(day.of("assignment_fairness", consumer_group=group)[0]))


# Faults of gold.producer_spread, and of the publish side in silver


@fault("topic_route.publish_side_equals_route")
def queues_that_silver_lost(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.of("topic_route", topic=topic, nameserver=NAMESERVERS[1])[0]["publish_queue_count"] = 0


@fault("topic_route.publish_side_equals_route")
def readers_that_are_not_there(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    # The published row equals the other name server's route.
    day.of("topic_route", topic=topic, nameserver=NAMESERVERS[1])[0]["subscribe_queue_count"] = 1


@fault("topic_route.publish_side_equals_route")
def runs_that_are_not_there(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.of("topic_route", topic=topic, nameserver=NAMESERVERS[1])[0]["publish_run_count"] = 2


@fault("topic_route.publish_side_equals_route")
def unread_queues_of_two_entries_that_no_entry_has(day: StagedDay, topic: str) -> None:
    entries_of_one_broker(day, topic)
    day.of("topic_route", topic=topic, nameserver=NAMESERVERS[1])[0]["publish_unread_count"] = 5


@fault("producer_spread.brokers_equal_route")
def topic_that_is_left_out(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.remove("producer_spread", topic=topic)


@fault("producer_spread.brokers_equal_route", "producer_spread.shares_add_up")
def broker_that_is_left_out(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.remove("producer_spread", topic=topic, broker_name="broker-b")


@fault("producer_spread.brokers_equal_route")
def broker_that_no_route_has(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.add_spread(topic, "broker-c", 0, (4, 4), reason="no_write_queues")


@fault("producer_spread.brokers_equal_route")
def topic_that_no_route_has(day: StagedDay, topic: str) -> None:
    day.add_spread(topic, "broker-a", 4)


@fault("producer_spread.topics_of_applications")
def retry_topic(day: StagedDay, topic: str) -> None:
    day.add_topic(f"%RETRY%{topic}")


@fault("producer_spread.topics_of_applications")
def topic_of_the_cluster(day: StagedDay, topic: str) -> None:
    day.add("broker", nameserver=NAMESERVERS[0], broker_cluster_name=topic, broker_name="broker-z")
    day.add_topic(f"{topic}_REPLY_TOPIC")
    day.add_topic(topic)


@fault("producer_spread.counts_equal_route")
def queue_too_many(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.of("producer_spread", topic=topic)[0]["writable_queue_count"] += 1


@fault("producer_spread.counts_equal_route")
def reason_for_a_broker_that_is_written(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.of("producer_spread", topic=topic)[0]["reason"] = "no_master"


@fault("producer_spread.counts_equal_route")
def broker_that_is_not_the_only_one(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.of("producer_spread", topic=topic)[0]["is_only_writable_broker"] = True


@fault("producer_spread.counts_equal_route")
def zero_queues_where_producers_throw(day: StagedDay, topic: str) -> None:
    order_configuration_that_cannot_be_read(day, topic)
    day.of("producer_spread", topic=topic)[0]["writable_queue_count"] = 0


@fault("producer_spread.numbers_equal_counts")
def wrong_effect_of_a_loss(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.of("producer_spread", topic=topic)[0]["load_ratio_after_loss"] *= 1 + 1e-6


@fault("producer_spread.numbers_equal_counts")
def loss_not_reported(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.of("producer_spread", topic=topic)[0]["largest_share_after_loss"] = None


@fault("producer_spread.numbers_equal_counts", "producer_spread.shares_add_up")
def share_that_is_lost(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.of("producer_spread", topic=topic)[0]["share"] = 0.25


@fault("producer_spread.numbers_equal_counts", "producer_spread.shares_add_up")
def share_below_zero(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    for row, share in zip(day.of("producer_spread", topic=topic), (1.5, -0.5), strict=True):
        row["share"] = share


@fault("producer_spread.lists_counted")
def name_servers_that_are_said_to_differ(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    for row in day.of("producer_spread", topic=topic):
        row["publish_list_count"] = 2


@fault("producer_spread.one_row_per_key", "producer_spread.shares_add_up")
def broker_reported_twice(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    day.rows["producer_spread"].append(dict(day.of("producer_spread", topic=topic)[0]))


# Faults of gold.finding


@fault("finding.severity_known")
def severity_off_the_list(day: StagedDay, group: str) -> None:
    day.add_finding(consumer_group=group, severity="catastrophic")


@fault("finding.kind_known")
def kind_off_the_list(day: StagedDay, group: str) -> None:
    day.add_finding(consumer_group=group, kind="boredom")


@fault("finding.required_values", "finding.text_fields_not_empty")
def finding_without_a_page(day: StagedDay, group: str) -> None:
    day.add_finding(consumer_group=group, page=None)


@fault("finding.subject_given")
def finding_about_nothing(day: StagedDay, group: str) -> None:
    day.add_finding(evidence=f"seen in {group}")


@fault("finding.text_fields_not_empty")
def finding_without_advice(day: StagedDay, group: str) -> None:
    day.add_finding(consumer_group=group, advice=" ")


@fault("finding.one_row_per_key")
def finding_reported_twice(day: StagedDay, group: str) -> None:
    day.add_finding(consumer_group=group)
    day.add_finding(consumer_group=group, evidence="told otherwise")


# Losses between the export and silver


@fault("export_record.lines_equal_manifest")
def dropped_line(day: StagedDay, group: str) -> None:
    day.add_export_file(group, ("payload", "payload"))
    day.remove("export_record", file=group, line_number=2)


@fault("export_record.lines_equal_manifest")
def file_that_the_manifest_has_not(day: StagedDay, group: str) -> None:
    day.add_export_file(group)
    day.manifest.pop()


@fault("export_record.lines_equal_manifest")
def file_that_was_not_read(day: StagedDay, group: str) -> None:
    day.add_export_file(group)
    day.remove("export_record", file=group)


@fault("export_record.errors_equal_manifest")
def failed_source_taken_for_an_answer(day: StagedDay, group: str) -> None:
    day.add_export_file(group, ("payload", "error"))
    day.of("export_record", file=group, line_number=2)[0]["state"] = "payload"


@fault("export_record.rejected_has_text")
def line_dropped_in_silence(day: StagedDay, group: str) -> None:
    day.add_export_file(group, ("payload", "rejected"))
    day.remove("rejected_record", file=group)


@fault("export_record.counted_line_answers")
def line_that_counts_nowhere(day: StagedDay, group: str) -> None:
    day.add_export_file(group, ("payload", "payload"))
    day.of("export_record", file=group, line_number=1)[0].update(counted_line=3, is_repeat=True)


@fault("export_record.counted_line_answers")
def lines_that_count_for_each_other(day: StagedDay, group: str) -> None:
    day.add_export_file(group, ("payload", "payload"))
    for row in day.of("export_record", file=group):
        row.update(counted_line=3 - row["line_number"], is_repeat=True)


@fault("export_record.counted_line_answers")
def line_that_counts_for_another_topic(day: StagedDay, group: str) -> None:
    day.add_export_file(group, ("payload", "payload"))
    first, second = day.of("export_record", file=group)
    first.update(topic="t", counted_line=2, is_repeat=False)
    second.update(topic="u")


@fault("rejected_record.is_line_of_export")
def rejection_of_no_line(day: StagedDay, group: str) -> None:
    day.add_export_file(group, ("payload",))
    day.add(
        "rejected_record",
        kind="some_kind",
        file=group,
        line_number=2,
        reason="'cluster' is missing",
        text='{"kind": "some_kind"}',
    )


@fault("observed_owner.client_answered")
def owner_that_did_not_answer(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.of("consumer_client", consumer_group=group, client_id="c2")[0]["state"] = "unknown"
    day.add(
        "observed_owner",
        consumer_group=group,
        topic="orders",
        broker_name="broker-a",
        queue_id=0,
        client_id="c2",
        is_pop=False,
    )


@fault("subscription.one_row_per_key", "subscription.equals_export")
def subscription_read_twice(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.rows["subscription"].append(dict(day.of("subscription", consumer_group=group)[0]))


# Valid cases that resemble a fault


def entries_of_one_broker(day: StagedDay, topic: str) -> None:
    """Add two route entries of four queues each: producers rotate over eight entries, and consumers read four queues."""
    day.add_route_answers(topic, ("payload", "payload"))
    for nameserver in NAMESERVERS:
        row = day.add_route(nameserver, topic, "broker-a", 4, queue_data_count=2)
        row.update(write_queue_count=8, publish_queue_count=8)
    day.add_spread(topic, "broker-a", 8)


@excused
def two_entries_of_one_broker(day: StagedDay, group: str) -> None:
    entries_of_one_broker(day, group)


@excused
def line_that_another_one_counts_for(day: StagedDay, group: str) -> None:
    day.add_export_file(group, ("payload", "payload"))
    day.of("export_record", file=group, line_number=1)[0].update(counted_line=2, is_repeat=False)


@excused
def duplicate_client_ids(day: StagedDay, group: str) -> None:
    """Add two processes with one client id.

    AVG assigns two of three slots to c1. Both processes read the first, so the queues of the second have no owner.
    """
    day.add_group(group, "orders", clients=("c1", "c1", "c2"), strategies=("AVG",))
    for row in day.of("queue_assignment", consumer_group=group)[3:6]:
        row.update(client_id=None, client_connection_count=None, reason="duplicate_client_id")
    day.rate(group, "orders", "AVG", ("c1", "c2"))


@excused
def absent_settings(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("MACHINE_ROOM_NEARBY-AVG",))
    for row in day.of("queue_assignment", consumer_group=group):
        row.update(client_id=None, client_connection_count=None, reason="settings_missing")
    fairness = day.rate(group, "orders", "MACHINE_ROOM_NEARBY-AVG", None)
    fairness.update(group_state="online", group_state_reason=None, client_count=3)


@excused
def overlapping_lists(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("CONFIG",))
    day.rows["queue_assignment"].append(first_row(day, group, "CONFIG") | {"client_id": "c3"})
    day.rate(group, "orders", "CONFIG", CLIENTS)


@excused
def old_java_clients_that_mix_up_rooms(day: StagedDay, group: str) -> None:
    room_with_two_owners(day, group)
    for row in day.of("consumer_connection", consumer_group=group, client_id="c2"):
        row["client_version"] = "4.7.1"


@excused
def member_that_reports_an_old_release_itself(day: StagedDay, group: str) -> None:
    """Add a member that reports an old release itself: in the build and in the gate this overrides the brokers' lists."""
    room_with_two_owners(day, group)
    day.of("consumer_client", consumer_group=group, client_id="c2")[0]["client_version"] = "4.7.1"


@excused
def list_with_a_queue_without_route_that_is_held(day: StagedDay, group: str) -> None:
    list_with_a_queue_that_no_route_has(day, group)
    day.hold(group, "orders", "broker-a", 9, "c1")


@excused
def list_with_an_unheld_queue_without_route(day: StagedDay, group: str) -> None:
    list_with_a_queue_that_no_route_has(day, group)


@excused
def members_with_other_parameters(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("CONSISTENT_HASH",))
    day.rows["queue_assignment"].append(last_row(day, group, "CONSISTENT_HASH") | {"client_id": "c3"})
    day.rate(group, "orders", "CONSISTENT_HASH", CLIENTS)
    members = {"c3": {"virtual_node_count": 1}}
    day.configure(group, strategy="CONSISTENT_HASH", virtual_node_count=10, members=members)


@excused
def names_that_go_sorts_otherwise(day: StagedDay, group: str) -> None:
    """Add client ids that Go sorts differently from Java.

    AVG is the same rule in both languages. By byte, a name beyond U+FFFF follows one at U+FB01.
    """
    day.add_group(group, "orders", clients=("c\ufb01", "c\U0001f600"), strategies=("AVG",))
    day.rows["queue_assignment"].append(first_row(day, group) | {"client_id": "c\U0001f600"})
    for row in day.of("consumer_connection", consumer_group=group, client_id="c\U0001f600"):
        row["client_language"] = "GO"
    day.rate(group, "orders", "AVG", ("c\ufb01", "c\U0001f600"))


@excused
def go_client_that_mixes_up_rooms(day: StagedDay, group: str) -> None:
    room_with_two_owners(day, group)
    for row in day.of("consumer_connection", consumer_group=group, client_id="c2"):
        row["client_language"] = "GO"


@excused
def go_client_with_a_ring_of_its_own(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("CONSISTENT_HASH",))
    day.rows["queue_assignment"].append(last_row(day, group, "CONSISTENT_HASH") | {"client_id": "c3"})
    day.rate(group, "orders", "CONSISTENT_HASH", CLIENTS)
    for row in day.of("consumer_connection", consumer_group=group, client_id="c2"):
        row["client_language"] = "GO"


@excused
def name_servers_that_differ(day: StagedDay, group: str) -> None:
    day.add_topic("unsettled")
    day.remove("topic_route", topic="unsettled", nameserver=NAMESERVERS[1], broker_name="broker-b")
    for row in day.of("producer_spread", topic="unsettled"):
        row["publish_list_count"] = 2
    day.add_group(group, "unsettled")


@excused
def topic_that_one_name_server_cannot_read(day: StagedDay, group: str) -> None:
    day.add_topic("half-closed")
    for row in day.of("topic_route", topic="half-closed", nameserver=NAMESERVERS[1]):
        row.update(subscribe_queue_count=0, publish_unread_count=4)
    for broker in BROKERS:
        day.add("subscription", broker_name=broker, consumer_group=group, topic="half-closed")


@excused
def member_that_one_broker_does_not_list(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders")
    day.remove("consumer_connection", consumer_group=group, client_id="c3", broker_name="broker-a")


@excused
def member_that_does_not_subscribe(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", strategies=("AVG",))
    day.remove("client_subscription", consumer_group=group, client_id="c3")
    for row in day.of("queue_assignment", consumer_group=group, client_id="c3"):
        row.update(client_id=None, client_connection_count=None, reason="owner_not_subscribed")
    day.rate(group, "orders", "AVG", ("c1", "c2"))


@excused
def more_clients_than_queues(day: StagedDay, group: str) -> None:
    day.add_group(group, "orders", clients=tuple(f"m{number:02}" for number in range(11)))


@excused
def write_permission_that_one_name_server_took(day: StagedDay, topic: str) -> None:
    day.add_topic(topic)
    for row in day.of("topic_route", topic=topic, nameserver=NAMESERVERS[1], broker_name="broker-b"):
        row.update(perm=4, publish_queue_count=0, publish_run_count=0)
    for row in day.of("producer_spread", topic=topic):
        row["publish_list_count"] = 2


@excused
def unwritable_topic(day: StagedDay, topic: str) -> None:
    nothing = {"publish_queue_count": 0, "publish_run_count": 0}
    for nameserver in NAMESERVERS:
        day.add_route(nameserver, topic, "broker-a", 4, perm=4, **nothing)
        day.add_route(nameserver, topic, "broker-b", 4, has_master=False, **nothing)
        day.add_route(nameserver, topic, "broker-c", 4, write_queue_count=0, **nothing)
    for broker, reason in (
        ("broker-a", "no_write_permission"),
        ("broker-b", "no_master"),
        ("broker-c", "no_write_queues"),
    ):
        day.add(
            "producer_spread",
            topic=topic,
            broker_name=broker,
            publish_source="route",
            writable_queue_count=0,
            is_only_writable_broker=False,
            publish_list_count=1,
            reason=reason,
        )


@excused
def broker_that_is_written_and_not_read(day: StagedDay, topic: str) -> None:
    for nameserver in NAMESERVERS:
        day.add_route(nameserver, topic, "broker-a", 4)
        day.add_route(
            nameserver, topic, "broker-b", 12, perm=2, subscribe_queue_count=0, publish_unread_count=12
        )
    day.add_spread(topic, "broker-a", 4, (12,))
    day.add_spread(topic, "broker-b", 12, (4,), unread_share=0.75)


@excused
def order_configuration_that_outlived_a_broker(day: StagedDay, topic: str) -> None:
    """Set an order configuration that still names a removed broker.

    The list is a1 a2 b1 c1 a3. Broker a has one run, because the list is a circle; c is gone, and d is not in it.
    """
    conf = {"order_topic_conf": "broker-a:2;broker-b:1;broker-c:1;broker-a:1;;"}
    nothing = {"publish_queue_count": 0, "publish_run_count": 0}
    for nameserver in NAMESERVERS:
        day.add_route(nameserver, topic, "broker-a", 2, publish_queue_count=3, **conf)
        day.add_route(nameserver, topic, "broker-b", 1, perm=4, **conf)
        day.add_route(nameserver, topic, "broker-d", 1, **conf, **nothing)
        day.add(
            "topic_route",
            nameserver=nameserver,
            topic=topic,
            broker_name="broker-c",
            is_in_route=False,
            subscribe_queue_count=0,
            publish_queue_count=1,
            publish_run_count=1,
            publish_unread_count=1,
            has_master=False,
            **conf,
        )
    ordered = {"publish_source": "order_configuration"}
    day.add_spread(topic, "broker-a", 3, (1, 1), **ordered)
    day.add_spread(topic, "broker-b", 1, (3, 1), **ordered)
    day.add_spread(topic, "broker-c", 1, (3, 1), unread_share=None, reason="not_in_route", **ordered)
    day.add_spread(topic, "broker-d", 0, (3, 1, 1), reason="not_in_order_configuration", **ordered)


@excused
def order_configuration_with_one_broker_left(day: StagedDay, topic: str) -> None:
    conf = {"order_topic_conf": "broker-a:1;broker-b:1;broker-a:1;broker-b:1"}
    for nameserver in NAMESERVERS:
        day.add_route(nameserver, topic, "broker-a", 1, publish_queue_count=2, publish_run_count=2, **conf)
        day.add_route(
            nameserver,
            topic,
            "broker-b",
            1,
            publish_queue_count=2,
            publish_run_count=2,
            has_master=False,
            **conf,
        )
    ordered = {"publish_source": "order_configuration"}
    only = {"is_only_writable_broker": True, "share": 0.5, "share_per_queue": 0.25}
    day.add_spread(topic, "broker-a", 2, (), **ordered, **only)
    lost = {"unread_share": None, "retried_share_while_lost": 1.0, "reason": "no_master"}
    day.add_spread(topic, "broker-b", 2, (2,), **ordered, **lost)


@excused
def order_configuration_that_cannot_be_read(day: StagedDay, topic: str) -> None:
    unknown = dict.fromkeys(("publish_queue_count", "publish_run_count", "publish_unread_count"))
    for nameserver in NAMESERVERS:
        day.add_route(nameserver, topic, "broker-a", 4, order_topic_conf="broker-a:4;broker-b", **unknown)
    day.add(
        "producer_spread",
        topic=topic,
        broker_name="broker-a",
        publish_source="order_configuration",
        publish_list_count=1,
        reason="bad_order_configuration",
    )


@excused
def static_topic(day: StagedDay, topic: str) -> None:
    nothing = {"subscribe_queue_count": 0, "publish_queue_count": 0, "publish_run_count": 0}
    logical = {"perm": None, "read_queue_count": None, "write_queue_count": None, "has_master": None}
    for nameserver in NAMESERVERS:
        day.add_route(nameserver, topic, "broker-a", 4, **nothing)
        day.add_route(nameserver, topic, "__syslo__global__", 4, **logical)
    loss = ("retried_share_while_lost", "largest_share_after_loss", "load_ratio_after_loss")
    undetermined = dict.fromkeys(("is_only_writable_broker", *loss))
    day.add_spread(topic, "__syslo__global__", 4, (), publish_source="static_topic", **undetermined)
    day.add_spread(
        topic,
        "broker-a",
        0,
        (4,),
        publish_source="static_topic",
        share=None,
        reason="behind_logical_queues",
        **undetermined,
    )


@excused
def retry_topic_that_only_silver_has(day: StagedDay, topic: str) -> None:
    for nameserver in NAMESERVERS:
        day.add_route(nameserver, f"%RETRY%{topic}", "broker-a", 1)


@excused
def failed_name_server(day: StagedDay, group: str) -> None:
    day.add_finding(kind="source_failed", evidence=f"{group} did not answer")


@pytest.fixture(scope="module")
def healthy_metrics() -> list[Row]:
    day = healthy_day()
    for name, plant in EXCUSED.items():
        plant(day, name)
    return day.measure(STATEMENTS)


@fault("quarantined_group.count_within_limit")
def excluded_groups(day: StagedDay, group: str) -> None:
    day.excluded_groups.append(group)


@pytest.fixture(scope="module")
def corrupted_day() -> StagedDay:
    day = healthy_day()
    for name, (plant, _) in FAULTS.items():
        plant(day, name)
    day.add_finding(kind="source_failed", evidence="a name server did not answer")
    day.add_group("uneven_group", "orders", strategies=("AVG",))
    # Eight queues and three clients: one client owns six queues, and the others one each.
    uneven = [row for row in day.rows["assignment_fairness"] if row["consumer_group"] == "uneven_group"]
    uneven[0].update(max_queues_per_client=6, min_queues_per_client=1, max_over_mean=2.0)
    for number in range(MANY):
        day.add_finding(consumer_group=f"z{number:04}", kind="boredom")
    first_row(day, "order-service")["ds"] = "2026-11-17"
    day.of("consumer_client", consumer_group="order-service")[0]["cluster"] = "shop-elsewhere"
    return day


@pytest.fixture(scope="module")
def corrupted_metrics(corrupted_day: StagedDay) -> dict[str, Row]:
    return {row["expectation_id"]: row for row in corrupted_day.measure(STATEMENTS)}


def test_a_valid_day_is_measured_once_for_each_expectation(healthy_metrics: list[Row]) -> None:
    measured = [name for name, expectation in JUDGED.items() if not expectation.is_of_two_days]
    assert sorted(row["expectation_id"] for row in healthy_metrics) == sorted(measured)


@pytest.mark.parametrize(
    "expectation_id",
    [
        name
        for name, expectation in JUDGED.items()
        if expectation.severity is not None and not expectation.is_of_two_days
    ],
)
def test_a_valid_day_violates_nothing(expectation_id: str, healthy_metrics: list[Row]) -> None:
    measure = next(row for row in healthy_metrics if row["expectation_id"] == expectation_id)
    expectation = EXPECTATIONS[expectation_id]

    assert expectation.threshold_min is None or measure["observed"] >= expectation.threshold_min, measure
    assert expectation.threshold_max is None or measure["observed"] <= expectation.threshold_max, measure


def test_each_blocking_expectation_of_a_table_has_a_fault() -> None:
    kept_apart = (
        CHURN_FAULTS,
        DRIFT_FAULTS,
        BROADCAST_FAULTS,
        EXPORT_FAULTS,
        PRESENCE_FAULTS,
        SHARING_FAULTS,
    )
    faults = [*FAULTS.values(), *(planted for faults in kept_apart for planted in faults.values())]
    tried_apart = (*uncounted_lines.SUITE.expectations, deviating_member.PARAMETERS_EXPLAIN)
    planted = {expectation.expectation_id for expectation in tried_apart}.union(
        *(expected for _, expected in faults)
    )
    blocking = {
        expectation.expectation_id
        for suite in SUITES
        if suite not in (every_table.SUITE, *SUITES_OF_OTHERS)
        for expectation in suite.expectations
        if expectation.severity == "block"
    }

    assert blocking <= planted


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_violates_its_own_expectation_only(name: str, corrupted_metrics: dict[str, Row]) -> None:
    seen = {
        expectation_id
        for expectation_id, measure in corrupted_metrics.items()
        if EXPECTATIONS[expectation_id].severity == "block"
        and any(re.search(rf"(?<![\w-]){name}(?![\w-])", example) for example in measure["examples"])
    }

    assert seen == FAULTS[name][1]


def test_the_row_of_another_day_is_counted(corrupted_metrics: dict[str, Row]) -> None:
    assert corrupted_metrics["queue_assignment.one_cluster_and_day"]["observed"] == 1
    assert corrupted_metrics["queue_assignment.one_cluster_and_day"]["examples"] == [
        "cluster shop-test, day 2026-11-17"
    ]


def test_the_row_of_another_cluster_is_counted_and_named(corrupted_metrics: dict[str, Row]) -> None:
    assert corrupted_metrics["consumer_client.one_cluster_and_day"]["observed"] == 1
    assert corrupted_metrics["consumer_client.one_cluster_and_day"]["examples"] == [
        f'cluster shop-elsewhere, day {DS}: {{"consumer_group":"order-service","client_id":"c1"}}'
    ]


def test_an_example_names_queue_and_owners(corrupted_metrics: dict[str, Row]) -> None:
    assert corrupted_metrics["queue_assignment.one_owner"]["examples"][0] == (
        "group duplicated_owner, topic orders, strategy AVG: queue broker-a/0 is owned by c1 and c3"
    )


def test_without_a_run_no_row_belongs_to_the_day() -> None:
    statement = metric_statement(
        every_table.SUITE.expectations, (every_table.VIOLATION_QUERY,), every_table.COMMON_TABLES
    )
    with gate_database(SANDBOX_CONFIG) as database:
        healthy_day().show_to(database)
        database.show_records("run", "cluster string, ds date, baseline_ds date", [])
        strangers = database.metrics((statement,))

    assert {row["expectation_id"] for row in strangers if row["observed"]} >= {
        "queue_assignment.one_cluster_and_day",
        "export_record.one_cluster_and_day",
    }


def test_a_violation_names_the_affected_subjects(corrupted_metrics: dict[str, Row]) -> None:
    twice = next(
        subject
        for subject in corrupted_metrics["queue_assignment.one_owner"]["affected_subjects"]
        if subject["consumer_group"] == "duplicated_owner"
    )
    assert (twice["topic"], twice["broker_name"], twice["amount"]) == ("orders", None, 1)
    assert twice["examples"] == [
        "group duplicated_owner, topic orders, strategy AVG: queue broker-a/0 is owned by c1 and c3"
    ]


def test_all_affected_subjects_are_named_and_not_only_the_first_few(
    corrupted_metrics: dict[str, Row],
) -> None:
    measure = corrupted_metrics["finding.kind_known"]

    assert {f"z{number:04}" for number in range(MANY)} <= {
        subject["consumer_group"] for subject in measure["affected_subjects"]
    }
    assert sum(subject["amount"] for subject in measure["affected_subjects"]) == measure["observed"]


def test_a_row_of_another_day_affects_no_particular_group(corrupted_metrics: dict[str, Row]) -> None:
    [stranger] = corrupted_metrics["consumer_client.one_cluster_and_day"]["affected_subjects"]

    assert stranger["consumer_group"] is None


def test_each_finding_is_counted_for_its_kind(corrupted_metrics: dict[str, Row]) -> None:
    measure = corrupted_metrics["finding.no_source_failed"]

    assert measure["observed"] > 0
    assert "boredom" not in {name.removeprefix("finding.no_") for name in corrupted_metrics}


def test_the_imbalance_of_a_group_is_measured_whatever_its_limit(corrupted_metrics: dict[str, Row]) -> None:
    groups = {
        subject["consumer_group"]: subject for subject in corrupted_metrics[UNEVEN]["affected_subjects"]
    }

    assert groups["uneven_group"]["amount"] == 2.0
    assert "order-service" not in groups


def test_all_violations_are_counted_and_the_first_few_named(corrupted_metrics: dict[str, Row]) -> None:
    assert corrupted_metrics["finding.kind_known"]["observed"] == 1 + MANY
    assert corrupted_metrics["finding.kind_known"]["examples"] == [
        "kind boredom, group kind_off_the_list",
        *(f"kind boredom, group z{number:04}" for number in range(MOST_EXAMPLES - 1)),
    ]


def of_no_group(measure: Row) -> list[Row]:
    return [subject for subject in measure["affected_subjects"] if subject["consumer_group"] is None]


@pytest.mark.e2e
@pytest.mark.nightly
def test_excluding_the_violating_groups_removes_their_violations_and_adds_none(
    corrupted_day: StagedDay, corrupted_metrics: dict[str, Row]
) -> None:
    asked = [name for name, expectation in EXPECTATIONS.items() if expectation.severity == "block"]
    affected_subjects = {
        subject["consumer_group"]
        for name in asked
        for subject in corrupted_metrics.get(name, {"affected_subjects": []})["affected_subjects"]
    }
    corrupted_day.excluded_groups = sorted(affected_subjects - {None})
    rest = {row["expectation_id"]: row for row in corrupted_day.measure(STATEMENTS)}

    assert len(corrupted_day.excluded_groups) > MANY
    assert rest[LEFT_OUT_ARE_FEW]["observed"] > 0.9
    for name in rest.keys() & set(asked) - {LEFT_OUT_ARE_FEW}:
        assert rest[name]["affected_subjects"] == of_no_group(corrupted_metrics[name]), name


@pytest.mark.e2e
def test_a_valid_day_without_some_groups_is_valid() -> None:
    hostile = "it's `<b>\n%"
    day = healthy_day()
    day.add_group(hostile, "orders")
    day.excluded_groups = sorted(["listeners", "unreachable", hostile])

    broken = {
        row["expectation_id"]: row["examples"]
        for row in day.measure(STATEMENTS)
        if EXPECTATIONS[row["expectation_id"]].severity == "block" and row["observed"]
    }

    assert broken == {LEFT_OUT_ARE_FEW: [f"group {group}" for group in day.excluded_groups]}


def test_the_measures_are_text_that_costs_nothing_to_import() -> None:
    code = "import sys, expectations.suites.metrics; print({'great_expectations', 'pyspark', 'pandas'} & set(sys.modules))"

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "set()"
