"""Advice on expectations that failed, or were waived, approved or skipped.

Belongs here: advice by the outcome of an expectation. Does not belong here: advice on findings
(`rebalance_ledger.tables.finding_advice`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from expectations.suites.all_suites import EXPECTATIONS
from expectations.suites.finding import kind_of
from rebalance_ledger.gate.verdict import outcome_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def advice_on(row: Mapping[str, Any]) -> str:
    """Return what to do about a row of `gate_result`, or of `quarantined_group` with `outcome` `quarantined`."""
    expectation = EXPECTATIONS.get(row["expectation_id"])
    kind = kind_of(expectation) if expectation else None
    outcome = outcome_of(row)
    if outcome == "quarantined" and kind is None:
        return "The ledger may be wrong about this group: query the staged tables, fix the export or the code, and run the day again."
    if outcome == "waived":
        return "No action until the waiver expires; then fix the cause or renew the waiver."
    if outcome == "approved":
        return "No action for this computation; fix the cause before the next day, which needs an approval of its own."
    if outcome == "skipped":
        return (
            "No action if this is the first day; otherwise publish the baseline day and judge this day again."
        )
    if row["observed"] is None:
        return "Build the day again: the staged day was measured by other code, or the measurement did not finish."
    if kind is not None:
        return f"Fix the cause in the cluster (docs/findings/{kind}.md); waive a known finding, or remove its kind from `gate.findings`."
    if expectation is not None and expectation.is_of_two_days:
        return "Compare the two exports. A real change needs no action, or a waiver if it blocks; land a defective export again."
    if expectation is not None and expectation.is_each_limited:
        return "Compare the strategies in assignment_fairness; set a separate limit for a group that is uneven by design."
    if row["severity"] == "warn":
        return "Check the examples; raise the limit in the settings if this is normal for the cluster."
    return "The ledger may be wrong: query the staged tables, fix the export or the code, and run the day again. A waiver accepts the violation."
