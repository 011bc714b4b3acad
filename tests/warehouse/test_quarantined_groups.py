"""A day accepted without some groups: their rows are not published, all others are, and the groups are listed."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from expectations.suites import day_over_day
from rebalance_ledger.gate.evaluation import evaluate
from rebalance_ledger.gate.policy import GatePolicy
from rebalance_ledger.settings import GateSettings
from rebalance_ledger.tables import (
    EXPORT_RECORD,
    FINDING,
    GATE_RESULT,
    OWNERSHIP_DRIFT,
    QUARANTINED_GROUP,
    QUEUE_ASSIGNMENT,
    TABLES_OF_GROUPS,
)
from rebalance_ledger.tables.silver.group_presence import GROUP_PRESENCE
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.day_comparison import compare
from rebalance_ledger.warehouse.fingerprint import fingerprint
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from rebalance_ledger.warehouse.rollback import rollback
from rebalance_ledger.warehouse.staging import newest_stage
from tests.support.computed_days import ROOT, asked
from tests.support.staging_fixtures import MONDAY, TUESDAY, held_queue, owner, quarantined_row, stage_day

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]

HOSTILE = "x' OR '1'='1\n<script>"
ONE_GROUP = {"consumer_group": "g", "broker_name": "b", "state": "online"}
WHAT_CHANGED = (ROOT / "sql" / "questions" / "owner_changes.sql").read_text(encoding="utf-8")
FEW_TABLES = (
    EXPORT_RECORD,
    GROUP_PRESENCE,
    QUEUE_ASSIGNMENT,
    OWNERSHIP_DRIFT,
    FINDING,
    QUARANTINED_GROUP,
    GATE_RESULT,
)


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Return a warehouse with only seven tables per day: all tables are published in the same way, and each takes time."""
    monkeypatch.setattr(commits, "PUBLISHED_TABLES", FEW_TABLES)
    return Warehouse.at(str(tmp_path / "warehouse"))


def rows(*groups: str) -> dict[str, list[Row]]:
    """Return the rows of a day on which each group owns a queue, and rows without a group."""
    return {
        "export_record": [
            {"file": "f", "line_number": line, "state": "payload", "consumer_group": group}
            for line, group in enumerate(groups)
        ],
        "group_presence": [ONE_GROUP | {"consumer_group": group} for group in groups],
        "queue_assignment": [
            owner(0, "c1") | {"consumer_group": group, "strategy": "AVG", "is_effective": True}
            for group in groups
        ],
        "ownership_drift": [held_queue(0, "c1") | {"consumer_group": group} for group in groups],
        "finding": [
            *({"kind": "idle_clients", "consumer_group": group} for group in groups),
            {"kind": "source_failed"},
        ],
    }


def publish_day(
    warehouse: Warehouse, ds: date, *groups: str, excluded_groups: tuple[str, ...] = (), run_id: str = "run-1"
) -> None:
    verdict = "passed_with_quarantine" if excluded_groups else "passed"
    stage_day(warehouse, ds, run_id=run_id, verdict=verdict, excluded_groups=excluded_groups, **rows(*groups))
    publish(warehouse, "shop", ds)


def groups_in(warehouse: Warehouse, table: str, ds: date = MONDAY) -> list[str | None]:
    published = asked(warehouse, f"SELECT ds, consumer_group FROM {table} ORDER BY consumer_group")  # noqa: S608 - our own name
    return [group for of_day, group in published if of_day == ds]


def test_rows_of_a_quarantined_group_are_not_published_and_all_others_are(warehouse: Warehouse) -> None:
    publish_day(warehouse, MONDAY, "a", HOSTILE, "g", excluded_groups=(HOSTILE,))

    for table in ("group_presence", "queue_assignment"):
        assert groups_in(warehouse, table) == ["a", "g"]
    assert groups_in(warehouse, "finding") == ["a", "g", None]
    assert groups_in(warehouse, "export_record") == ["a", "g", HOSTILE]
    assert asked(warehouse, "SELECT gate_verdict FROM publication") == [("passed_with_quarantine",)]
    [listed] = asked(warehouse, "SELECT * EXCLUDE (cluster, ds) FROM quarantined_group")
    assert listed == tuple(quarantined_row(HOSTILE).values())
    assert all(line.is_as_published for line in fingerprint(warehouse.root, "shop"))


def test_every_table_with_a_group_is_filtered_except_the_record_of_landed_files() -> None:
    with_groups = {
        table
        for table in commits.PUBLISHED_TABLES
        if any(column.name == "consumer_group" for column in table.columns)
    }
    assert with_groups - set(TABLES_OF_GROUPS) == {EXPORT_RECORD, QUARANTINED_GROUP}


def test_a_complete_day_has_an_empty_quarantine_table(warehouse: Warehouse) -> None:
    publish_day(warehouse, MONDAY, "a")

    assert groups_in(warehouse, "quarantined_group") == []
    [(named,)] = asked(
        warehouse,
        "SELECT list_contains(list_transform(tables, lambda t: t.table_name), 'gold.quarantined_group') FROM publication",
    )
    assert named


def test_the_same_day_again_changes_nothing(warehouse: Warehouse) -> None:
    publish_day(warehouse, MONDAY, "a", "g", excluded_groups=("g",))

    assert publish(warehouse, "shop", MONDAY).changed_tables == ()


