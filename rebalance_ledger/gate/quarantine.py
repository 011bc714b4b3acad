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
        if evaluation.is_comparable and not evaluation.is_passed and evaluation.severity == "block"
    ]


def groups_to_quarantine(evaluations: Iterable[Evaluation]) -> list[dict[str, Any]] | None:
    """Return the groups whose exclusion removes every known blocking violation.

    Returns:
        Rows of `gold.quarantined_group` without the partition columns, ordered by group; empty if nothing blocks. None if
        a blocking violation belongs to no group: the number was not measured, or a subject has no group.
    """
    rows: list[dict[str, Any]] = []
    for evaluation in blocking(evaluations):
        subjects_by_group: defaultdict[str, list[AffectedSubject]] = defaultdict(list)
        for subject in evaluation.affected_subjects:
            if subject.severity != "block":
                continue
            if subject.consumer_group is None:
                return None
            subjects_by_group[subject.consumer_group].append(subject)
        if not subjects_by_group:
            return None
        rows += [
            {
                "consumer_group": group,
                "expectation_id": evaluation.expectation.expectation_id,
                "table_name": evaluation.expectation.table.qualified_name,
                "expectation": evaluation.expectation.sentence,
                "observed": sum(subject.amount for subject in affected_subjects),
                "examples": list(first_examples(affected_subjects)),
            }
            for group, affected_subjects in subjects_by_group.items()
        ]
    return sorted(rows, key=lambda row: (row["consumer_group"], row["expectation_id"]))


def group_names(rows: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Return the distinct groups of rows of `gold.quarantined_group`, sorted."""
    return tuple(sorted({row["consumer_group"] for row in rows}))
