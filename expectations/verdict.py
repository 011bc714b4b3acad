"""What the gate says, and how it is told to people.

What belongs here: the verdict's shape and its words. What does not: how it is reached (`gate`), where it is written
(`warehouse`), colours (`ledger`). Importing it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from expectations.evaluation import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from expectations.evaluation import Evaluation
    from rebalance_ledger.settings import Waiver

VerdictName = Literal["passed", "passed_with_warnings", "passed_with_quarantine", "refused"]

Outcome = Literal["passed", "waived", "failed", "skipped"]
"""What came of one expectation."""

_TOLD_EXAMPLES: Final = 3
"""Examples in a sentence; `gate_result` and Data Docs have the others."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's evaluation of one staged day.

    Attributes:
        verdict: `refused` if an expectation of severity `block` failed, else `passed_with_quarantine` if the day was judged
            without some groups, else `passed_with_warnings` if one of severity `warn` failed, else `passed`.
        results: one row per expectation with the own columns of `gold.gate_result`, in the order of the suites.
        quarantined: own columns of `gold.quarantined_group`: the groups without which the day passed, and why.
        reasons: one sentence for each failed expectation of severity `block`.
        warnings: one sentence for each failed expectation of severity `warn`.
        notes: what else is to be known: one sentence for each waiver that excuses nothing, why no group is left out.
        data_docs_index: the first page of the Data Docs, if they were written.
    """

    verdict: VerdictName
    results: list[dict[str, Any]]
    quarantined: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data_docs_index: Path | None = None


def sentence_of(result: dict[str, Any], evaluation: Evaluation) -> str:
    """A failed row of `gate_result` in one sentence: table, expectation, number, examples, waivers."""
    remaining = evaluation.remaining
    found = (
        "it was not measured" if remaining is None else f"found {remaining:g}, allowed {allowed(evaluation)}"
    )
    if result["baseline_ds"] is not None:
        found += f" (compared with {result['baseline_ds']})"
    told = ""
    if evaluation.examples:
        told = f"; for example: {' | '.join(evaluation.examples[:_TOLD_EXAMPLES])}"
    if evaluation.excused:
        told += f"; beside these, {waiver_text(evaluation)}"
    for waiver in evaluation.ended:
        told += f"; the waiver by {one_line(waiver.approved_by)} expired on {waiver.expires_on} ({one_line(waiver.reason)})"
    return f"{result['table_name']} fails {result['expectation_id']} ({result['expectation'].rstrip('.')}): {found}{told}"


def left_out_sentence(row: dict[str, Any]) -> str:
    """A row of `quarantined_group` in one sentence: group, table, expectation, number, examples."""
    told = f"; for example: {' | '.join(row['examples'][:_TOLD_EXAMPLES])}" if row["examples"] else ""
    return (
        f"group {one_line(row['consumer_group'])}: {row['table_name']} fails {row['expectation_id']} "
        f"({row['expectation'].rstrip('.')}): found {row['observed']:g} of this group{told}"
    )


def waiver_text(evaluation: Evaluation) -> str | None:
    """Who excuses how much until when and why, in one line; None where nothing is excused."""
    texts = [
        f"{amount:g} waived until {waiver.expires_on} by {one_line(waiver.approved_by)}: {one_line(waiver.reason)}"
        for waiver, amount in evaluation.excused
    ]
    return "; ".join(texts) or None


def idle_sentence(waiver: Waiver) -> str:
    """What to say of a waiver that excuses nothing."""
    named = {"group": waiver.consumer_group, "topic": waiver.topic, "broker": waiver.broker_name}
    subject = "".join(f", {what} {one_line(name)}" for what, name in named.items() if name is not None)
    return (
        f"the waiver of {waiver.expectation or waiver.finding}{subject} by {one_line(waiver.approved_by)} until {waiver.expires_on} "
        "excuses nothing on this day; remove it from the settings if it is no longer needed"
    )


def outcome_of(row: Mapping[str, Any]) -> str:
    """What came of an expectation by its row of `gate_result`; rows of the first releases say only whether it held."""
    return row.get("outcome") or ("passed" if row["is_success"] else "failed")


def allowed(evaluation: Evaluation) -> str:
    """The range of an expectation in words."""
    return allowed_range(evaluation.threshold_min, evaluation.threshold_max)


def allowed_range(least: float | None, most: float | None) -> str:
    """A range in words, for example `0`, `at most 0.01`, `at least 1`."""
    if least is None and most == 0:
        return "0"
    limits = [f"at least {least:g}"] if least is not None else []
    limits += [f"at most {most:g}"] if most is not None else []
    return " and ".join(limits)


def explain(verdict: Verdict) -> str:
    """The verdict as plain text of a few lines, for a terminal, a log or a run's note."""
    judged = [result for result in verdict.results if result["outcome"] != "skipped"]
    held = sum(result["is_success"] for result in judged)
    headline = {
        "passed": "The gate passed",
        "passed_with_warnings": "The gate passed with warnings",
        "passed_with_quarantine": "The gate passed, without some groups",
        "refused": "The gate refused this day",
    }[verdict.verdict]
    lines = [f"{headline}: {held} of {len(judged)} expectations hold."]
    lines += [f"- {reason}" for reason in verdict.reasons]
    lines += [f"- left out: {left_out_sentence(row)}" for row in verdict.quarantined]
    lines += [f"- warning: {warning}" for warning in verdict.warnings]
    lines += [
        f"- waived: {result['table_name']} fails {result['expectation_id']}: {result['waiver']}"
        for result in verdict.results
        if result["outcome"] == "waived"
    ]
    lines += [f"- note: {note}" for note in verdict.notes]
    if len(judged) < len(verdict.results):
        lines.append(
            f"- note: {len(verdict.results) - len(judged)} expectations compare with an earlier day, "
            "and there is no earlier published day: they were not compared"
        )
    if verdict.data_docs_index is not None:
        lines.append(f"All results: {verdict.data_docs_index}")
    return "\n".join(lines)
