"""Which groups a day could be published without, where they alone keep it from being published.

What belongs here: that decision, from evaluations. What does not: measuring the rest of the day (`spark_jobs`), leaving the rows
out (`warehouse`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from expectations.evaluation import first_examples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from expectations.evaluation import AffectedSubject, Evaluation


def blocking(evaluations: Iterable[Evaluation]) -> list[Evaluation]:
    """The evaluations that keep a day from being published."""
    return [
        evaluation
        for evaluation in evaluations
        if evaluation.is_comparable and not evaluation.is_held and evaluation.severity == "block"
    ]


def groups_at_fault(evaluations: Iterable[Evaluation]) -> list[dict[str, Any]] | None:
    """The groups without which nothing is known that would keep the day from being published.

    Returns:
        The own columns of rows of `gold.quarantined_group`, by group; none where nothing blocks. None where something blocks
        that is no group's: a number that was not measured, or whose offenders are not all told by their groups.
    """
    found: list[dict[str, Any]] = []
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
        found += [
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
    return sorted(found, key=lambda row: (row["consumer_group"], row["expectation_id"]))


def names(rows: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The groups of rows of `gold.quarantined_group`, each once, sorted."""
    return tuple(sorted({row["consumer_group"] for row in rows}))
