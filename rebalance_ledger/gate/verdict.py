"""The verdict of the gate and its text form.

Belongs here: the type of the verdict, and its sentences. Does not belong here: the evaluation (`judge`), storage (`warehouse`), and colours
(`cli`). This module is cheap to import.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rebalance_ledger.gate.evaluation import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rebalance_ledger.gate.evaluation import Evaluation
    from rebalance_ledger.settings import Waiver
    from rebalance_ledger.tables.vocabulary import GateVerdict

_MAX_SENTENCE_EXAMPLES: Final = 3
"""Maximum number of examples in a sentence; `gate_result` and Data Docs have the others."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's evaluation of one staged day.

    Attributes:
        verdict: `refused` if an expectation of severity `block` failed, or `approved` if a person approved all of these; otherwise
            `passed_with_quarantine` if groups are quarantined; otherwise `passed_with_warnings` if an expectation of severity `warn`
            failed; otherwise `passed`.
        results: One row of `gold.gate_result` per expectation, without the partition columns, in the order of the suites.
        quarantined: Rows of `gold.quarantined_group` without the partition columns: the excluded groups, and why.
        reasons: One sentence for each failed expectation of severity `block`.
        approved: One sentence for each expectation of severity `block` that failed and was approved.
        warnings: One sentence for each failed expectation of severity `warn`.
        notes: Further sentences: each waiver that excuses nothing, and why no group was quarantined.
        data_docs_index: Path or URI of the first page of the Data Docs, if they were written.
    """

    verdict: GateVerdict
    results: list[dict[str, Any]]
    quarantined: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    approved: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data_docs_index: str | None = None


def sentence_of(result: dict[str, Any], evaluation: Evaluation) -> str:
    """Return a failed row of `gate_result` as one sentence: table, expectation, number, examples, waivers."""
    remaining = evaluation.remaining
    measured = (
        "it was not measured" if remaining is None else f"found {remaining:g}, allowed {allowed(evaluation)}"
    )
    if result["baseline_ds"] is not None:
        measured += f" (compared with {result['baseline_ds']})"
    details = ""
    if evaluation.examples:
        details = f"; for example: {' | '.join(evaluation.examples[:_MAX_SENTENCE_EXAMPLES])}"
    if evaluation.excused:
        details += f"; in addition, {waiver_text(evaluation)}"
    for waiver in evaluation.ended:
        details += f"; the waiver by {one_line(waiver.approved_by)} expired on {waiver.expires_on} ({one_line(waiver.reason)})"
    return f"{result['table_name']} fails {result['expectation_id']} ({result['expectation'].rstrip('.')}): {measured}{details}"


def quarantined_sentence(row: dict[str, Any]) -> str:
    """Return a row of `quarantined_group` as one sentence: group, table, expectation, number, examples."""
    examples = (
        f"; for example: {' | '.join(row['examples'][:_MAX_SENTENCE_EXAMPLES])}" if row["examples"] else ""
    )
    return (
        f"group {one_line(row['consumer_group'])}: {row['table_name']} fails {row['expectation_id']} "
        f"({row['expectation'].rstrip('.')}): found {row['observed']:g} of this group{examples}"
    )


def waiver_text(evaluation: Evaluation) -> str | None:
    """Return the applied waivers in one line: amount, expiry, approver and reason; None without one."""
    texts = [
        f"{amount:g} waived until {waiver.expires_on} by {one_line(waiver.approved_by)}: {one_line(waiver.reason)}"
        for waiver, amount in evaluation.excused
    ]
    return "; ".join(texts) or None


def approval_text(row: Mapping[str, Any]) -> str:
    """Return who approved a failed row of `gate_result`, and why, in one line."""
    return f"{one_line(row['approved_by'])}: {one_line(row['approval_reason'])}"


def idle_sentence(waiver: Waiver) -> str:
    """Return the note on a waiver that excuses nothing."""
    named = {"group": waiver.consumer_group, "topic": waiver.topic, "broker": waiver.broker_name}
    subject = "".join(f", {what} {one_line(name)}" for what, name in named.items() if name is not None)
    return (
        f"the waiver of {waiver.expectation or waiver.finding}{subject} by {one_line(waiver.approved_by)} until {waiver.expires_on} "
        "excuses nothing on this day; remove it from the settings if it is no longer needed"
    )


def outcome_of(row: Mapping[str, Any]) -> str:
    """Return the outcome in a row of `gate_result`; rows of the first releases have only `is_success`."""
    return row.get("outcome") or ("passed" if row["is_success"] else "failed")


def allowed(evaluation: Evaluation) -> str:
    """Return the allowed range of an expectation as text."""
    return allowed_range(evaluation.threshold_min, evaluation.threshold_max)


def allowed_range(least: float | None, most: float | None) -> str:
    """Return a range as text, for example `0`, `at most 0.01`, `at least 1`."""
    if least is None and most == 0:
        return "0"
    limits = [f"at least {least:g}"] if least is not None else []
    limits += [f"at most {most:g}"] if most is not None else []
    return " and ".join(limits)


def explain(verdict: Verdict) -> str:
    """Return the verdict as a few lines of plain text, for a terminal, a log or the note of a run."""
    judged = [result for result in verdict.results if result["outcome"] != "skipped"]
    passed_count = sum(result["outcome"] == "passed" for result in judged)
    skipped_count = len(verdict.results) - len(judged)
    headline = {
        "passed": "The gate passed",
        "passed_with_warnings": "The gate passed with warnings",
        "passed_with_quarantine": "The gate passed, without some groups",
        "approved": "The gate refused this day, and a person approved it",
        "refused": "The gate refused this day",
    }[verdict.verdict]
    lines = [f"{headline}: {passed_count} of {len(judged)} expectations passed."]
    lines += [f"- {reason}" for reason in verdict.reasons]
    lines += [f"- approved: {sentence}" for sentence in verdict.approved]
    lines += [f"- quarantined: {quarantined_sentence(row)}" for row in verdict.quarantined]
    lines += [f"- warning: {warning}" for warning in verdict.warnings]
    lines += [
        f"- waived: {result['table_name']} fails {result['expectation_id']}: {result['waiver']}"
        for result in verdict.results
        if result["outcome"] == "waived"
    ]
    lines += [f"- note: {note}" for note in verdict.notes]
    if skipped_count:
        noun = "expectation was" if skipped_count == 1 else "expectations were"
        lines.append(f"- note: {skipped_count} {noun} skipped: there is no baseline day")
    if verdict.data_docs_index is not None:
        lines.append(f"All results: {verdict.data_docs_index}")
    return "\n".join(lines)
