"""A person's approval of one refused computation of a day.

A waiver in the settings accepts a violation on every day until it expires; an approval accepts what one computation of one day
violates. It is bound to the run id, so other input needs another approval.

Belongs here: the type. Does not belong here: its file (`warehouse.approvals`), its effect on the verdict
(`rebalance_ledger.gate.judge`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Approval:
    """The decision to publish a computation that the gate refused.

    Attributes:
        run_id: Id of the refused computation.
        approved_by: Who approved it.
        reason: Why, in one line.
        expectation_ids: The expectations that had failed when it was approved; others still refuse the day.
    """

    run_id: str
    approved_by: str
    reason: str
    expectation_ids: tuple[str, ...]
