"""What a person can do about an expectation that does not plainly hold.

What belongs here: advice, by what came of an expectation. What does not: advice on findings (`rebalance_ledger.tables.finding_advice`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from expectations.finding import kind_of
from expectations.suites import EXPECTATIONS
from expectations.verdict import outcome_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def advice_on(row: Mapping[str, Any]) -> str:
    """Return what to do about a row of `gate_result`, or of `quarantined_group` with `outcome` `quarantined`."""
    expectation = EXPECTATIONS.get(row["expectation_id"])
    kind = kind_of(expectation) if expectation else None
    outcome = outcome_of(row)
    if outcome == "quarantined" and kind is None:
        return "The ledger may be wrong about this group: ask the stage, repair the export or the code, and run the day again; it is whole then."
    if outcome == "waived":
        return "Nothing before the waiver ends; then repair what it excuses, or renew it."
    if outcome == "skipped":
        return "Nothing, if this is the first day; else publish the earlier day and judge this one again."
    if row["observed"] is None:
        return "Build the day again: the stage was measured by other code, or not to its end."
    if kind is not None:
        return f"Repair the cluster (docs/findings/{kind}.md); waive the finding if it is known, or take it out of `gate.findings`."
    if expectation is not None and expectation.is_of_two_days:
        return "Hold the two exports side by side. A true change needs nothing, or a waiver where it blocks; a poor export is landed again."
    if expectation is not None and expectation.is_each_limited:
        return "Compare the strategies in assignment_fairness; a group that is uneven by design gets a limit of its own."
    if row["severity"] == "warn":
        return "Look at the examples; raise the limit in the settings if this is usual for the cluster."
    return "The ledger may be wrong: ask the stage, repair the export or the code, and run the day again. A waiver lets it pass, knowingly."
