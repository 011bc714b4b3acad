"""Findings with one root cause form a tree below one root. No finding is explained without evidence."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from expectations.suites.thresholds import (
    FINDING_CAUSES_OF_GROUPS,
    FINDING_EXPLANATIONS,
    FINDING_KIND_SEVERITIES,
    FINDING_KINDS_OF_CLIENTS,
)
from rebalance_ledger.tables import FINDING
from spark_jobs.findings.explanations import (
    CLIENT_KINDS,
    EXPLANATIONS,
    GROUP_CAUSES,
    MOST_STEPS,
    QUEUE_KINDS,
    with_roots,
)
from spark_jobs.findings.finding_builder import CAUSE_SOURCES, CAUSE_SOURCES_TYPE, ID_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Finding = dict[str, Any]

DAY = date(2026, 11, 16)


def test_the_gate_has_the_same_list() -> None:
    ours = [(rule.kind, rule.explained, rule.same) for rule in EXPLANATIONS if not rule.by_cause_sources]

    assert [(kind, explained, same) for kind, explained, same, _ in FINDING_EXPLANATIONS] == ours
    assert FINDING_CAUSES_OF_GROUPS == GROUP_CAUSES
    assert FINDING_KINDS_OF_CLIENTS == CLIENT_KINDS


def test_kinds_on_the_list_exist() -> None:
    named = {kind for rule in EXPLANATIONS for kind in (rule.kind, *rule.explained)}
    assert named <= FINDING_KIND_SEVERITIES.keys()


def test_explanations_have_no_cycles_and_are_resolved_to_the_root() -> None:
    explained = {kind: set[str]() for rule in EXPLANATIONS for kind in (rule.kind, *rule.explained)}
    for rule in EXPLANATIONS:
        explained[rule.kind] |= set(rule.explained)

    def steps(kind: str, above: tuple[str, ...] = ()) -> int:
        assert kind not in above, f"{kind} explains itself by {above}"
        return max((1 + steps(below, (*above, kind)) for below in explained[kind]), default=0)

    # One more step: the first finding of a group with a cause explains those of the group's other topics.
    assert max(map(steps, explained)) + 1 <= MOST_STEPS


def test_a_finding_of_one_group_explains_none_of_another_group() -> None:
    """A day is published without its quarantined groups. So no finding of a group may be the root of another group's."""
    of_groups = {
        "mixed_strategies",
        "mixed_request_modes",
        "server_load_balancer_off",
        "duplicate_client_id",
        "subscriptions_differ",
        "member_lists_differ",
        "load_imbalanced",
        "offset_file_shared",
    }
    of_no_group = {"route_differs", "route_missing", "broker_missing_on_nameserver", "source_failed"}

    assert {rule.kind for rule in EXPLANATIONS} == of_groups | of_no_group
    assert all("consumer_group" in rule.same for rule in EXPLANATIONS if rule.kind in of_groups)


def finding(kind: str, severity: str | None = None, **values: Any) -> Finding:
    usual = severity or FINDING_KIND_SEVERITIES[kind][0]
    return {"kind": kind, "severity": usual, "evidence": "e", "advice": "a", "page": "p", **values}


