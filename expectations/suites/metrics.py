"""SQL that measures the staged tables, in the language of Spark, which `duckdb_sql` translates.

It reads views named `<layer>_<table>` over the staged tables, `run` (one row: cluster string, ds date, baseline_ds
date), `baseline_queue_assignment`, `baseline_consumer_connection`, `baseline_ownership_drift`, `baseline_quarantined_group` and
`baseline_consume_progress` (the rows of baseline_ds that the build read, empty if it is null), `manifest_file` (path string,
kind string, line_count bigint, error_count bigint: from the export's manifest), `export_line` (kind string, value string: the
lines of the export's files of envelopes), `offset_file_content` and `earlier_index_line`
(see `broadcast_sources`), `configured_rule` (see its module) and `excluded_group` (consumer_group
string: the groups whose rows the other views exclude).

Belongs here: how violations are combined into few statements, because each statement has a startup cost. Does not belong here:
anything that imports Spark or Great Expectations; this module builds text.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites import (
    assignment_churn,
    assignment_fairness,
    broadcast_offset,
    broadcast_sources,
    deviating_member,
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
    uncounted_lines,
)
from expectations.suites.model import metric_statement, violations_in
from expectations.suites.recomputed import judged_tables

SHARED_VIEWS: Final = (
    assignment_churn.SHARED_VIEWS | ownership_drift.SHARED_VIEWS | broadcast_sources.SHARED_VIEWS
)
"""View name -> Spark SQL of the views that statements read several times."""

METRIC_STATEMENTS: Final[tuple[str, ...]] = (
    # One statement for assignment and fairness: both use the same counts over the largest table.
    metric_statement(
        (*queue_assignment.SUITE.expectations, *assignment_fairness.SUITE.expectations),
        (
            violations_in(
                "explained",
                (*queue_assignment.JUDGED_VIOLATIONS, *assignment_fairness.JUDGED_VIOLATIONS),
                ("consumer_group", "topic"),
            ),
            *queue_assignment.OTHER_VIOLATION_QUERIES,
        ),
        f"{judged_tables(queue_assignment.QUEUE_VIOLATIONS)},\n"
        f"explained AS (SELECT *, {assignment_fairness.JUDGED_COLUMNS}\n  FROM judged)",
    ),
    metric_statement(
        recomputed_owners.SUITE.expectations,
        (*recomputed_owners.QUERIES, *recomputed_rings.QUERIES),
        f"{recomputed_owners.COMMON_TABLES},{recomputed_rings.COMMON_TABLES}",
    ),
    metric_statement(
        assignment_churn.SUITE.expectations,
        (assignment_churn.VIOLATION_QUERY,),
        assignment_churn.COMMON_TABLES,
    ),
    metric_statement(
        ownership_drift.SUITE.expectations,
        (*ownership_drift.VIOLATION_QUERIES, deviating_member.QUERY),
        f"{ownership_drift.COMMON_TABLES},{deviating_member.COMMON_TABLES}",
    ),
    metric_statement(presence.SUITE.expectations, presence.QUERIES, presence.COMMON_TABLES),
    metric_statement(queue_sharing.SUITE.expectations, queue_sharing.QUERIES, queue_sharing.COMMON_TABLES),
    metric_statement(
        route_divergence.SUITE.expectations,
        (route_divergence.VIOLATION_QUERY,),
        route_divergence.COMMON_TABLES,
    ),
    metric_statement(
        producer_spread.SUITE.expectations, (producer_spread.VIOLATION_QUERY,), producer_spread.COMMON_TABLES
    ),
    metric_statement(
        broadcast_offset.SUITE.expectations, broadcast_offset.QUERIES, broadcast_offset.COMMON_TABLES
    ),
    metric_statement(
        broadcast_sources.SUITE.expectations, broadcast_sources.QUERIES, broadcast_sources.COMMON_TABLES
    ),
    metric_statement(finding_facts.SUITE.expectations, finding_facts.QUERIES, finding_facts.COMMON_TABLES),
    metric_statement(
        export_comparison.SUITE.expectations, (export_comparison.QUERY,), export_comparison.COMMON_TABLES
    ),
    metric_statement(
        (
            *finding.SUITE.expectations,
            *finding.ABSENCE_SUITE.expectations,
            *export.SUITE.expectations,
            *uncounted_lines.SUITE.expectations,
            *quarantined_group.SUITE.expectations,
            *every_table.SUITE.expectations,
        ),
        (
            *finding.QUERIES,
            finding.ABSENCE_QUERY,
            *export.QUERIES,
            *uncounted_lines.QUERIES,
            quarantined_group.QUERY,
            every_table.VIOLATION_QUERY,
        ),
        f"{every_table.COMMON_TABLES},{finding.COMMON_TABLES},{uncounted_lines.COMMON_TABLES}",
    ),
)
"""Spark SQL statements that together return one row per expectation, with the columns of `measurement.METRIC_SCHEMA`."""
