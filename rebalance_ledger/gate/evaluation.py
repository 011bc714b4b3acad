"""Evaluation of metrics: apply the severities, limits and waivers of the settings.

Belongs here: splitting a metric by the subjects that it affects. Does not belong here: comparing the remaining number with its range and
reporting it (`judge`), measuring (`pipeline.gate_metrics`).
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from expectations.suites.all_suites import EXPECTATIONS
from expectations.suites.thresholds import MOST_EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date

    from expectations.suites.model import Expectation
    from rebalance_ledger.gate.policy import GatePolicy
    from rebalance_ledger.settings import Severity, Waiver

_MOST_EXAMPLE_CHARACTERS: Final = 500
_MIN_UNASSIGNED: Final = 1e-9
"""The smallest difference that is not rounding, relative to the larger of 1 and the number."""


class MetricError(ValueError):
    """The metrics do not match the declared expectations, so the gate cannot judge them."""


@dataclass(frozen=True, slots=True)
class AffectedSubject:
    """A subject that accounts for a part of a metric; its columns are None where no subject is known.

    Attributes:
        consumer_group: Affected group, if any.
        topic: Affected topic, if any.
        broker_name: Affected broker, if any.
        amount: Part of the number.
        examples: First violations, one line each.
        severity: Severity, or None if the policy ignores it.
    """

    consumer_group: str | None
    topic: str | None
    broker_name: str | None
    amount: float
    examples: tuple[str, ...]
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One expectation on one day, before its number is compared with its range.

    Attributes:
        expectation: Expectation to judge.
        severity: Effect of a failure: the highest severity of the remaining subjects.
        threshold_min: Minimum number allowed; None for no lower limit.
        threshold_max: Maximum number allowed; None for no upper limit.
        is_comparable: False for a comparison of two days without a baseline: it neither passes nor fails.
        observed: Number over all subjects that the policy judges; None if it was not measured.
        remaining: Part of `observed` that no waiver excuses; None if it was not measured.
        affected_subjects: Remaining subjects.
        examples: First violations of the remaining subjects or, if none remains, of the excused ones.
        excused: Waivers in force that excuse a subject, each with its part of the number.
        ended: Expired waivers that name a remaining subject.
    """

    expectation: Expectation
    severity: Severity
    threshold_min: float | None
    threshold_max: float | None
    is_comparable: bool = True
    observed: float | None = None
    remaining: float | None = None
    affected_subjects: tuple[AffectedSubject, ...] = ()
    examples: tuple[str, ...] = ()
    excused: tuple[tuple[Waiver, float], ...] = ()
    ended: tuple[Waiver, ...] = ()

    @property
    def is_passed(self) -> bool:
        """Return whether the remaining number is in range; a number that was not measured is not."""
        return is_in_range(self.remaining, self.threshold_min, self.threshold_max)


@dataclass(frozen=True, slots=True)
class _Metric:
    """The metric of one expectation."""

    observed: float
    examples: tuple[str, ...]
    affected_subjects: tuple[AffectedSubject, ...]


def evaluate(
    metrics: Iterable[Mapping[str, Any]], policy: GatePolicy, *, baseline_ds: date | None
) -> list[Evaluation]:
    """Evaluate every expectation that the policy judges, in the order of the suites.

    Args:
        metrics: Rows of `measurement.METRIC_SCHEMA`. Where `affected_subjects` is missing or null, no subject is known.
        policy: Policy of the cluster on this day.
        baseline_ds: Baseline day of the metrics; None if there is none.

    Raises:
        MetricError: A metric belongs to no expectation, or an expectation has two metrics.
    """
    measured = _by_expectation(metrics)
    evaluations = []
    for expectation in EXPECTATIONS.values():
        severity = policy.severest(expectation)
        if severity is None:
            continue
        metric = measured.get(expectation.expectation_id)
        if expectation.is_of_two_days and baseline_ds is None:
            evaluations.append(
                Evaluation(expectation, severity, *policy.thresholds(expectation), is_comparable=False)
            )
        elif metric is None:
            evaluations.append(Evaluation(expectation, severity, *policy.thresholds(expectation)))
        elif expectation.threshold_min is not None:
            evaluations.append(_evaluate_minimum(expectation, severity, metric, policy))
        else:
            evaluations.append(_evaluate_maximum(expectation, severity, metric, policy))
    return evaluations


