"""Queues without an owner because members pop them: their possible and observed readers, and the group's findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.pipeline import steps
from tests.support.computed_days import newest, staged_rows
from tests.support.export_builder import DS
from tests.support.sharing_cluster import (
    CASES,
    CLUSTER,
    CONSUMER_OFFSET,
    HANDED_OUT,
    LEASED_MS,
    MOST,
    NOON_MS,
    REDELIVERIES,
    SHARED,
    sharing_export,
)

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from rebalance_ledger.pipeline.day import Day
    from tests.support.small_days import SmallDays

Row = dict[str, Any]


def write_exports(exports: Path) -> list[tuple[str, date]]:
    sharing_export().seal(exports)
    return [(CLUSTER, DS)]


pytestmark = [pytest.mark.spark, pytest.mark.small_days.with_args(write_exports)]


@pytest.fixture(scope="module")
def day(small_days: SmallDays) -> Day:
    [day] = small_days.of(write_exports)
    return day


@pytest.fixture(scope="module")
def rows(day: Day) -> dict[str, list[Row]]:
    tables = ("queue_assignment", "assignment_fairness", "ownership_drift", "queue_sharing", "finding")
    return {name: staged_rows(newest(day), name) for name in tables}


def queues(rows: dict[str, list[Row]], table: str, group: str, topic: str | None = None) -> dict[str, Row]:
    """Return queue -> row of a group and topic. The default topic has the name of the group."""
    return {
        f"{row['broker_name']}/{row['queue_id']}": row
        for row in rows[table]
        if row["consumer_group"] == group and row["topic"] == (topic or group)
    }


@pytest.mark.parametrize("name", CASES)
def test_each_queue_has_its_state_and_its_reason(name: str, rows: dict[str, list[Row]]) -> None:
    found = {
        queue: (row["state"], row["likely_cause"] or row["unknown_reason"])
        for queue, row in queues(rows, "ownership_drift", name).items()
    }

    assert found
    assert found == {queue: CASES[name].queues.get(queue, CASES[name].states) for queue in found}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.retried])
def test_grpc_clients_divide_the_plain_retry_topic_where_brokers_list_them_and_never_read_it(
    name: str, rows: dict[str, list[Row]]
) -> None:
    found = {
        queue: (row["state"], row["likely_cause"] or row["unknown_reason"])
        for queue, row in queues(rows, "ownership_drift", name, f"%RETRY%{name}").items()
    }

    assert found == CASES[name].retried


def test_an_unowned_queue_of_a_grpc_client_is_explained_by_the_finding_of_its_group(
    rows: dict[str, list[Row]],
) -> None:
    of_group = {row["kind"]: row for row in rows["finding"] if row["consumer_group"] == "retry-beside-grpc"}

    assert of_group["unowned"]["parent_finding_id"] == of_group["mixed_request_modes"]["finding_id"]


@pytest.mark.parametrize("name", CASES)
def test_each_shared_queue_has_its_expected_readers(name: str, rows: dict[str, list[Row]]) -> None:
    case = CASES[name]
    shared = queues(rows, "queue_sharing", name)

    assert bool(shared) == (case.states == SHARED)
    for queue, row in shared.items():
        expected = case.readers_of.get(queue, case.readers)
        assert (row["expected_reader_ids"], row["sharing_degree"]) == (expected, expected and len(expected))
        assert (row["request_mode"], row["request_mode_source"]) == case.mode


@pytest.mark.parametrize("name", CASES)
def test_each_group_has_exactly_its_expected_findings(name: str, rows: dict[str, list[Row]]) -> None:
    kinds = {row["kind"] for row in rows["finding"] if row["consumer_group"] == name}

    assert kinds == CASES[name].findings


def test_the_strategies_that_a_broker_lacks_are_those_of_members_that_it_does_not_answer(
    rows: dict[str, list[Row]],
) -> None:
    [finding] = [
        row
        for row in rows["finding"]
        if row["consumer_group"] == "ring-beside-two-strategies"
        and row["kind"] == "strategy_unknown_to_broker"
    ]

    assert (finding["examples"], finding["seen_values"]) == (["c1"], ["CONSISTENT_HASH"])
    assert "does not have CONSISTENT_HASH:" in finding["evidence"]


def test_no_advice_blames_the_strategy_or_the_number_of_clients(rows: dict[str, list[Row]]) -> None:
    advice = " ".join(row["advice"] for row in rows["finding"] if "ring" not in (row["consumer_group"] or ""))

    for words in ("allocateMessageQueueStrategy", "idle", "delete"):
        assert words not in advice


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.readers or case.readers_of])
def test_fairness_is_null_if_queues_have_no_owner(name: str, rows: dict[str, list[Row]]) -> None:
    [row] = [
        row
        for row in rows["assignment_fairness"]
        if row["consumer_group"] == name and row["topic"] == name and row["is_effective"]
    ]

    assert row["strategy"] == "POP"
    numbers = ("max_over_mean", "jain_index", "idle_client_count", "unowned_queue_count", "is_within_bound")
    assert [row[number] for number in numbers] == [None] * len(numbers)


def test_no_strategy_assigns_a_shared_queue(rows: dict[str, list[Row]]) -> None:
    owners = {
        row["client_id"]
        for row in rows["queue_assignment"]
        if row["is_effective"]
        and row["topic"] == row["consumer_group"]
        and CASES[row["consumer_group"]].states == ("shared", None)
    }

    assert owners == {None}


def test_in_flight_and_ready_messages_are_distinguished(rows: dict[str, list[Row]]) -> None:
    row = queues(rows, "queue_sharing", "popped-by-all")["a/0"]

    assert (row["committed_offset"], row["handed_out_offset"]) == (CONSUMER_OFFSET, HANDED_OUT)
    assert (row["in_flight_count_at_most"], row["ready_count"]) == (
        HANDED_OUT - CONSUMER_OFFSET,
        MOST - HANDED_OUT,
    )
    assert row["retry_backlog_count"] == 4
    undetermined = queues(rows, "queue_sharing", "grpc-alone")["a/0"]
    assert (undetermined["in_flight_count_at_most"], undetermined["ready_count"]) == (None, None)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("popped-by-all", 4),
        ("retried-on-recreated-topic", 50),
        ("retried-on-one-broker-that-answered", None),
        ("offsets-at-the-end-of-bigint", None),
        ("grpc-alone", None),
    ],
)
def test_messages_to_retry_are_counted_only_if_all_brokers_answered(
    name: str, count: int | None, rows: dict[str, list[Row]]
) -> None:
    assert {row["retry_backlog_count"] for row in queues(rows, "queue_sharing", name).values()} == {count}


def test_a_number_of_messages_that_no_bigint_holds_is_null(rows: dict[str, list[Row]]) -> None:
    row = queues(rows, "queue_sharing", "offsets-at-the-end-of-bigint")["a/0"]

    assert (row["in_flight_count_at_most"], row["ready_count"]) == (0, None)


def test_a_fifo_queue_is_blocked_until_its_last_lease_ends(rows: dict[str, list[Row]]) -> None:
    def blocks(group: str) -> dict[str, tuple[float | None, int | None]]:
        return {
            queue: (
                row["order_blocked_until"] and row["order_blocked_until"].timestamp() * 1000 - NOON_MS,
                row["redelivery_count"],
            )
            for queue, row in queues(rows, "queue_sharing", group).items()
        }

    half, unknown = LEASED_MS / 2, (None, None)
    assert blocks("fifo-blocked") == dict.fromkeys(("a/1", "b/0", "b/1"), unknown) | {
        "a/0": (half, REDELIVERIES)
    }
    assert blocks("fifo-consumed") == {
        "b/0": (half, 0),
        "b/1": (3_600_000, 0),
        "b/2": (half, 1),
        "b/3": (None, 1),
    }


def test_a_blocked_fifo_queue_has_its_evidence_in_columns(rows: dict[str, list[Row]]) -> None:
    [row] = [row for row in rows["finding"] if row["kind"] == "order_queue_blocked"]

    assert (row["consumer_group"], row["topic"], row["severity"]) == (
        "fifo-blocked",
        "fifo-blocked",
        "warning",
    )
    assert (row["queue_count"], row["examples"]) == (1, ["a/0"])
    assert "up to 3 times" in row["evidence"]
    assert f"{MOST - CONSUMER_OFFSET - 3} messages wait" in row["evidence"]


def test_unobservable_readers_are_counted_and_not_treated_as_absent(
    rows: dict[str, list[Row]],
) -> None:
    seen = queues(rows, "queue_sharing", "popped-by-all")["a/0"]
    unseen = queues(rows, "queue_sharing", "grpc-alone")["a/0"]

    assert (seen["observed_reader_ids"], seen["unobserved_reader_count"]) == (["c1", "c2", "c3"], 0)
    assert (unseen["observed_reader_ids"], unseen["unobserved_reader_count"]) == (None, 2)


def test_clients_that_pull_in_a_popping_group_are_named(rows: dict[str, list[Row]]) -> None:
    pullers = {
        queue: row["puller_ids"] for queue, row in queues(rows, "queue_sharing", "one-pops-one-pulls").items()
    }

    assert pullers == {"a/0": [], "a/1": [], "b/0": ["c2"], "b/1": ["c2"]}


def test_the_gate_finds_no_violation(day: Day) -> None:
    assert steps.gate(day).reasons == []
