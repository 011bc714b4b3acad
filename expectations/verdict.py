"""What the gate says, and how it is told to people.

What belongs here: the verdict's shape and its words. What does not: how it is reached (`gate`), where it is written
(`warehouse`), colours (`ledger`). Importing it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from pathlib import Path

VerdictName = Literal["passed", "passed_with_warnings", "refused"]

_TOLD_EXAMPLES: Final = 3
"""Examples in a sentence; `gate_result` and Data Docs have the others."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's judgement of one staged day.

    Attributes:
        verdict: `refused` if an expectation of severity `block` failed, else `passed_with_warnings` if one of
            severity `warn` did, else `passed`.
        results: one row per expectation with the own columns of `gold.gate_result`, in the order of the suites.
        reasons: one sentence for each failed expectation of severity `block`.
        warnings: one sentence for each failed expectation of severity `warn`.
        data_docs_index: the first page of the Data Docs, if they were written.
    """

    verdict: VerdictName
    results: list[dict[str, Any]]
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    data_docs_index: Path | None = None


def sentence_of(result: dict[str, Any], allowed: str) -> str:
    """A failed row of `gate_result` in one sentence: table, expectation, number and examples."""
    observed = result["observed"]
    found = "it was not measured" if observed is None else f"found {observed:g}, allowed {allowed}"
    examples = result["examples"]
    told = ""
    if examples:
        told = f"; for example: {' | '.join(examples[:_TOLD_EXAMPLES])}"
    return f"{result['table_name']} fails {result['expectation_id']} ({result['expectation'].rstrip('.')}): {found}{told}"


def explain(verdict: Verdict) -> str:
    """The verdict as plain text of a few lines, for a terminal, a log or a run's note."""
    held = sum(result["is_success"] for result in verdict.results)
    headline = {
        "passed": "The gate passed",
        "passed_with_warnings": "The gate passed with warnings",
        "refused": "The gate refused this day",
    }[verdict.verdict]
    lines = [f"{headline}: {held} of {len(verdict.results)} expectations hold."]
    lines += [f"- {reason}" for reason in verdict.reasons]
    lines += [f"- warning: {warning}" for warning in verdict.warnings]
    if verdict.data_docs_index is not None and (verdict.reasons or verdict.warnings):
        lines.append(f"All results: {verdict.data_docs_index}")
    return "\n".join(lines)
