"""The SQL that measures the staged tables, for the Spark session that staged them.

It reads views named `<layer>_<table>` over the staged tables, `run` (one row: cluster string, ds date, compared_ds
date), `before_queue_assignment`, `before_consumer_connection`, `before_ownership_drift`, `before_quarantined_group` and
`before_consume_progress` (the rows of compared_ds that the build read, without any if it is null), `manifest_file` (path string,
kind string, line_count bigint, error_count bigint: what the export's manifest says), `export_line` (kind string, value string: the
lines of the export's files of `export_comparison.KINDS`), `configured_rule` (see its module) and `left_out_group` (consumer_group
string: whose rows the other views are without).

What belongs here: how breaches are put together into few statements, because each statement costs a start. What does
not: anything that needs Spark or Great Expectations to be imported; this is text.
"""

# ruff: noqa: S608 - the SQL is put together from this package's own constants; no name from outside gets in.
from __future__ import annotations

from typing import Final

from expectations import (
    assignment_churn,
    assignment_fairness,
    broadcast_offset,
    every_table,
    export,
    export_comparison,
    finding,
    finding_facts,
    ownership_drift,
    presence,
    producer_spread,
    quarantined_group,
    queue_assignment,
    queue_sharing,
    recomputed_owners,
    recomputed_rings,
    route_divergence,
)
from expectations.model import MEASURE_SCHEMA, breaches_in, measure_statement
from expectations.recomputed import judged_tables

__all__ = ["MEASURE_SCHEMA", "MEASURE_STATEMENTS", "SHARED_VIEWS"]

SHARED_VIEWS: Final = ownership_drift.SHARED_VIEWS
"""Name -> Spark SQL of the views that statements read several times."""

MEASURE_STATEMENTS: Final[tuple[str, ...]] = (
    # Assignment and fairness together: both are judged by the same counts over the largest table.
    measure_statement(
        (*queue_assignment.SUITE.expectations, *assignment_fairness.SUITE.expectations),
        (
            breaches_in(
                "explained",
                (*queue_assignment.JUDGED_BREACHES, *assignment_fairness.JUDGED_BREACHES),
                ("consumer_group", "topic"),
            ),
            *queue_assignment.OTHER_BREACH_QUERIES,
        ),
        f"{judged_tables(queue_assignment.QUEUE_BREACHES)},\n"
        f"explained AS (SELECT *, {assignment_fairness.JUDGED_COLUMNS}\n  FROM judged)",
    ),
    measure_statement(
        recomputed_owners.SUITE.expectations,
        (recomputed_owners.QUERY, *recomputed_rings.QUERIES),
        f"{recomputed_owners.COMMON_TABLES},{recomputed_rings.COMMON_TABLES}",
    ),
    measure_statement(
        assignment_churn.SUITE.expectations, (assignment_churn.BREACH_QUERY,), assignment_churn.COMMON_TABLES
    ),
    measure_statement(
        ownership_drift.SUITE.expectations, ownership_drift.BREACH_QUERIES, ownership_drift.COMMON_TABLES
    ),
    measure_statement(presence.SUITE.expectations, presence.QUERIES, presence.COMMON_TABLES),
    measure_statement(queue_sharing.SUITE.expectations, queue_sharing.QUERIES, queue_sharing.COMMON_TABLES),
    measure_statement(
        route_divergence.SUITE.expectations, (route_divergence.BREACH_QUERY,), route_divergence.COMMON_TABLES
    ),
    measure_statement(
        producer_spread.SUITE.expectations, (producer_spread.BREACH_QUERY,), producer_spread.COMMON_TABLES
    ),
    measure_statement(
        broadcast_offset.SUITE.expectations, broadcast_offset.QUERIES, broadcast_offset.COMMON_TABLES
    ),
    measure_statement(finding_facts.SUITE.expectations, finding_facts.QUERIES, finding_facts.COMMON_TABLES),
    measure_statement(
        export_comparison.SUITE.expectations, (export_comparison.QUERY,), export_comparison.COMMON_TABLES
    ),
    measure_statement(
        (
            *finding.SUITE.expectations,
            *finding.ABSENCE_SUITE.expectations,
            *export.SUITE.expectations,
            *quarantined_group.SUITE.expectations,
            *every_table.SUITE.expectations,
        ),
        (
            *finding.QUERIES,
            finding.ABSENCE_QUERY,
            *export.QUERIES,
            quarantined_group.QUERY,
            every_table.BREACH_QUERY,
        ),
        f"{every_table.COMMON_TABLES},{finding.COMMON_TABLES}",
    ),
)
"""Spark SQL statements that together give one row per expectation: `MEASURE_SCHEMA`."""
