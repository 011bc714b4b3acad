"""Each fault injected into offset files and broadcast offsets violates its own expectation and no other.

Two days are measured: one is unusual but valid, and in the other each group has a different fault.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from expectations.suites import broadcast_offset, metrics
from tests.support.staged_day import Row, StagedDay, healthy_day

if TYPE_CHECKING:
    from collections.abc import Callable


JUDGED = {expectation.expectation_id for expectation in broadcast_offset.SUITE.expectations}
STATEMENTS = [text for text in metrics.METRIC_STATEMENTS if any(f"'{name}'" in text for name in JUDGED)]
INDEX = "offset_files_index.jsonl"
CLIENT = "10.1.1.21@DEFAULT"
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


def land(day: StagedDay, group: str, state: str = "landed") -> Row:
    """Add a line to the index of offset files, and return its row of `offset_file`."""
    line = len(day.of("export_record", file=INDEX)) + 1
    where = {"consumer_group": group, "client_id": CLIENT, "line_number": line}
    record_state = "payload" if state == "landed" else "error"
    day.add("export_record", kind="offset_file", file=INDEX, state=record_state, **where)
    return day.add(
        "offset_file", state=state, moment=0, host="h1", captured_at=f"{day_text()}T12:00:00Z", **where
    )


def day_text() -> str:
    return "2026-11-16"


def client(day: StagedDay, group: str, **values: Any) -> Row:
    """Add a client whose main and .bak files landed and are valid; return its row of `broadcast_offset_file`."""
    for _ in range(2):
        land(day, group)
    good = {
        "state": "ok",
        "reason": "offsets.json holds 1 offsets",
        "start_outcome": "stored",
        "start_from": "main",
        "main_state": "offsets",
        "bak_state": "offsets",
        "age_ms": 2000,
        "moment": 0,
        "snapshot_count": 1,
        "landed_file_count": 2,
        "failed_file_count": 0,
        "earlier_snapshots": [],
        "message_model": "BROADCASTING",
        "is_online": True,
        "process_count": 1,
        "host_count": 1,
    }
    named = {"host": "h1", "client_id": CLIENT, "consumer_group": group}
    return day.add("broadcast_offset_file", **named, **good | values)


def queue(day: StagedDay, group: str, **values: Any) -> Row:
    """Add a queue with offsets from 10 to 100 that the client has consumed up to 90; return its row of `broadcast_offset`."""
    topic = {"topic": group, "broker_name": "broker-a", "queue_id": 0}
    day.add("queue_offset", min_offset=10, max_offset=100, captured_at=f"{day_text()}T12:00:00Z", **topic)
    good = {
        "state": "ok",
        "file_state": "ok",
        "start_from": "main",
        "stored_offset": 90,
        "min_offset": 10,
        "max_offset": 100,
        "lag_message_count": 10,
        "lost_message_count": 0,
        "is_routed": True,
        "restart_offset": 90,
        "restart_reason": "stored",
        "skipped_message_count": 0,
        "repeated_message_count": 0,
    }
    named = {"host": "h1", "client_id": CLIENT, "consumer_group": group}
    return day.add("broadcast_offset", **named, **topic, **good | values)


def remembered(day: StagedDay, row: Row, offset: int) -> None:
    """Add an offset that the client reports from memory, and write it to the row of `broadcast_offset` too."""
    names = ("consumer_group", "client_id", "topic", "broker_name", "queue_id")
    values = {name: row[name] for name in names}
    day.add("memory_offset", memory_offset=offset, captured_at=f"{day_text()}T12:00:00Z", **values)
    row["memory_offset"] = offset


def read_client(day: StagedDay, group: str) -> Row:
    """Add a healthy client and its queue; return the queue's row."""
    client(day, group)
    return queue(day, group)


def report_finding(day: StagedDay, group: str, kind: str, topic: str | None = None) -> None:
    measures: Row = (
        {"seen_values": ["offsets.json holds 1 offsets"], "examples": ["h1"], "process_count": 1}
        if topic is None
        else {"queue_count": 1, "examples": ["broker-a/0"]}
    )
    day.add_finding(kind=kind, consumer_group=group, client_id=CLIENT, topic=topic, **measures)


# Faults of the files


@fault("offset_file.lines_accounted", "broadcast_offset_file.files_accounted")
def line_of_the_index_lost(day: StagedDay, group: str) -> None:
    client(day, group)
    day.rows["offset_file"].remove(day.of("offset_file", consumer_group=group)[0])


@fault("offset_file.lines_accounted")
def failure_reported_as_landed(day: StagedDay, group: str) -> None:
    client(day, group)
    day.of("export_record", consumer_group=group)[0]["state"] = "error"


@fault("broadcast_offset_file.files_accounted")
def landed_files_without_a_row(day: StagedDay, group: str) -> None:
    land(day, group)


@fault("broadcast_offset_file.files_accounted")
def file_counted_twice(day: StagedDay, group: str) -> None:
    client(day, group)["landed_file_count"] = 3


