"""Selection of the groups to quarantine when they alone block a day.

Belongs here: that decision, from evaluations. Does not belong here: measuring the day without these groups
(`pipeline.gate_input`), excluding their rows (`warehouse`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from rebalance_ledger.gate.evaluation import first_examples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rebalance_ledger.gate.evaluation import AffectedSubject, Evaluation


def blocking(evaluations: Iterable[Evaluation]) -> list[Evaluation]:
    """Return the evaluations that block publication of the day."""
    return [
        evaluation
        for evaluation in evaluations
        if evaluation.is_comparable and not evaluation.is_held and evaluation.severity == "block"
    ]


def groups_at_fault(evaluations: Iterable[Evaluation]) -> list[dict[str, Any]] | None:
    """Return the groups whose exclusion removes every known blocking violation.

    Returns:
        Rows of `gold.quarantined_group` without the partition columns, ordered by group; empty if nothing blocks. None if
        a blocking violation belongs to no group: the number was not measured, or a subject has no group.
    """
    rows: list[dict[str, Any]] = []
    for evaluation in blocking(evaluations):
        offenders_of: defaultdict[str, list[AffectedSubject]] = defaultdict(list)
        for offender in evaluation.offenders:
            if offender.severity != "block":
                continue
            if offender.consumer_group is None:
                return None
            offenders_of[offender.consumer_group].append(offender)
        if not offenders_of:
            return None
        rows += [
            {
                "consumer_group": group,
                "expectation_id": evaluation.expectation.expectation_id,
                "table_name": evaluation.expectation.table.qualified_name,
                "expectation": evaluation.expectation.sentence,
                "observed": sum(offender.amount for offender in offenders),
                "examples": list(first_examples(offenders)),
            }
            for group, offenders in offenders_of.items()
        ]
    return sorted(rows, key=lambda row: (row["consumer_group"], row["expectation_id"]))


def names(rows: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Return the distinct groups of rows of `gold.quarantined_group`, sorted."""
    return tuple(sorted({row["consumer_group"] for row in rows}))
