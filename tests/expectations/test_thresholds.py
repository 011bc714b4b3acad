"""The gate's lists compared with the tables and with the documentation page.

A test beside the invariant checker compares them with the guarantees of `strategies`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from expectations.suites.all_suites import EXPECTATIONS, SUITES
from expectations.suites.thresholds import (
    COVERING_STRATEGIES,
    DIVISION_REASONS,
    DRIFT_FINDING_KINDS,
    FINDING_KIND_SEVERITIES,
    ONE_OWNER_STRATEGIES,
    RESTARTS_WITH_STORED_OFFSET,
    RESTARTS_WITHOUT_STORED_OFFSET,
    SPREAD_BOUND,
    STRATEGY_SOURCES,
    names_in_table,
)
from rebalance_ledger.tables import (
    COMPUTED_GOLD_TABLES,
    OWNERSHIP_DRIFT,
    QUEUE_ASSIGNMENT,
    SILVER_TABLES,
    vocabulary,
)

if TYPE_CHECKING:
    from expectations.suites.model import Suite

_PAGE = Path(__file__).parents[2] / "docs" / "gate.md"


def test_each_expectation_is_in_one_suite() -> None:
    assert sum(len(suite.expectations) for suite in SUITES) == len(EXPECTATIONS)


def test_each_staged_table_has_expectations_of_its_day_and_key() -> None:
    for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES):
        assert f"{table.name}.one_cluster_and_day" in EXPECTATIONS
        unique = {QUEUE_ASSIGNMENT: "one_row_per_owner", OWNERSHIP_DRIFT: "one_row_per_queue"}
        assert f"{table.name}.{unique.get(table, 'one_row_per_key')}" in EXPECTATIONS


def test_a_guarantee_of_machine_room_nearby_holds_if_the_inner_strategy_has_it() -> None:
    one_owner = names_in_table(ONE_OWNER_STRATEGIES)
    covering = names_in_table(COVERING_STRATEGIES)

    assert "MACHINE_ROOM_NEARBY-AVG" in one_owner
    assert "MACHINE_ROOM_NEARBY-AVG" in covering
    assert "MACHINE_ROOM_NEARBY-MACHINE_ROOM" not in covering
    assert "MACHINE_ROOM_NEARBY-CONFIG" not in one_owner
    assert names_in_table(frozenset(SPREAD_BOUND)) == ("AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM")


def test_sources_are_those_of_the_table() -> None:
    [comment] = [column.comment for column in QUEUE_ASSIGNMENT.columns if column.name == "strategy_source"]

    assert all(f"`{source}`" in comment for source in STRATEGY_SOURCES)
    assert comment.count(": ") == len(STRATEGY_SOURCES)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_the_page_about_the_gate_describes_every_expectation_as_it_is_evaluated(suite: Suite) -> None:
    page = _PAGE.read_text(encoding="utf-8")

    for expectation in suite.expectations:
        own_row = row_of(expectation.expectation_id)
        sentence = f" {expectation.sentence} |" if own_row == expectation.expectation_id else ""
        assert f"| `{own_row}` | {expectation.severity or 'by settings'} |{sentence}" in page


def row_of(expectation_id: str) -> str:
    """Return the page's name of an expectation: one row covers all that differ only by their table or kind."""
    table, _, rule = expectation_id.partition(".")
    if rule in {"one_cluster_and_day", "one_row_per_key", "required_values", "row_count_like_day_before"}:
        return f"<table>.{rule}"
    return "finding.no_<kind>" if table == "finding" and rule.startswith("no_") else expectation_id


def test_the_gates_own_lists_are_subsets_of_the_published_ones() -> None:
    """Each list is defined in `vocabulary`. The gate's tables by word contain exactly the words of `vocabulary`."""
    assert set(FINDING_KIND_SEVERITIES) == set(vocabulary.FindingKind)
    assert {"match", *DRIFT_FINDING_KINDS, "shared", "unknown"} == set(vocabulary.DriftState)
    assert set(DIVISION_REASONS) < set(vocabulary.UnknownReason)
    assert {*RESTARTS_WITH_STORED_OFFSET, *RESTARTS_WITHOUT_STORED_OFFSET, "unknown"} == set(
        vocabulary.RestartReason
    )