def test_a_repaired_day_is_complete_and_a_rollback_restores_the_quarantined_one(
    warehouse: Warehouse,
) -> None:
    publish_day(warehouse, MONDAY, "a", "g", excluded_groups=("g",))
    publish_day(warehouse, MONDAY, "a", "g", run_id="run-2")
    assert groups_in(warehouse, "queue_assignment") == ["a", "g"]
    assert groups_in(warehouse, "quarantined_group") == []

    rollback(warehouse, "shop", MONDAY, is_applied=True)

    assert groups_in(warehouse, "queue_assignment") == ["a"]
    assert groups_in(warehouse, "quarantined_group") == ["g"]


# Comparison with the baseline day


def odd(warehouse: Warehouse, excluded_groups: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Return expectation -> examples of the violations on Tuesday."""
    comparison = compare(
        warehouse,
        "shop",
        TUESDAY,
        newest_stage(warehouse, "shop", TUESDAY),
        counted=day_over_day.COUNTED_TABLES,
        read=day_over_day.READ_TABLES,
        statement=day_over_day.STATEMENT,
        excluded_groups=excluded_groups,
    )
    assert comparison is not None
    evaluations = evaluate(
        day_over_day.measures(comparison.rows), GatePolicy(GateSettings(), TUESDAY), baseline_ds=MONDAY
    )
    return {
        evaluation.expectation.expectation_id: list(evaluation.examples)
        for evaluation in evaluations
        if evaluation.expectation.is_of_two_days and not evaluation.is_passed
    }


MANY = tuple(f"g{number:03}" for number in range(150))


def test_a_group_quarantined_today_is_not_reported_as_vanished(warehouse: Warehouse) -> None:
    publish_day(warehouse, MONDAY, "a", *MANY)
    stage_day(warehouse, TUESDAY, **rows("a", *MANY))

    assert odd(warehouse, excluded_groups=MANY) == {}

    stage_day(warehouse, TUESDAY, **rows("a"))
    assert "group g000" in odd(warehouse)["group_presence.groups_still_there"]


def test_groups_quarantined_yesterday_cause_no_row_count_jump(warehouse: Warehouse) -> None:
    publish_day(warehouse, MONDAY, "a", *MANY, excluded_groups=MANY)
    stage_day(warehouse, TUESDAY, **rows("a", *MANY))
    assert odd(warehouse) == {}

    publish_day(warehouse, MONDAY, "a", *MANY[:50])
    assert "queue_assignment.row_count_like_day_before" in odd(warehouse)


# Start of the ownership


def history(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return asked(
        warehouse,
        "SELECT consumer_group, day(owned_from), day(owned_to), is_latest, begins, missing_day_count, is_owner_before_gap "
        "FROM ownership_history ORDER BY ALL",
    )


def test_a_day_without_the_group_is_a_gap_of_that_group_alone(warehouse: Warehouse) -> None:
    for day, excluded_groups in ((15, ()), (16, ("g",)), (17, ("g",)), (18, ())):
        publish_day(warehouse, date(2026, 11, day), "a", "g", excluded_groups=excluded_groups)

    assert history(warehouse) == [
        ("a", 15, 18, True, "first_day", None, None),
        ("g", 15, 15, False, "first_day", None, None),
        ("g", 18, 18, True, "after_gap", 2, True),
    ]


def test_a_group_quarantined_from_the_first_day_begins_on_its_first_published_day(
    warehouse: Warehouse,
) -> None:
    publish_day(warehouse, MONDAY, "a", "g", excluded_groups=("g",))
    publish_day(warehouse, TUESDAY, "a", "g")

    assert history(warehouse)[-1] == ("g", 17, 17, True, "first_day", None, None)


@pytest.mark.parametrize("left_out_on", [MONDAY, TUESDAY])
def test_no_owner_change_is_reported_between_a_day_with_a_group_and_one_without(
    warehouse: Warehouse, left_out_on: date
) -> None:
    for ds in (MONDAY, TUESDAY):
        publish_day(warehouse, ds, "a", "g", excluded_groups=("g",) if ds == left_out_on else ())

    assert asked(warehouse, WHAT_CHANGED) == []


def test_the_next_day_is_out_of_date_when_a_group_is_quarantined_on_its_baseline_day(
    warehouse: Warehouse,
) -> None:
    publish_day(warehouse, MONDAY, "a", "g")
    compared = [
        f"{table}={content_hash}"
        for table, content_hash in asked(
            warehouse,
            "SELECT t.table_name, t.content_hash FROM (SELECT unnest(tables) AS t FROM publication)",
        )
        if table == "gold.quarantined_group"
    ]
    stage_day(
        warehouse, TUESDAY, build={"baseline_ds": MONDAY, "compared_content": compared}, **rows("a", "g")
    )
    publish(warehouse, "shop", TUESDAY)
    stale = "SELECT ds, reasons FROM outdated_day"
    assert asked(warehouse, stale) == []

    publish_day(warehouse, MONDAY, "a", "g", excluded_groups=("g",), run_id="run-2")

    assert asked(warehouse, stale) == [(TUESDAY, ["earlier_day_changed"])]
