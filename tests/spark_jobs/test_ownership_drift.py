"""Ownership mismatches and their causes: cases that the sample of a real cluster lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from expectations.suites import thresholds
from rebalance_ledger.pipeline import steps
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.warehouse.layout import Warehouse
from spark_jobs.gold import ownership_drift
from tests.support.computed_days import compute, newest, staged_rows
from tests.support.drifting_cluster import CASES, CLUSTER, Expected, write
from tests.support.export_builder import DS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Row = dict[str, Any]


@pytest.fixture(scope="module")
def expected_and_day(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Expected], Day]:
    folder = tmp_path_factory.mktemp("drifting")
    expected = write(folder)
    day = Day(
        CLUSTER, DS, folder / "exports", Warehouse.at(str(folder / "warehouse")), folder / "ledger.yaml"
    )
    compute(spark, day)
    return expected, day


@pytest.fixture(scope="module")
def rows(expected_and_day: tuple[dict[str, Expected], Day]) -> dict[str, list[Row]]:
    """Return the staged rows of the tables that the tests read."""
    stage = newest(expected_and_day[1])
    return {name: staged_rows(stage, name) for name in ("ownership_drift", "finding")}


def drift(rows: dict[str, list[Row]], group: str) -> dict[str, Row]:
    return {
        f"{row['broker_name']}/{row['queue_id']}": row
        for row in rows["ownership_drift"]
        if row["consumer_group"] == group
    }


def kinds(rows: dict[str, list[Row]], group: str) -> dict[str, str | None]:
    return {row["kind"]: row["likely_cause"] for row in rows["finding"] if row["consumer_group"] == group}


@pytest.mark.parametrize("name", CASES)
def test_each_queue_has_its_state_and_cause(
    name: str, expected_and_day: tuple[dict[str, Expected], Day], rows: dict[str, list[Row]]
) -> None:
    actual = {
        queue: (row["state"], row["likely_cause"] or row["unknown_reason"])
        for queue, row in drift(rows, name).items()
    }

    assert actual == expected_and_day[0][name]


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("java_and_go", {"match", "unowned", "multiple_owners"}),
        ("releases_with_other_rooms", {"match", "unowned", "multiple_owners"}),
        ("releases_before_rooms_were_kept_apart", {"match", "unowned"}),
    ],
)
def test_the_cases_that_the_rules_decide_have_queues_of_each_kind(
    name: str, states: set[str], expected_and_day: tuple[dict[str, Expected], Day]
) -> None:
    assert {state for state, _ in expected_and_day[0][name].values()} == states


@pytest.mark.parametrize(
    "name",
    [
        "well",
        "releases_with_one_rule",
        "shared_by_the_broker",
        "broadcasting_member_that_is_gone",
        "quiet_topic_that_just_got_messages",
        "quiet_topic_without_messages",
    ],
)
def test_a_healthy_group_has_no_finding(name: str, rows: dict[str, list[Row]]) -> None:
    assert kinds(rows, name) == {}


def test_more_clients_than_queues_are_the_cause_of_idle_clients_and_of_no_drift(
    rows: dict[str, list[Row]],
) -> None:
    assert kinds(rows, "more_clients_than_queues") == {"idle_clients": "more_clients_than_queues"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "member_that_does_not_subscribe",
            {"unowned": "subscriptions_differ", "subscriptions_differ": None},
        ),
        (
            "overlapping_lists",
            {"unowned": "not_in_config_list", "multiple_owners": "config_list_overlap"},
        ),
        ("ghost_on_one_broker", {"unowned": "member_lists_differ", "member_lists_differ": None}),
        (
            "dead_connection_on_one_broker",
            {"unowned": "member_lists_differ", "member_lists_differ": None},
        ),
        ("client_that_has_just_started", {"unexpected_owner": "not_yet_rebalanced"}),
        ("route_that_vanished", {"assignment_stale": "route_missing"}),
        ("client_that_does_not_answer", {"client_unreachable": None, "unowned": None}),
        ("group_that_is_offline", {"group_offline": None}),
        ("broadcasting_member_that_lost_a_broker", {"broadcast_queue_not_consumed": None}),
        ("broadcasting_duplicate_client_ids", {"duplicate_client_id": None}),
        (
            "id_listed_twice_by_every_broker",
            {"duplicate_client_id": None, "unowned": "duplicate_client_id"},
        ),
        ("suspended_consumer", {"consumption_stalled": None}),
        ("group_that_only_failed_questions_name", {"members_unknown": None}),
        ("group_that_only_its_retry_topic_names", {"members_unknown": None}),
        ("group_that_was_deleted", {}),
        ("group_that_exists_and_is_not_used", {}),
        ("pull_consumers", {}),
        ("pull_consumers_that_subscribe", {}),
        ("queues_assigned_by_hand", {}),
        ("members_that_report_no_strategy", {"unowned": None, "settings_missing": None}),
        ("ignored_dead_connection", {"member_lists_differ": None}),
        (
            "one_pops_and_one_pulls",
            {"mixed_request_modes": None, "multiple_owners": "mixed_request_modes"},
        ),
        (
            "strategy_of_their_own",
            {"unowned": None, "multiple_owners": None, "strategy_unknown": None},
        ),
    ],
)
def test_each_problem_has_a_finding(
    name: str, expected: dict[str, str | None], rows: dict[str, list[Row]]
) -> None:
    assert kinds(rows, name) == expected


def test_a_finding_has_its_evidence_in_columns(rows: dict[str, list[Row]]) -> None:
    [row] = [
        row
        for row in rows["finding"]
        if row["consumer_group"] == "overlapping_lists" and row["kind"] == "multiple_owners"
    ]

    assert (row["queue_count"], row["client_count"], row["client_total_count"]) == (1, 2, 2)
    assert row["examples"] == ["a/0"]
    assert row["page"] == "docs/findings/multiple_owners.md"
    assert (row["severity"], row["advice"]) == ("critical", "Remove the queue from all lists but one.")


def test_processes_of_a_duplicate_client_id_are_reported_only_if_they_answered(
    rows: dict[str, list[Row]],
) -> None:
    """Both groups have queues without an owner, so both findings are critical."""
    actual = {
        row["consumer_group"]: (row["severity"], row["process_count"])
        for row in rows["finding"]
        if row["kind"] == "duplicate_client_id"
    }

    assert actual["duplicate_client_ids_asked_directly"] == ("critical", 2)
    assert actual["id_listed_twice_by_every_broker"] == ("critical", None)
    assert "id_listed_twice_with_one_process" not in actual


def test_the_member_with_other_parameters_is_named(rows: dict[str, list[Row]]) -> None:
    named = {
        name: {
            (row["deviating_client_id"], row["deviating_parameters"])
            for row in drift(rows, name).values()
            if row["likely_cause"] == "parameters_differ"
        }
        for name in ("member_with_other_rooms", "member_with_other_virtual_nodes")
    }

    assert named == {
        "member_with_other_rooms": {("c3", "consumeridcs = sh")},
        "member_with_other_virtual_nodes": {("c3", "virtualNodeCnt = 100")},
    }


def test_manually_assigned_queues_are_shown(rows: dict[str, list[Row]]) -> None:
    seen = drift(rows, "queues_assigned_by_hand")

    assert [seen[queue]["observed_client_ids"] for queue in ("a/0", "a/1", "b/1")] == [
        ["c1@STREAM"],
        [],
        ["c1@STREAM"],
    ]
    assert {row["expected_client_ids"] for row in seen.values()} == {None}


@pytest.mark.parametrize(
    ("group", "client", "queues"),
    [("suspended_consumer", "c2", ["b/0", "b/1"]), ("stalled_duplicate_client_ids", "c1", ["a/0", "a/1"])],
)
def test_a_stalled_consumer_is_reported_with_its_backlog(
    rows: dict[str, list[Row]], group: str, client: str, queues: list[str]
) -> None:
    [row] = [
        row
        for row in rows["finding"]
        if (row["consumer_group"], row["kind"]) == (group, "consumption_stalled")
    ]

    assert row["examples"] == queues
    assert row["evidence"].startswith(
        f"10 messages wait in 2 queues, of which {client} has consumed nothing for 60 minutes"
    )


def test_a_pending_rebalance_is_not_critical(rows: dict[str, list[Row]]) -> None:
    passing = {
        row["severity"]
        for row in rows["finding"]
        if row["likely_cause"] == "not_yet_rebalanced" and row["root_finding_id"] is None
    }

    assert passing == {"warning"}


def test_expected_and_observed_owners_are_listed_together(rows: dict[str, list[Row]]) -> None:
    row = drift(rows, "client_that_has_just_started")["b/1"]

    assert (row["expected_client_ids"], row["observed_client_ids"]) == (["c3"], ["c2"])
    assert (row["newest_client_age_ms"], row["client_count"], row["unasked_client_count"]) == (5000, 3, 0)


def test_expected_owners_are_null_if_they_are_unknown(rows: dict[str, list[Row]]) -> None:
    assert drift(rows, "lists_from_no_broker")["a/1"]["expected_client_ids"] is None
    assert drift(rows, "overlapping_lists")["b/1"]["expected_client_ids"] == []


def test_processes_with_one_id_are_counted(rows: dict[str, list[Row]]) -> None:
    counts = {
        name: drift(rows, name)["a/1"]["observed_process_count"]
        for name in (
            "id_listed_twice_by_every_broker",
            "duplicate_client_ids_asked_directly",
            "duplicate_client_id_that_lost_a_queue",
        )
    }

    assert counts == {
        "id_listed_twice_by_every_broker": 1,
        "duplicate_client_ids_asked_directly": 2,
        "duplicate_client_id_that_lost_a_queue": 1,
    }


def test_members_that_pop_are_all_owners(rows: dict[str, list[Row]]) -> None:
    observed = {
        queue: row["observed_client_ids"] for queue, row in drift(rows, "shared_by_the_broker").items()
    }

    assert observed == {"a/0": ["c1", "c2"], "a/1": ["c1", "c2"], "b/0": ["c1", "c2"], "b/1": ["c1"]}


def test_every_cause_of_the_closed_list_occurs_here_or_in_another_cluster(rows: dict[str, list[Row]]) -> None:
    met = {row["likely_cause"] for row in rows["ownership_drift"]} - {None}
    of_the_sharing_cluster = {"server_load_balancer_off"}

    assert set(thresholds.DRIFT_CAUSES) - met == of_the_sharing_cluster


def test_the_gate_finds_no_violation(
    expected_and_day: tuple[dict[str, Expected], Day],
) -> None:
    verdict = steps.gate(expected_and_day[1])

    assert verdict.reasons == []


def test_the_gate_and_the_job_use_the_same_limit_for_just_started_clients() -> None:
    assert ownership_drift.REBALANCE_GRACE_MS == thresholds.REBALANCE_GRACE_MS
