"""The bundled sample of a real cluster: the ledger equals the observed state."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.warehouse.query import query
from tests.support.computed_days import ROOT, asked

if TYPE_CHECKING:
    from pathlib import Path

    from rebalance_ledger.warehouse.layout import Warehouse

pytestmark = pytest.mark.spark

DAYS = ("2026-11-16", "2026-11-17", "2026-11-18")
QUESTIONS = sorted((ROOT / "sql" / "questions").glob("*.sql"))
NO_NEWS = {
    "queues_with_unknown_owner",
    "outdated_days",
    "quarantined_groups",
    "shared_queues",
}
"""Questions about what does not occur in the sample."""

Owners = dict[tuple[str, ...], set[str]]


def observed(ds: str) -> Owners:
    """Return group, topic, broker, queue -> the clients whose own process tables contained the queue."""
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


def test_queues_without_an_observed_owner_are_shown_with_the_reason(sample_warehouse: Warehouse) -> None:
    unowned = asked(
        sample_warehouse,
        "SELECT consumer_group, reason, count(*) FROM queue_assignment "
        "WHERE is_effective AND client_id IS NULL AND ds = '2026-11-16' GROUP BY ALL ORDER BY ALL",
    )

    assert unowned == [
        ("member-sync", "duplicate_client_id", 4),
        ("pinned-export", "not_in_config_list", 3),
        ("price-index", "mixed_strategies", 2),
        ("room-report", "room_without_clients", 9),
    ]


OWNED_AS_THEY_SHOULD_BE = (
    "config-listeners",
    "coupon-worker",
    "feature-flags",
    "inventory-cache",
    "nearby-search",
    "order-fifo",
    "order-service",
    "report-pull",
    "risk-engine",
    "user-profile",
)
"""Groups with a correct setup. `risk-engine` also has one topic that loses its route, which is excluded."""

TWINS = {
    ("payment-notify", "match", None): 2,
    ("payment-notify", "multiple_owners", "duplicate_client_id"): 3,
    ("payment-notify", "unowned", "duplicate_client_id"): 3,
    ("%RETRY%member-sync", "multiple_owners", "duplicate_client_id"): 1,
    ("%RETRY%member-sync", "unowned", "duplicate_client_id"): 1,
}
GAPS = {
    ("payment-notify", "match", None): 7,
    ("payment-notify", "unowned", "not_in_config_list"): 1,
    ("%RETRY%pinned-export", "unowned", "not_in_config_list"): 2,
}
PLANTED: dict[str, dict[str, dict[tuple[str, str, str | None], int]]] = {
    "member-sync": dict.fromkeys(DAYS, TWINS),
    "price-index": {
        ds: {
            ("price-change", "match", None): 4,
            ("price-change", "multiple_owners", "mixed_strategies"): 2,
            ("price-change", "unowned", "mixed_strategies"): 2,
            ("%RETRY%price-index", "match", None): retry_queues,
        }
        for ds, retry_queues in zip(DAYS, (3, 3, 2), strict=True)
    },
    "pinned-export": dict.fromkeys(DAYS, GAPS),
    "room-report": {
        ds: {
            ("order-events", "match", None): served,
            ("order-events", "unowned", "room_without_clients"): unserved,
            ("%RETRY%room-report", "match", None): 2,
            ("%RETRY%room-report", "unowned", "room_without_clients"): unserved // 8,
        }
        for ds, served, unserved in zip(DAYS, (16, 16, 32), (8, 8, 0), strict=True)
    },
    "risk-engine": {
        DAYS[2]: {
            ("payment-notify", "match", None): 8,
            ("user-behavior", "match", None): 16,
            ("%RETRY%risk-engine", "match", None): 2,
            ("sh-local-audit", "unexpected_owner", "route_missing"): 2,
        }
    },
}
"""Group -> day -> topic, state and cause -> number of queues. samples/README.md lists the intended defects."""


def drift(warehouse: Warehouse, group: str, ds: str) -> dict[tuple[str, str, str | None], int]:
    return {
        (topic, state, cause): count
        for day, of_group, topic, state, cause, count in asked(
            warehouse,
            "SELECT ds::VARCHAR, consumer_group, topic, state, likely_cause, count(*) FROM ownership_drift GROUP BY ALL",
        )
        if (day, of_group) == (ds, group)
    }


@pytest.mark.parametrize("ds", DAYS)
@pytest.mark.parametrize("group", OWNED_AS_THEY_SHOULD_BE)
def test_every_queue_of_a_well_configured_group_is_a_match(
    sample_warehouse: Warehouse, group: str, ds: str
) -> None:
    message = drift(sample_warehouse, group, ds)
    message.pop(("sh-local-audit", "unexpected_owner", "route_missing"), None)

    assert message
    assert {(state, cause) for _, state, cause in message} == {("match", None)}


@pytest.mark.parametrize(("group", "ds"), [(group, ds) for group, days in PLANTED.items() for ds in days])
def test_deliberate_mistakes_are_reported_with_their_cause(
    sample_warehouse: Warehouse, group: str, ds: str
) -> None:
    expected = {message: count for message, count in PLANTED[group][ds].items() if count}

    assert drift(sample_warehouse, group, ds) == expected


def test_drift_has_no_other_group_and_nothing_is_unknown(sample_warehouse: Warehouse) -> None:
    groups = asked(sample_warehouse, "SELECT DISTINCT consumer_group FROM ownership_drift")
    unknown = asked(sample_warehouse, "SELECT count(*) FROM ownership_drift WHERE state = 'unknown'")

    assert {group for (group,) in groups} == {*OWNED_AS_THEY_SHOULD_BE, *PLANTED, "audit-offline"}
    assert unknown == [(0,)]


def test_processes_with_one_client_id_are_reported_separately_by_their_own_answers(
    sample_warehouse: Warehouse,
) -> None:
    processes = asked(
        sample_warehouse,
        "SELECT DISTINCT consumer_group, client_id, process FROM process_owner "
        "WHERE consumer_group IN ('member-sync', 'feature-flags') ORDER BY ALL",
    )

    assert processes == [
        ("feature-flags", "10.1.1.30@DEFAULT", "flag-1"),
        ("feature-flags", "10.1.1.30@DEFAULT", "flag-1x"),
        ("member-sync", "10.1.0.101@member", "member-1"),
        ("member-sync", "10.1.0.101@member", "member-1x"),
        ("member-sync", "10.1.0.102@member", "member-2"),
    ]


EVERY_DAY = {
    ("duplicate_client_id", "feature-flags", None, None),
    ("duplicate_client_id", "member-sync", None, None),
    ("idle_clients", "coupon-worker", "coupon-grant", "more_clients_than_queues"),
    ("group_offline", "audit-offline", None, None),
    ("offset_file_shared", "feature-flags", None, None),
    ("multiple_owners", "member-sync", "%RETRY%member-sync", "duplicate_client_id"),
    ("multiple_owners", "member-sync", "payment-notify", "duplicate_client_id"),
    ("multiple_owners", "price-index", "price-change", "mixed_strategies"),
    ("unowned", "member-sync", "%RETRY%member-sync", "duplicate_client_id"),
    ("unowned", "member-sync", "payment-notify", "duplicate_client_id"),
    ("unowned", "pinned-export", "%RETRY%pinned-export", "not_in_config_list"),
    ("unowned", "pinned-export", "payment-notify", "not_in_config_list"),
    ("unowned", "price-index", "price-change", "mixed_strategies"),
    ("mixed_strategies", "price-index", None, None),
}
WITH_BROKER_C = {
    ("idle_clients", "risk-engine", "sh-local-audit", "more_clients_than_queues"),
    ("unowned", "room-report", "%RETRY%room-report", "room_without_clients"),
    ("unowned", "room-report", "order-events", "room_without_clients"),
}
FINDINGS_OF_GROUPS = {
    DAYS[0]: EVERY_DAY | WITH_BROKER_C,
    DAYS[1]: EVERY_DAY | WITH_BROKER_C | {("load_imbalanced", "user-profile", "user-behavior", None)},
    DAYS[2]: EVERY_DAY
    | {
        ("assignment_stale", "risk-engine", "sh-local-audit", "route_missing"),
        ("idle_clients", "nearby-search", "inventory-sync", None),
        ("idle_clients", "user-profile", "user-behavior", None),
        ("load_imbalanced", "nearby-search", "inventory-sync", None),
        ("load_imbalanced", "user-profile", "user-behavior", None),
        ("offset_file_recovered", "config-listeners", None, None),
        ("offset_files_corrupt", "config-listeners", None, None),
        ("strategy_changed", "inventory-cache", None, None),
    },
}


@pytest.mark.parametrize("ds", DAYS)
def test_the_findings_of_groups_are_exactly_the_deliberate_mistakes(
    sample_warehouse: Warehouse, ds: str
) -> None:
    found = {
        tuple(row)
        for day, *row in asked(
            sample_warehouse,
            "SELECT ds::VARCHAR, kind, consumer_group, topic, likely_cause FROM finding "
            "WHERE consumer_group IS NOT NULL",
        )
        if day == ds
    }

    assert found == FINDINGS_OF_GROUPS[ds]


PROBLEMS_OF_EVERY_DAY = {
    ("critical", "duplicate_client_id", "feature-flags"): 1,
    ("critical", "duplicate_client_id", "member-sync"): 4,
    ("critical", "unowned", "pinned-export"): 1,
    ("critical", "mixed_strategies", "price-index"): 2,
    ("info", "idle_clients", "coupon-worker"): 0,
    ("warning", "group_offline", "audit-offline"): 0,
}
WITH_ALL_BROKERS = {
    ("critical", "unowned", "room-report"): 1,
    ("info", "idle_clients", "risk-engine"): 0,
}
PROBLEMS = {
    DAYS[0]: PROBLEMS_OF_EVERY_DAY | WITH_ALL_BROKERS,
    DAYS[1]: PROBLEMS_OF_EVERY_DAY
    | WITH_ALL_BROKERS
    | {
        ("warning", "load_imbalanced", "user-profile"): 0,
        ("warning", "write_route_differs", "hz@broker-b"): 0,
    },
    DAYS[2]: PROBLEMS_OF_EVERY_DAY
    | {
        ("critical", "offset_files_corrupt", "config-listeners"): 0,
        ("info", "strategy_changed", "inventory-cache"): 0,
        ("warning", "load_imbalanced", "nearby-search"): 1,
        ("warning", "load_imbalanced", "user-profile"): 1,
        ("warning", "offset_file_recovered", "config-listeners"): 0,
        ("warning", "order_conf_differs", "order-state-fifo"): 0,
        # The topic that exists only on this broker, and its queues that clients still hold.
        ("warning", "source_failed", "sh@broker-c"): 2,
    },
}
"""Day -> severity, kind and subject of the root -> number of findings below it."""


@pytest.mark.parametrize("ds", DAYS)
def test_findings_with_one_cause_are_one_problem(sample_warehouse: Warehouse, ds: str) -> None:
    problems = {
        tuple(row[:3]): row[3]
        for *row, day in asked(
            sample_warehouse,
            "SELECT f.severity, f.kind, coalesce(f.consumer_group, f.topic, f.broker_name), count(b.kind), f.ds::VARCHAR "
            "FROM finding f LEFT JOIN finding b ON f.ds = b.ds AND f.finding_id = b.root_finding_id "
            "WHERE f.root_finding_id IS NULL GROUP BY ALL",
        )
        if day == ds
    }

    assert problems == PROBLEMS[ds]


def test_a_problem_has_the_same_id_on_every_day(sample_warehouse: Warehouse) -> None:
    [[ids, days]] = asked(
        sample_warehouse,
        "SELECT count(DISTINCT finding_id), count(DISTINCT ds) FROM finding "
        "WHERE kind = 'mixed_strategies' AND consumer_group = 'price-index'",
    )
    assert (ids, days) == (1, 3)


def test_the_findings_of_routes_are_the_changes_made_to_the_cluster(sample_warehouse: Warehouse) -> None:
    found = asked(
        sample_warehouse,
        "SELECT ds::VARCHAR, kind, coalesce(topic, broker_name), topic_count FROM finding "
        "WHERE consumer_group IS NULL AND kind <> 'source_failed' ORDER BY ALL",
    )

    assert [row[:3] for row in found] == [
        (DAYS[1], "write_route_differs", "hz@broker-b"),
        (DAYS[2], "order_conf_differs", "order-state-fifo"),
        (DAYS[2], "route_missing", "sh-local-audit"),
    ]


def test_name_servers_that_differ_only_for_producers_do_not_affect_consumers(
    sample_warehouse: Warehouse,
) -> None:
    affected = asked(sample_warehouse, "SELECT count(*) FROM route_divergence WHERE is_read_affected")
    perms = asked(
        sample_warehouse,
        "SELECT DISTINCT nameserver, perm, config_perm FROM route_divergence "
        "WHERE ds = '2026-11-17' AND broker_name = 'hz@broker-b' AND topic = 'order-events' ORDER BY ALL",
    )

    assert affected == [(0,)]
    assert perms == [("127.0.0.1:9876", 6, 6), ("127.0.0.1:9877", 4, 6)]


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
        "WHERE reason = 'route_missing' ORDER BY queue_id",
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
    assert fairness == [(None, None)]


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
def test_every_question_has_an_answer_on_the_sample(sample_warehouse: Warehouse, path: Path) -> None:
    with query(sample_warehouse.root, path.read_text(encoding="utf-8")) as result:
        answered = bool(list(result.rows))

    assert answered == (path.stem not in NO_NEWS)


def test_the_query_of_the_demo_has_an_answer_on_the_sample(sample_warehouse: Warehouse) -> None:
    script = (ROOT / "deploy" / "demo.sh").read_text(encoding="utf-8")
    [sql] = re.findall(r'ledger sql "([^"]*)"', script)
    assert "cluster = 'demo' AND topic NOT LIKE '%RETRY%'" in sql
    with query(sample_warehouse.root, sql.replace("'demo'", "'shop-prod'")) as result:
        assert list(result.rows)


def test_owners_of_a_queue_have_the_right_first_day(sample_warehouse: Warehouse) -> None:
    sql = (ROOT / "sql" / "questions" / "queue_history.sql").read_text(encoding="utf-8")
    queue = {
        "consumer_group": "order-service",
        "topic": "order-events",
        "broker_name": "hz@broker-a",
        "queue_id": 3,
    }
    with query(sample_warehouse.root, sql, conditions=queue) as result:
        rows = [dict(zip(result.column_names, row, strict=True)) for row in result.rows]

    assert [str(row["ds"]) for row in rows] == sorted(DAYS, reverse=True)
    assert {str(row["since"]) for row in rows} == {"2026-11-16"}
    assert all(row["should_own"] == row["did_own"] for row in rows)


def test_the_summary_has_a_line_for_each_day(
    sample_warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    from rebalance_ledger.cli.summary import show_summary

    show_summary(sample_warehouse.root)

    lines = [line for line in capsys.readouterr().out.splitlines() if "shop-prod" in line]
    assert [line.replace("│", " ").split()[1:7] for line in lines] == [
        ["2026-11-16", "15", "167", "1090", "8", "5"],
        ["2026-11-17", "15", "167", "1090", "10", "5"],
        ["2026-11-18", "15", "139", "927", "13", "5"],
    ]


SEVERAL_PROCESSES = {("member-sync", "10.1.0.101@member"), ("feature-flags", "10.1.1.30@DEFAULT")}
"""Client ids of the sample for which two processes answered, each for itself."""
BROADCASTING = {"config-listeners", "feature-flags", "inventory-cache"}
QUEUE = ("consumer_group", "topic", "broker_name", "queue_id")
OF_DAY = {"observed_owners": 0, "did_own": 0, "observed_owners_now": 0, "observed_owners_before": 1}
"""Columns with the owners of a queue -> their age in days."""


def answer_of_day(warehouse: Warehouse, path: Path, ds: str) -> list[dict[str, object]]:
    """Return the result rows of a question as if this day were the newest."""
    day = date.fromisoformat(ds)
    text = path.read_text(encoding="utf-8")
    for schema, of in (("latest", day), ("previous", day - timedelta(days=1))):
        text = re.sub(rf"\b{schema}\.(\w+)", rf"(SELECT * FROM \1 WHERE ds = DATE '{of}')", text)  # noqa: S608 - our own days
    with query(warehouse.root, text) as result:
        return [dict(zip(result.column_names, row, strict=True)) for row in result.rows]


def key_of(row: dict[str, object]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in QUEUE)


@pytest.mark.parametrize("ds", DAYS)
@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: path.stem)
def test_answers_about_owners_equal_the_observation(sample_warehouse: Warehouse, path: Path, ds: str) -> None:
    truth = [
        observed(str(date.fromisoformat(ds) - timedelta(days=back)))
        for back in (0, 1)
        if back == 0 or ds != DAYS[0]
    ]

    for row in answer_of_day(sample_warehouse, path, ds):
        if row.get("ds") is not None and str(row["ds"]) != ds:
            continue
        if not set(QUEUE) <= row.keys():
            continue
        for column, back in OF_DAY.items():
            if row.get(column) is not None:
                assert set(row[column]) == truth[back].get(key_of(row), set())  # type: ignore[call-overload]


@pytest.mark.parametrize("ds", DAYS)
def test_the_queues_without_exactly_one_owner_equal_the_observation(
    sample_warehouse: Warehouse, ds: str
) -> None:
    truth = observed(ds)
    twice = {
        key
        for key, owners in truth.items()
        if key[0] not in BROADCASTING
        and (len(owners) > 1 or any((key[0], owner) in SEVERAL_PROCESSES for owner in owners))
    }
    known = [
        tuple(key)
        for day, *key in asked(
            sample_warehouse,
            "SELECT ds::VARCHAR, consumer_group, topic, broker_name, queue_id::VARCHAR FROM ownership_drift "
            "WHERE consumer_group <> 'audit-offline'",
        )
        if day == ds
    ]

    answered = {
        (key_of(row), row["ownership"])
        for row in answer_of_day(sample_warehouse, question("queues_without_single_owner"), ds)
    }

    assert answered == {(key, "multiple_owners") for key in twice} | {
        (key, "unowned") for key in known if not truth.get(key)
    }


@pytest.mark.parametrize("ds", DAYS[1:])
def test_changed_queues_equal_the_difference_of_observations(sample_warehouse: Warehouse, ds: str) -> None:
    now, before = observed(ds), observed(str(date.fromisoformat(ds) - timedelta(days=1)))
    moved = {key for key in now.keys() | before.keys() if now.get(key) != before.get(key)}

    answered = {key_of(row) for row in answer_of_day(sample_warehouse, question("owner_changes"), ds)}

    # A queue without a holder on one of the days may have appeared or disappeared with its route.
    assert {key for key in answered if now.get(key) or before.get(key)} == moved


def test_the_ownership_history_names_the_last_observed_owners(sample_warehouse: Warehouse) -> None:
    owners: Owners = defaultdict(set)
    for row in answer_of_day(sample_warehouse, question("ownership_since"), DAYS[-1]):
        owners[key_of(row)].add(str(row["client_id"]))

    assert owners == observed(DAYS[-1])


@pytest.mark.parametrize("ds", DAYS)
def test_the_load_of_clients_equals_their_observed_queues(sample_warehouse: Warehouse, ds: str) -> None:
    carried: defaultdict[tuple[str, str], int] = defaultdict(int)
    for (group, *_), owners in observed(ds).items():
        for client_id in owners:
            carried[group, client_id] += 1

    answered = {
        (row["consumer_group"], row["client_id"]): row["observed_queue_count"]
        for row in answer_of_day(sample_warehouse, question("most_loaded_clients"), ds)
    }

    assert answered == carried


@pytest.mark.parametrize("ds", DAYS)
def test_duplicate_client_ids_are_those_with_answers_of_two_processes(
    sample_warehouse: Warehouse, ds: str
) -> None:
    answered = {
        (row["consumer_group"], row["client_id"], row["process_count"])
        for row in answer_of_day(sample_warehouse, question("duplicate_client_ids"), ds)
    }

    assert answered == {(*shared, 2) for shared in SEVERAL_PROCESSES}


def question(name: str) -> Path:
    return ROOT / "sql" / "questions" / f"{name}.sql"