@fault("broadcast_offset_file.files_accounted")
def failed_file_not_counted(day: StagedDay, group: str) -> None:
    client(day, group, state="unknown", start_outcome=None)
    land(day, group, "failed")


@fault("broadcast_offset_file.state_known")
def file_state_off_the_list(day: StagedDay, group: str) -> None:
    client(day, group)["state"] = "fine"


@fault("broadcast_offset_file.state_follows_evidence")
def duplicate_client_ids_reported_ok(day: StagedDay, group: str) -> None:
    client(day, group)["process_count"] = 2


@fault("broadcast_offset_file.state_follows_evidence")
def read_from_bak_and_called_ok(day: StagedDay, group: str) -> None:
    client(day, group, main_state="refused", start_from="bak")


@fault("broadcast_offset_file.state_follows_evidence")
def failing_client_called_ok(day: StagedDay, group: str) -> None:
    client(
        day, group, main_state="empty", bak_state="refused", start_from="bak", start_outcome="fails_to_start"
    )


@fault("broadcast_offset_file.state_follows_evidence")
def files_that_stop_a_client_called_unused(day: StagedDay, group: str) -> None:
    client(
        day,
        group,
        state="orphan_dir",
        is_online=False,
        main_state="empty",
        bak_state="refused",
        start_from="bak",
        start_outcome="fails_to_start",
    )
    report_finding(day, group, "offset_file_unused")


# Faults of the queues


@fault("broadcast_offset.state_known")
def queue_state_off_the_list(day: StagedDay, group: str) -> None:
    read_client(day, group)["state"] = "fine"


@fault("broadcast_offset.offset_has_file")
def offset_without_a_file(day: StagedDay, group: str) -> None:
    queue(day, group)


@fault("broadcast_offset.offset_has_file")
def offset_of_an_unreadable_file(day: StagedDay, group: str) -> None:
    client(
        day,
        group,
        state="empty",
        start_outcome="default",
        start_from=None,
        main_state="empty",
        bak_state="missing",
    )
    queue(day, group, file_state="empty")
    report_finding(day, group, "offset_file_lost")


@fault("broadcast_offset.bounds_equal_broker", "broadcast_offset.lag_consistent_with_bounds")
def unknown_bounds_reported_as_zero(day: StagedDay, group: str) -> None:
    read_client(day, group)["max_offset"] = 99


@fault("broadcast_offset.bounds_equal_broker")
def another_least_offset(day: StagedDay, group: str) -> None:
    read_client(day, group)["min_offset"] = 0


@fault("broadcast_offset.memory_equals_client")
def memory_reported_by_no_client(day: StagedDay, group: str) -> None:
    read_client(day, group)["memory_offset"] = 90


@fault("broadcast_offset.memory_equals_client")
def memory_of_the_client_left_out(day: StagedDay, group: str) -> None:
    row = read_client(day, group)
    remembered(day, row, 90)
    row["memory_offset"] = None


@fault("broadcast_offset.state_follows_offsets")
def client_that_reads_on_called_stuck(day: StagedDay, group: str) -> None:
    row = read_client(day, group)
    remembered(day, row, 95)
    row.update(state="stale", previous_offset=90, repeated_message_count=5)
    report_finding(day, group, "broadcast_client_stuck", group)


@fault("broadcast_offset.restart_follows")
def messages_read_since_the_file_was_written_not_counted(day: StagedDay, group: str) -> None:
    remembered(day, read_client(day, group), 95)


@fault("broadcast_offset.lag_consistent_with_bounds")
def negative_lag(day: StagedDay, group: str) -> None:
    client(day, group)
    queue(
        day,
        group,
        state="unknown",
        stored_offset=110,
        restart_offset=110,
        lag_message_count=-10,
        lost_message_count=0,
    )


@fault("broadcast_offset.lag_consistent_with_bounds")
def lag_withheld(day: StagedDay, group: str) -> None:
    read_client(day, group)["lag_message_count"] = None


@fault("broadcast_offset.lag_consistent_with_bounds")
def losses_without_an_offset(day: StagedDay, group: str) -> None:
    client(day, group)
    queue(
        day,
        group,
        state="no_offset",
        stored_offset=None,
        lag_message_count=None,
        lost_message_count=0,
        restart_offset=100,
        restart_reason="default_last",
        skipped_message_count=None,
    )


@fault("broadcast_offset.state_follows_offsets", "broadcast_offset.restart_follows")
def offset_gone_back_and_called_ok(day: StagedDay, group: str) -> None:
    read_client(day, group)["previous_offset"] = 95


@fault("broadcast_offset.state_follows_offsets")
def queue_without_a_route_called_ok(day: StagedDay, group: str) -> None:
    read_client(day, group)["is_routed"] = False


@fault("broadcast_offset.restart_follows")
def restart_elsewhere_than_stored(day: StagedDay, group: str) -> None:
    read_client(day, group).update(restart_offset=100, skipped_message_count=10)


@fault("broadcast_offset.restart_follows")
def skipped_messages_not_counted(day: StagedDay, group: str) -> None:
    client(day, group)
    queue(
        day,
        group,
        state="behind_min",
        stored_offset=4,
        lag_message_count=96,
        lost_message_count=6,
        restart_offset=10,
        restart_reason="corrected_by_broker_to_min",
    )
    report_finding(day, group, "broadcast_messages_lost", group)