LOST_TOPICS = [f"t{number:02}" for number in range(34)]
IDLE: dict[str, Finding] = {
    "uneven": {"topic": "orders", "client_total_count": 4, "queue_total_count": 8},
    "more clients than queues": {"topic": "orders", "client_total_count": 9, "queue_total_count": 8},
    "another topic": {"topic": "payments", "client_total_count": 4, "queue_total_count": 8},
}
CASES: dict[str, tuple[Finding, ...]] = {
    "shared client id": (
        finding("duplicate_client_id", consumer_group="g", client_id="c"),
        finding("duplicate_client_id", consumer_group="other", client_id="c"),
        *(
            finding(kind, consumer_group="g", topic=topic, likely_cause="duplicate_client_id")
            for kind in ("unowned", "multiple_owners")
            for topic in ("orders", "%RETRY%g")
        ),
        finding("unowned", consumer_group="g", topic="payments"),
    ),
    "lost broker": (
        finding("source_failed", broker_name="b", likely_cause="connection_failed"),
        finding("source_failed", broker_name="b", likely_cause="timed_out"),
        finding("broker_missing_on_nameserver", broker_name="b", cause_sources=[("b", "connection_failed")]),
        *(finding("route_differs", topic=topic, cause_sources=[("b", None)]) for topic in LOST_TOPICS),
        finding("route_differs", topic="also-other-queues"),
        finding("unowned", consumer_group="g", topic="t07", likely_cause="route_views_differ"),
        finding("route_missing", topic="only-there", cause_sources=[("b", "connection_failed")]),
        finding("assignment_stale", consumer_group="g", topic="only-there", likely_cause="route_missing"),
        finding("members_unknown", consumer_group="h", cause_sources=[("b", "connection_failed")]),
    ),
    "permission": (
        finding("source_failed", broker_name="b", likely_cause="permission_denied"),
        finding("source_failed", broker_name="a", likely_cause="permission_denied"),
        finding("source_failed", broker_name="a", likely_cause="timed_out"),
        finding("source_failed", likely_cause="permission_denied"),
        finding("members_unknown", consumer_group="g", cause_sources=[("b", "permission_denied")]),
        finding("members_unknown", consumer_group="h", cause_sources=[("b", None)]),
        finding("client_unreachable", consumer_group="i", cause_sources=[(None, "permission_denied")]),
    ),
    "cause in several topics": (
        *(
            finding("unowned", consumer_group="g", topic=topic, likely_cause="room_without_clients")
            for topic in ("%RETRY%g", "zebra", "orders")
        ),
        finding("unowned", consumer_group="g", topic="a", likely_cause="not_in_config_list"),
        finding("unowned", consumer_group="h", topic="orders", likely_cause="room_without_clients"),
    ),
    "two applications": (
        *(
            finding("subscriptions_differ", consumer_group="g", topic=topic, client_count=count)
            for topic, count in (("of-both", 0), ("of-one", 2), ("of-the-other", 3))
        ),
        *(
            finding("broadcast_client_stuck", consumer_group="g", topic=topic, client_id=client)
            for topic, client in (("t1", "c1"), ("t2", "c1"), ("t1", "c2"))
        ),
    ),
    **{
        f"idle clients, {name}": (
            finding("load_imbalanced", consumer_group="g", topic="orders", seen_values=["CONSISTENT_HASH"]),
            finding("idle_clients", consumer_group="g", seen_values=["CONSISTENT_HASH"], **idle),
        )
        for name, idle in IDLE.items()
    },
    "milder root": (
        finding("duplicate_client_id", "warning", consumer_group="g", client_id="c"),
        finding("offset_file_shared", consumer_group="g", client_id="c"),
        finding("duplicate_client_id", "warning", consumer_group="h", client_id="c"),
        finding("offset_file_shared", consumer_group="h", client_id="another"),
        finding("member_lists_differ", consumer_group="i"),
        finding("unexpected_owner", consumer_group="i", topic="t", likely_cause="member_lists_differ"),
    ),
}
"""Case -> findings of one day. Each case is a separate cluster, and one Spark plan computes all roots."""

Placed = dict[str, dict[tuple[str, ...], dict[str, Any]]]


@pytest.fixture(scope="module")
def placed(spark: SparkSession) -> Placed:
    """Return case -> kind and subject -> severity, and the kinds and subjects of the parent and the root.

    The next day has the same findings without the first one, which therefore explains nothing on that day.
    """
    names = [column.name for column in FINDING.all_columns if column.name not in ID_COLUMNS] + [CAUSE_SOURCES]
    types = {column.name: column.type for column in FINDING.all_columns} | {CAUSE_SOURCES: CAUSE_SOURCES_TYPE}
    of_days = [
        {**given, "cluster": case, "ds": ds}
        for case, findings in CASES.items()
        for ds, of_day in ((DAY, findings), (DAY + timedelta(days=1), findings[1:]))
        for given in of_day
    ]
    rows = spark.createDataFrame(
        [tuple(given.get(name) for name in names) for given in of_days],
        ", ".join(f"{name} {types[name]}" for name in names),
    )
    table = with_roots(rows, lambda _, parents: parents)
    assert table.columns == [column.name for column in FINDING.all_columns]
    everything = [row.asDict() for row in table.collect()]
    return {
        case: _of_case([row for row in everything if row["cluster"] == case], len(findings))
        for case, findings in CASES.items()
    }


def _of_case(everything: list[dict[str, Any]], finding_count: int) -> dict[tuple[str, ...], dict[str, Any]]:
    result = [row for row in everything if row["ds"] == DAY]
    ids_beside = {row["finding_id"] for row in everything if row["ds"] != DAY}
    assert len(ids_beside) == finding_count - 1
    assert ids_beside >= {
        row[name] for row in everything if row["ds"] != DAY for name in ID_COLUMNS if row[name] is not None
    }
    subject = ("kind", "consumer_group", "topic", "broker_name", "client_id")
    names_by_id = {
        row["finding_id"]: tuple(row[name] for name in subject if row[name])
        + ((row["likely_cause"],) if row["kind"] == "source_failed" else ())
        for row in result
    }
    assert len(names_by_id) == finding_count
    return {
        names_by_id[row["finding_id"]]: {
            "severity": row["severity"],
            "parent": names_by_id.get(row["parent_finding_id"]),
            "root": names_by_id.get(row["root_finding_id"]),
        }
        for row in result
    }


