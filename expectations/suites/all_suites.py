"""All suites.

A new suite needs a module of this package, a line here, and its SQL in `metrics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from expectations.suites import (
    assignment_churn,
    assignment_fairness,
    broadcast_offset,
    broadcast_sources,
    day_over_day,
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
    route_divergence,
    uncounted_lines,
)

if TYPE_CHECKING:
    from expectations.suites.model import Expectation, Suite

SUITES: Final[tuple[Suite, ...]] = (
    queue_assignment.SUITE,
    recomputed_owners.SUITE,
    assignment_fairness.SUITE,
    assignment_churn.SUITE,
    ownership_drift.SUITE,
    presence.SUITE,
    queue_sharing.SUITE,
    route_divergence.SUITE,
    producer_spread.SUITE,
    broadcast_offset.SUITE,
    broadcast_sources.SUITE,
    finding.SUITE,
    finding_facts.SUITE,
    finding.ABSENCE_SUITE,
    export.SUITE,
    export_comparison.SUITE,
    uncounted_lines.SUITE,
    quarantined_group.SUITE,
    every_table.SUITE,
    day_over_day.SUITE,
)

EXPECTATIONS: Final[dict[str, Expectation]] = {
    expectation.expectation_id: expectation for suite in SUITES for expectation in suite.expectations
}
"""Expectations by id."""