@fault("broadcast_offset.restart_follows")
def default_in_spite_of_an_offset(day: StagedDay, group: str) -> None:
    read_client(day, group).update(
        restart_reason="default_last", restart_offset=100, skipped_message_count=10
    )


# Faults of the findings


@fault("finding.broadcast_has_finding")
def shared_file_not_reported(day: StagedDay, group: str) -> None:
    client(day, group, state="shared_file", process_count=2)


@fault("finding.broadcast_has_finding")
def undecided_file_not_reported(day: StagedDay, group: str) -> None:
    client(day, group, state="unknown", start_outcome=None, start_from=None, main_state="undecided")


@fault("finding.broadcast_has_finding")
def lost_messages_not_reported(day: StagedDay, group: str) -> None:
    client(day, group)
    queue(
        day,
        group,
        state="behind_min",
        stored_offset=4,
        lag_message_count=96,
        lost_message_count=6,
        restart_offset=10,
        restart_reason="corrected_by_broker_to_min",
        skipped_message_count=6,
    )


@fault("broadcast_offset.queues_complete")
def queue_of_a_broadcasting_group_left_out(day: StagedDay, group: str) -> None:
    read_client(day, group)
    for queue_id in (0, 1):
        day.add(
            "ownership_drift",
            consumer_group=group,
            topic=group,
            broker_name="broker-a",
            queue_id=queue_id,
            state="match",
            group_state="broadcasting",
            route_state="known",
            is_routed=True,
        )


@fault("finding.broadcast_has_finding")
def corrupt_files_reported_for_another_host(day: StagedDay, group: str) -> None:
    client_that_does_not_start(day, group)
    day.of("finding", consumer_group=group)[0]["examples"] = ["h2"]


@fault("finding.broadcast_has_finding")
def another_number_of_queues_reported(day: StagedDay, group: str) -> None:
    file_past_the_end_of_the_log(day, group)
    day.of("finding", consumer_group=group)[0]["queue_count"] = 2


@fault("finding.broadcast_has_finding")
def corrupt_files_reported_for_a_healthy_client(day: StagedDay, group: str) -> None:
    client(day, group)
    report_finding(day, group, "offset_files_corrupt")


# Valid cases that resemble a fault


@excused
def client_whose_host_did_not_land(day: StagedDay, group: str) -> None:
    day.add(
        "broadcast_offset_file",
        consumer_group=group,
        client_id=CLIENT,
        state="unknown",
        reason="no files landed of the client's host",
        snapshot_count=0,
        landed_file_count=0,
        failed_file_count=0,
        earlier_snapshots=[],
        host_count=0,
    )


@excused
def file_written_after_the_broker_was_asked(day: StagedDay, group: str) -> None:
    client(day, group)
    queue(day, group, stored_offset=105, restart_offset=105, lag_message_count=None, previous_offset=50)


@excused
def file_past_the_end_of_the_log(day: StagedDay, group: str) -> None:
    client(day, group)
    queue(
        day,
        group,
        state="ahead_of_max",
        stored_offset=105,
        lag_message_count=-5,
        restart_offset=100,
        restart_reason="corrected_by_broker_to_max",
        skipped_message_count=None,
        repeated_message_count=None,
    )
    report_finding(day, group, "broadcast_offset_ahead", group)


@excused
def client_that_does_not_start(day: StagedDay, group: str) -> None:
    client(
        day,
        group,
        state="corrupt_both",
        start_outcome="fails_to_start",
        start_from="bak",
        main_state="empty",
        bak_state="refused",
    )
    queue(
        day,
        group,
        state="no_offset",
        file_state="corrupt_both",
        stored_offset=None,
        lag_message_count=None,
        lost_message_count=None,
        restart_offset=None,
        restart_reason="fails_to_start",
        skipped_message_count=None,
        repeated_message_count=None,
    )
    report_finding(day, group, "offset_files_corrupt")


@excused
def abandoned_files_that_would_stop_a_client(day: StagedDay, group: str) -> None:
    files_that_stop_a_client_called_unused(day, group)
    day.of("broadcast_offset_file", consumer_group=group)[0]["age_ms"] = 8 * 24 * 3_600_000


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


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_violates_its_own_expectation_only(name: str, corrupted_metrics: dict[str, Row]) -> None:
    seen = {
        expectation_id
        for expectation_id in JUDGED
        if any(
            re.search(rf"\b{name}\b", example) for example in corrupted_metrics[expectation_id]["examples"]
        )
    }

    assert seen == FAULTS[name][1]


def test_an_example_names_host_client_group_and_problem(corrupted_metrics: dict[str, Row]) -> None:
    assert (
        "host h1, client 10.1.1.21@DEFAULT, group file_counted_twice: 3 files and 0 failures are counted, "
        "expected 2 and 0"
    ) in corrupted_metrics["broadcast_offset_file.files_accounted"]["examples"]
