"""The bundled sample of a real cluster: what the ledger says is what was observed."""

from __future__ import annotations

import csv
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from computed_days import ROOT, asked

from warehouse.query import query

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.layout import Warehouse

pytestmark = pytest.mark.spark

DAYS = ("2026-11-16", "2026-11-17", "2026-11-18")
QUESTIONS = sorted((ROOT / "sql" / "questions").glob("*.sql"))
NO_NEWS = {"owners_other_than_expected", "what_the_gate_said"}
"""Questions about bad news that the sample does not have."""

Owners = dict[tuple[str, ...], set[str]]


def observed(ds: str) -> Owners:
    """Group, topic, broker, queue -> the clients whose own process table had the queue."""
    owners: Owners = defaultdict(set)
    with (ROOT / "tests" / "data" / "observed_owners" / f"{ds}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            owners[row["group"], row["topic"], row["broker"], row["queue"]].add(row["client_id"])
    return owners


def effective(warehouse: Warehouse, ds: str) -> Owners:
    owners: Owners = defaultdict(set)
    for day, *queue, client_id in asked(
        warehouse,
        "SELECT ds::VARCHAR, consumer_group, topic, broker_name, queue_id::VARCHAR, client_id FROM queue_assignment "
        "WHERE is_effective AND client_id IS NOT NULL",
    ):
        if day == ds:
            owners[tuple(queue)].add(client_id)
    return owners


@pytest.mark.parametrize("ds", DAYS)
def test_every_queue_of_every_group_has_the_owners_that_were_observed(
    sample_warehouse: Warehouse, ds: str
) -> None:
    assert effective(sample_warehouse, ds) == observed(ds)


def test_the_truth_covers_every_way_of_sharing_and_the_retry_topics(sample_warehouse: Warehouse) -> None:
    compared = {queue[:2] for ds in DAYS for queue in observed(ds)}
    strategies = asked(
        sample_warehouse,
        "SELECT DISTINCT consumer_group, topic, strategy FROM queue_assignment WHERE is_effective",
    )

    assert {strategy for group, topic, strategy in strategies if (group, topic) in compared} == {
        "AVG",
        "AVG_BY_CIRCLE",
        "BROADCASTING",
        "CONFIG",
        "CONSISTENT_HASH",
        "MACHINE_ROOM",
        "MACHINE_ROOM_NEARBY",
        "MIXED",
    }
    assert sum(topic.startswith("%RETRY%") for _, topic in compared) == 10


def test_queues_that_nobody_was_seen_to_own_are_shown_with_the_reason(sample_warehouse: Warehouse) -> None:
    unowned = asked(
        sample_warehouse,
        "SELECT consumer_group, reason, count(*) FROM queue_assignment "
        "WHERE is_effective AND client_id IS NULL AND ds = '2026-11-16' GROUP BY ALL ORDER BY ALL",
    )

    assert unowned == [
        ("member-sync", "duplicate_client_id", 4),
        ("pinned-export", "not_in_configured_list", 3),
        ("price-index", "mixed_strategies", 2),
        ("room-report", "room_without_consumers", 9),
    ]


def test_an_offline_group_is_shown_as_offline_and_not_as_idle(sample_warehouse: Warehouse) -> None:
    fairness = asked(
        sample_warehouse,
        "SELECT DISTINCT group_state, client_count, mean_queues_per_client, max_over_mean, jain_index, "
        "idle_client_count, is_effective FROM assignment_fairness WHERE consumer_group = 'audit-offline'",
    )
    reasons = asked(
        sample_warehouse,
        "SELECT DISTINCT reason, client_id, is_effective FROM queue_assignment WHERE consumer_group = 'audit-offline'",
    )
    findings = asked(
        sample_warehouse,
        "SELECT kind, count(*) FROM finding WHERE consumer_group = 'audit-offline' GROUP BY kind",
    )

    assert fairness == [("offline", 0, None, None, None, None, False)]
    assert reasons == [("group_offline", None, False)]
    assert findings == [("group_offline", len(DAYS))]


def test_clients_keep_the_queues_of_a_topic_that_lost_its_route(sample_warehouse: Warehouse) -> None:
    kept = asked(
        sample_warehouse,
        "SELECT ds::VARCHAR, consumer_group, topic, queue_id, client_id FROM queue_assignment "
        "WHERE reason = 'kept_without_route' ORDER BY queue_id",
    )
    fairness = asked(
        sample_warehouse,
        "SELECT queue_count, unowned_queue_count FROM assignment_fairness WHERE topic = 'sh-local-audit' "
        "AND ds = '2026-11-18' AND is_effective",
    )

    assert kept == [
        ("2026-11-18", "risk-engine", "sh-local-audit", 0, "10.1.0.71@risk-1"),
        ("2026-11-18", "risk-engine", "sh-local-audit", 1, "10.1.0.72@risk-2"),
    ]
    assert fairness == [(None, 0)]


def test_a_shared_client_id_is_counted_as_two_processes(sample_warehouse: Warehouse) -> None:
    assert asked(
        sample_warehouse,
        "SELECT DISTINCT client_id, client_connection_count FROM queue_assignment "
        "WHERE is_effective AND client_connection_count > 1 ORDER BY client_id",
    ) == [("10.1.0.101@member", 2), ("10.1.1.30@DEFAULT", 2)]


def test_a_broker_that_is_down_is_a_source_that_failed_and_not_a_missing_member(
    sample_warehouse: Warehouse,
) -> None:
    failed = asked(
        sample_warehouse, "SELECT ds::VARCHAR, broker_name FROM finding WHERE kind = 'source_failed'"
    )
    states = asked(
        sample_warehouse,
        "SELECT DISTINCT state FROM group_presence WHERE ds = '2026-11-18' AND broker_name = 'sh@broker-c'",
    )

    assert failed == [("2026-11-18", "sh@broker-c")]
    assert states == [("unknown",)]
    assert asked(sample_warehouse, "SELECT count(*) FROM finding WHERE kind = 'members_unknown'") == [(0,)]


def test_nothing_of_the_sample_is_rejected(sample_warehouse: Warehouse) -> None:
    assert asked(sample_warehouse, "SELECT count(*) FROM rejected_record") == [(0,)]
    assert asked(sample_warehouse, "SELECT count(*) FROM export_record WHERE state = 'rejected'") == [(0,)]


@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: path.stem)
def test_every_question_has_an_answer_on_it(sample_warehouse: Warehouse, path: Path) -> None:
    with query(sample_warehouse.root, path.read_text(encoding="utf-8")) as result:
        answered = bool(list(result.rows))

    assert answered == (path.stem not in NO_NEWS)


def test_who_owned_a_queue_knows_since_when(sample_warehouse: Warehouse) -> None:
    sql = (ROOT / "sql" / "questions" / "who_owned_this_queue.sql").read_text(encoding="utf-8")
    with query(sample_warehouse.root, sql) as result:
        rows = [dict(zip(result.column_names, row, strict=True)) for row in result.rows]

    assert [str(row["ds"]) for row in rows] == sorted(DAYS, reverse=True)
    assert {str(row["since"]) for row in rows} == {"2026-11-16"}
    assert all(row["should_own"] == row["did_own"] for row in rows)


def test_the_summary_has_a_line_for_each_day(
    sample_warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    from ledger.summary import show_summary

    show_summary(sample_warehouse.root)

    lines = [line for line in capsys.readouterr().out.splitlines() if "shop-prod" in line]
    assert [line.replace("│", " ").split()[1:5] for line in lines] == [
        ["2026-11-16", "15", "167", "1090"],
        ["2026-11-17", "15", "167", "1090"],
        ["2026-11-18", "15", "139", "927"],
    ]
