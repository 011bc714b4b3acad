"""A group without any answer is unknown: it has a row and a finding, and is never missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.pipeline import steps
from tests.support.computed_days import newest, staged_rows
from tests.support.export_builder import ExportBuilder

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from rebalance_ledger.warehouse.layout import StagingArea
    from tests.support.small_days import SmallDays

BROKERS = {broker: {"0": f"{broker}:10911"} for broker in "ab"}
DENIED = "CODE: 16  DESC: User:ledger has no permission to access Group:denied from 10.0.0.1"
DIED = "connect to 10.0.0.1:10911 failed"
NOBODY_ANSWERED = {"denied", "died", "half-died", "never-asked"}


def write_exports(exports: Path) -> list[tuple[str, date]]:
    """Write an export of an account without access to one group, and of servers that died before queries about others."""
    export = ExportBuilder("unanswered-test")
    export.brokers("ns-1:9876", BROKERS)
    export.route("orders", {"a": 1, "b": 1})
    for group in (*NOBODY_ANSWERED, "well", "gone"):
        export.route(f"%RETRY%{group}", {"a": 1, "b": 1})
    for broker in "ab":
        export.subscription_groups(
            broker, *NOBODY_ANSWERED, "well", "gone", "TOOLS_CONSUMER", "no-retry-topic"
        )
        export.failure("consumer_connection", DENIED, broker=broker, group="denied")
        export.failure("consume_stats", DENIED, broker=broker, group="denied")
        export.failure("consumer_connection", DIED, broker=broker, group="died")
        export.failure("consume_stats", DIED, broker=broker, group="died")
        export.members(broker, "well", ["c1"], ["orders"])
        export.no_members(broker, "gone")
    export.failure("consumer_connection", DIED, broker="a", group="half-died")
    export.no_members("b", "half-died")
    export.seal(exports)
    return [(export.cluster, export.ds)]


pytestmark = [pytest.mark.spark, pytest.mark.small_days.with_args(write_exports)]


@pytest.fixture(scope="module")
def stage(small_days: SmallDays) -> StagingArea:
    [day] = small_days.of(write_exports)
    assert steps.gate(day).reasons == []
    return newest(day)


def test_each_has_rows_that_are_unknown_with_a_reason(stage: StagingArea) -> None:
    rows = [row for row in staged_rows(stage, "ownership_drift") if row["consumer_group"] in NOBODY_ANSWERED]
    assert {(row["consumer_group"], row["topic"]) for row in rows} == {
        (group, f"%RETRY%{group}") for group in NOBODY_ANSWERED
    }
    assert {row["state"] for row in rows} == {"unknown"}
    assert {row["unknown_reason"] for row in rows} == {"members_unknown"}
    fairness = [
        row for row in staged_rows(stage, "assignment_fairness") if row["consumer_group"] in NOBODY_ANSWERED
    ]
    assert {row["consumer_group"] for row in fairness} == NOBODY_ANSWERED
    assert {row["group_state"] for row in fairness} == {"unknown"}
    assert {row["group_state_reason"] for row in fairness} != {None}


def test_the_finding_quotes_the_error(stage: StagingArea) -> None:
    evidence = {
        row["consumer_group"]: row["evidence"]
        for row in staged_rows(stage, "finding")
        if row["kind"] == "members_unknown"
    }
    assert f"({DENIED})" in evidence["denied"]
    assert f"({DIED})" in evidence["died"]


def test_each_has_a_finding(stage: StagingArea) -> None:
    kinds: dict[str, set[str]] = {}
    for row in staged_rows(stage, "finding"):
        if row["consumer_group"]:
            kinds.setdefault(row["consumer_group"], set()).add(row["kind"])
    assert {group for group, of_group in kinds.items() if "members_unknown" in of_group} == {
        *NOBODY_ANSWERED,
        "no-retry-topic",
    }


def test_others_have_no_such_rows(stage: StagingArea) -> None:
    drift = staged_rows(stage, "ownership_drift")
    assert {row["topic"] for row in drift if row["consumer_group"] == "well"} == {"orders"}
    assert {row["consumer_group"] for row in drift} <= {*NOBODY_ANSWERED, "well", "gone"}