def idle_waivers(evaluations: Iterable[Evaluation], policy: GatePolicy) -> list[Waiver]:
    """Return the waivers that excuse nothing on this day and would excuse nothing if still in force."""
    used: list[Waiver] = []
    for evaluation in evaluations:
        used += [waiver for waiver, _ in evaluation.excused]
        used += evaluation.ended
        if not evaluation.is_comparable:
            used += policy.waivers(evaluation.expectation)
    return [waiver for waiver in policy.settings.waivers if waiver not in used]


def is_in_range(number: float | None, least: float | None, most: float | None) -> bool:
    """Return whether a number is in range; None is not."""
    return number is not None and (least is None or number >= least) and (most is None or number <= most)


def _evaluate_minimum(
    expectation: Expectation, severity: Severity, metric: _Metric, policy: GatePolicy
) -> Evaluation:
    """Evaluate an expectation with a minimum: it has no subjects, so a waiver excuses all of it or nothing."""
    least, most = policy.thresholds(expectation)
    excused: list[tuple[Waiver, float]] = []
    ended: list[Waiver] = []
    remaining = metric.observed
    if not is_in_range(remaining, least, most):
        for waiver in filter(_is_whole, policy.waivers(expectation)):
            if policy.is_in_force(waiver):
                excused.append((waiver, metric.observed))
                remaining = least or 0.0
            else:
                ended.append(waiver)
    return Evaluation(
        expectation,
        severity,
        least,
        most,
        observed=metric.observed,
        remaining=remaining,
        examples=metric.examples,
        excused=tuple(excused),
        ended=tuple(ended),
    )


def _evaluate_maximum(
    expectation: Expectation, severity: Severity, metric: _Metric, policy: GatePolicy
) -> Evaluation:
    """Evaluate an expectation with a maximum: each affected subject is judged, or excused, on its own."""
    least, most = policy.thresholds(expectation)
    judged = _judged_subjects(expectation, metric, policy)
    observed = _total(judged)
    remaining = judged
    excused: list[tuple[Waiver, float]] = []
    ended: list[Waiver] = []
    if not is_in_range(observed, least, most):
        for waiver in filter(policy.is_in_force, policy.waivers(expectation)):
            named = [subject for subject in remaining if _names(waiver, subject)]
            if named:
                excused.append((waiver, _total(named)))
                remaining = [subject for subject in remaining if not _names(waiver, subject)]
        ended = [
            waiver
            for waiver in policy.waivers(expectation)
            if not policy.is_in_force(waiver) and any(_names(waiver, subject) for subject in remaining)
        ]
    severities = {subject.severity for subject in remaining or judged}
    return Evaluation(
        expectation,
        "block" if "block" in severities else "warn" if "warn" in severities else severity,
        least,
        most,
        observed=observed,
        remaining=_total(remaining),
        affected_subjects=tuple(remaining),
        examples=metric.examples
        if len(remaining) == len(metric.affected_subjects)
        else first_examples(remaining or judged),
        excused=tuple(excused),
        ended=tuple(ended),
    )


def _judged_subjects(expectation: Expectation, metric: _Metric, policy: GatePolicy) -> list[AffectedSubject]:
    """Return the affected subjects that the policy judges, with their severities."""
    if expectation.is_each_limited:
        return [limited for subject in metric.affected_subjects if (limited := _above_limit(subject, policy))]
    return [
        replace(subject, severity=severity)
        for subject in metric.affected_subjects
        if (severity := policy.severity(expectation, subject.consumer_group)) is not None
    ]