@pytest.mark.spark
def test_a_shared_client_id_is_one_problem(placed: Placed) -> None:
    day = placed["shared client id"]

    root = ("duplicate_client_id", "g", "c")
    assert [name for name, it in day.items() if it["parent"] == root] == [
        name for name, it in day.items() if it["root"] == root
    ]
    assert {name for name, it in day.items() if it["root"] is None} == {
        root,
        ("duplicate_client_id", "other", "c"),
        ("unowned", "g", "payments"),
    }
    assert {it["severity"] for it in day.values() if it["root"]} == {"info"}


@pytest.mark.spark
def test_a_lost_broker_is_one_problem_as_severe_as_what_follows_from_it(placed: Placed) -> None:
    day = placed["lost broker"]

    assert {name: it["severity"] for name, it in day.items() if it["root"] is None} == {
        ("source_failed", "b", "connection_failed"): "critical",
        ("source_failed", "b", "timed_out"): "warning",
        ("route_differs", "also-other-queues"): "warning",
    }
    assert day["unowned", "g", "t07"]["parent"] == ("route_differs", "t07")
    assert day["assignment_stale", "g", "only-there"]["parent"] == ("route_missing", "only-there")
    assert day["route_differs", "t07"]["parent"] == ("broker_missing_on_nameserver", "b")


@pytest.mark.spark
def test_a_permission_missing_on_every_broker_is_one_problem(placed: Placed) -> None:
    day = placed["permission"]

    assert {name for name, it in day.items() if it["root"] is None} == {
        ("source_failed", "permission_denied"),
        ("source_failed", "a", "timed_out"),
        ("members_unknown", "h"),
    }
    assert day["members_unknown", "g"]["parent"] == ("source_failed", "b", "permission_denied")
    assert day["client_unreachable", "i"]["parent"] == ("source_failed", "permission_denied")


@pytest.mark.spark
def test_one_cause_in_several_topics_is_one_problem_of_the_first_own_topic(placed: Placed) -> None:
    day = placed["cause in several topics"]

    assert {name for name, it in day.items() if it["parent"]} == {
        ("unowned", "g", "%RETRY%g"),
        ("unowned", "g", "zebra"),
    }
    assert {it["root"] for it in day.values() if it["root"]} == {("unowned", "g", "orders")}


@pytest.mark.spark
def test_two_applications_in_one_group_and_a_stalled_client_are_one_problem_each(
    placed: Placed,
) -> None:
    day = placed["two applications"]

    assert {name: it["parent"] for name, it in day.items() if it["parent"]} == {
        ("subscriptions_differ", "g", "of-the-other"): ("subscriptions_differ", "g", "of-one"),
        ("broadcast_client_stuck", "g", "t2", "c1"): ("broadcast_client_stuck", "g", "t1", "c1"),
    }


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "parent"),
    [
        ("uneven", ("load_imbalanced", "g", "orders")),
        ("more clients than queues", None),
        ("another topic", None),
    ],
)
def test_idle_clients_follow_from_an_uneven_strategy_if_there_are_enough_queues(
    placed: Placed, name: str, parent: tuple[str, ...] | None
) -> None:
    day = placed[f"idle clients, {name}"]

    assert day["idle_clients", "g", IDLE[name]["topic"]]["parent"] == parent


@pytest.mark.spark
def test_a_milder_root_is_as_severe_as_the_worst_below_it_and_no_more(placed: Placed) -> None:
    day = placed["milder root"]

    assert {name: it["severity"] for name, it in day.items() if not it["parent"]} == {
        ("duplicate_client_id", "g", "c"): "critical",
        ("duplicate_client_id", "h", "c"): "warning",
        ("offset_file_shared", "h", "another"): "critical",
        ("member_lists_differ", "i"): "warning",
    }


def test_queue_kinds_are_those_of_drift() -> None:
    from expectations.suites.thresholds import DRIFT_FINDING_KINDS

    of_drift = {kind for kinds in DRIFT_FINDING_KINDS.values() for kind in kinds}
    assert of_drift == {*QUEUE_KINDS, "assignment_stale"}
