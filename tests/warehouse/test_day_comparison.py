"""The gate compares a staged day with its baseline and names the baseline day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from expectations.suites import day_over_day
from expectations.suites.all_suites import EXPECTATIONS
from rebalance_ledger.gate.judge import judge
from rebalance_ledger.settings import GateSettings
from rebalance_ledger.warehouse.day_comparison import compare
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from rebalance_ledger.warehouse.staging import newest_stage
from tests.support.staging_fixtures import MONDAY, TUESDAY, stage_day

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from rebalance_ledger.gate.verdict import Verdict

Row = dict[str, Any]

GROUPS = [{"consumer_group": name, "broker_name": "b", "state": "online"} for name in ("orders", "it's <b>")]
BROKERS = [
    {"broker_name": name, "broker_addr": "1:2", "nameserver": "n"} for name in ("broker-a", "broker-b")
]
ROUTES = [
    {"topic": topic, "broker_name": "b", "nameserver": "n", "is_in_route": True}
    for topic in ("orders", "payments", "%RETRY%orders")
]


def fairness(max_over_mean: float, most: int = 6, *, is_effective: bool = True) -> Row:
    return {
        "consumer_group": "orders",
        "topic": "orders",
        "strategy": "AVG",
        "is_effective": is_effective,
        "max_over_mean": max_over_mean,
        "max_queues_per_client": most,
        "min_queues_per_client": 1,
    }


def assignments(count: int) -> list[Row]:
    return [
        {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": number}
        for number in range(count)
    ]


USUAL: dict[str, list[Row]] = {
    "group_presence": GROUPS,
    "broker": BROKERS,
    "topic_route": ROUTES,
    "assignment_fairness": [fairness(1.2)],
    "queue_assignment": assignments(200),
}


@pytest.fixture(scope="module")
def monday_published(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    warehouse = Warehouse.at(str(tmp_path_factory.mktemp("two days")))
    stage_day(warehouse, MONDAY, **USUAL)
    publish(warehouse, "shop", MONDAY)
    return warehouse


def judged(
    warehouse: Warehouse, ds: date = TUESDAY, settings: Row | None = None, **rows: list[Row]
) -> Verdict:
    """Return the gate's verdict on a staged day with these rows, which is otherwise valid."""
    stage_day(warehouse, ds, **USUAL | rows)
    stage = newest_stage(warehouse, "shop", ds)
    comparison = compare(
        warehouse,
        "shop",
        ds,
        stage,
        counted=day_over_day.COUNTED_TABLES,
        read=day_over_day.READ_TABLES,
        statement=day_over_day.STATEMENT,
    )
    others = [
        {"expectation_id": name, "observed": expectation.threshold_min or 0.0, "examples": []}
        for name, expectation in EXPECTATIONS.items()
        if not expectation.is_of_two_days
    ]
    return judge(
        others + day_over_day.measures(comparison.rows if comparison else []) if comparison else others,
        cluster="shop",
        ds=ds,
        run_id="run-1",
        data_docs_dir=None,
        settings=GateSettings.model_validate(settings or {}),
        baseline_ds=comparison.baseline_ds if comparison else None,
    )


def failed(verdict: Verdict) -> dict[str, list[str]]:
    return {row["expectation_id"]: row["examples"] for row in verdict.results if row["outcome"] == "failed"}


def test_a_day_that_equals_its_baseline_passes(monday_published: Warehouse) -> None:
    verdict = judged(monday_published)

    assert verdict.verdict == "passed"
    assert {row["baseline_ds"] for row in verdict.results} == {None, MONDAY}


@pytest.mark.parametrize(
    ("rows", "expectation", "example"),
    [
        ({"group_presence": GROUPS[:1]}, "group_presence.groups_still_there", "group it's <b>"),
        ({"broker": BROKERS[1:]}, "broker.brokers_still_there", "broker broker-a"),
        ({"topic_route": ROUTES[::2]}, "topic_route.topics_still_there", "topic payments"),
        (
            {"assignment_fairness": [fairness(1.8)]},
            "assignment_fairness.evenness_still_there",
            "group orders, topic orders: the busiest client has 1.8 times the mean, 1.2 on the earlier day",
        ),
        (
            {"queue_assignment": assignments(99)},
            "queue_assignment.row_count_like_day_before",
            "99 rows, 200 on the earlier day",
        ),
        (
            {"queue_assignment": assignments(401)},
            "queue_assignment.row_count_like_day_before",
            "401 rows, 200 on the earlier day",
        ),
    ],
    ids=["group", "broker", "topic", "evenness", "fewer rows", "more rows"],
)
def test_an_unusual_change_warns_and_names_the_baseline_day(
    monday_published: Warehouse, rows: dict[str, list[Row]], expectation: str, example: str
) -> None:
    verdict = judged(monday_published, **rows)

    assert verdict.verdict == "passed_with_warnings"
    assert failed(verdict) == {expectation: [example]}
    assert "(compared with 2026-11-16)" in verdict.warnings[0]


@pytest.mark.parametrize(
    "rows",
    [
        {"topic_route": ROUTES[:2]},
        {"queue_assignment": assignments(101)},
        {"finding": [{"kind": "unowned", "severity": "info"}] * 400},
        {"broker": [BROKERS[0], *BROKERS]},
        {"assignment_fairness": [fairness(1.7)]},
        {"assignment_fairness": [fairness(3.0, most=2)]},
        {"assignment_fairness": [fairness(3.0, is_effective=False)]},
    ],
    ids=[
        "retry topic",
        "half the rows",
        "from none",
        "few rows",
        "slightly",
        "one queue more",
        "hypothetical",
    ],
)
def test_a_usual_change_is_not_reported(monday_published: Warehouse, rows: dict[str, list[Row]]) -> None:
    assert failed(judged(monday_published, **rows)) == {}


def test_settings_can_make_a_vanished_group_block_and_move_the_limit_of_row_counts(
    monday_published: Warehouse,
) -> None:
    blocking = {"severities": {"group_presence.groups_still_there": "block"}}
    limits = {"limits": {"queue_assignment.row_count_like_day_before": 0.9}}

    assert judged(monday_published, settings=blocking, group_presence=[]).verdict == "refused"
    assert failed(judged(monday_published, settings=limits, queue_assignment=assignments(150)))


def test_the_baseline_is_the_newest_earlier_day(monday_published: Warehouse) -> None:
    before = judged(monday_published, ds=MONDAY.replace(day=15), group_presence=[])
    after = judged(monday_published, ds=MONDAY.replace(day=30), group_presence=[])

    assert {row["outcome"] for row in before.results} == {"passed", "skipped"}
    assert failed(after) == {"group_presence.groups_still_there": ["group it's <b>", "group orders"]}


def test_without_a_baseline_the_comparison_is_skipped_and_reported(tmp_path: Path) -> None:
    verdict = judged(Warehouse.at(str(tmp_path)))

    compared = [row for row in verdict.results if EXPECTATIONS[row["expectation_id"]].is_of_two_days]
    assert {row["outcome"] for row in compared} == {"skipped"}
    assert {row["observed"] for row in compared} == {None}
    assert verdict.verdict == "passed"