def _above_limit(subject: AffectedSubject, policy: GatePolicy) -> AffectedSubject | None:
    """Return the subject with amount 1 if its number is above the limit of its group, else None."""
    limits = policy.max_over_mean(subject.consumer_group)
    if limits is None:
        return None
    levels: tuple[tuple[Severity, float | None], ...] = (("block", limits.block), ("warn", limits.warn))
    for severity, limit in levels:
        if limit is not None and subject.amount > limit:
            texts = subject.examples or (_subject(subject),)
            examples = tuple(
                f"{example}: {subject.amount:.2f} times as many, allowed {limit:g}" for example in texts
            )
            return replace(subject, amount=1.0, examples=examples, severity=severity)
    return None


def _names(waiver: Waiver, subject: AffectedSubject) -> bool:
    """Return whether a waiver excuses a subject: every column that the waiver names must match."""
    return all(
        named is None or named == concerned
        for named, concerned in (
            (waiver.consumer_group, subject.consumer_group),
            (waiver.topic, subject.topic),
            (waiver.broker_name, subject.broker_name),
        )
    )


def _is_whole(waiver: Waiver) -> bool:
    return waiver.consumer_group is None and waiver.topic is None and waiver.broker_name is None


def _total(affected_subjects: Iterable[AffectedSubject]) -> float:
    return math.fsum(subject.amount for subject in affected_subjects)


def first_examples(affected_subjects: Iterable[AffectedSubject]) -> tuple[str, ...]:
    """Return the first violations of the subjects, in the order of their text."""
    texts = sorted(text for subject in affected_subjects for text in subject.examples or (_subject(subject),))
    return tuple(one_line(text) for text in texts[:MOST_EXAMPLES])


def _subject(subject: AffectedSubject) -> str:
    named = {"group": subject.consumer_group, "topic": subject.topic, "broker": subject.broker_name}
    return (
        ", ".join(f"{what} {name}" for what, name in named.items() if name is not None)
        or "(no example was kept)"
    )


def _by_expectation(rows: Iterable[Mapping[str, Any]]) -> dict[str, _Metric]:
    """Return the metrics by expectation id."""
    measured: dict[str, _Metric] = {}
    for row in rows:
        expectation_id, observed = row["expectation_id"], row["observed"]
        if expectation_id not in EXPECTATIONS:
            raise MetricError(
                f"The metric {expectation_id} belongs to no expectation: "
                "declare it in a suite of expectations/, or stop measuring it."
            )
        if expectation_id in measured:
            raise MetricError(
                f"The metric {expectation_id} occurs twice: compute it in one statement of expectations/suites/metrics.py only."
            )
        # NaN and infinity count as not measured; a range with one limit would accept an infinity.
        if observed is not None and math.isfinite(observed):
            examples = tuple(row["examples"] if row["examples"] is not None else ())
            measured[expectation_id] = _Metric(
                float(observed),
                tuple(map(one_line, examples[:MOST_EXAMPLES])),
                _affected_subjects(
                    row, float(observed), examples, is_sum=not EXPECTATIONS[expectation_id].is_each_limited
                ),
            )
    return measured


def _affected_subjects(
    row: Mapping[str, Any], observed: float, examples: tuple[str, ...], *, is_sum: bool
) -> tuple[AffectedSubject, ...]:
    """Return the affected subjects of a metric; a part without a subject remains as a subject without names."""
    subjects = row.get("affected_subjects")
    affected_subjects = [
        AffectedSubject(
            each["consumer_group"],
            each["topic"],
            each["broker_name"],
            each["amount"],
            tuple(each["examples"]),
        )
        for each in (subjects if subjects is not None else ())
    ]
    unassigned = observed - _total(affected_subjects)
    if is_sum and unassigned > _MIN_UNASSIGNED * max(1.0, observed):
        affected_subjects.append(
            AffectedSubject(None, None, None, unassigned, () if affected_subjects else examples)
        )
    return tuple(affected_subjects)


def one_line(text: str) -> str:
    """Return a text on one line: escape line breaks, control and direction characters, and truncate a long text."""
    shown = "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        else character
        for character in text
    )
    return shown if len(shown) <= _MOST_EXAMPLE_CHARACTERS else f"{shown[:_MOST_EXAMPLE_CHARACTERS]}…"
