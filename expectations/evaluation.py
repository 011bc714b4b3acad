"""What remains of a measured number once severities, limits and waivers of the settings are counted in.

What belongs here: taking apart what was measured, by whom it concerns. What does not: holding the number that remains
against its range and telling of it (`gate`), measuring (`measures`, `day_over_day`).
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from expectations.suites import EXPECTATIONS
from expectations.thresholds import MOST_EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date

    from expectations.model import Expectation
    from expectations.policy import Rules
    from rebalance_ledger.settings import Severity, Waiver

_MOST_EXAMPLE_CHARACTERS: Final = 500
_LEAST_UNTOLD: Final = 1e-9
"""The least part of a number, of the larger of 1 and the number, that is more than rounding."""


class MeasureError(ValueError):
    """The measures are not what the gate declares, so nothing can be judged by them."""


@dataclass(frozen=True, slots=True)
class AffectedSubject:
    """Whom a part of a number concerns; null where it is nobody in particular.

    Attributes:
        consumer_group: the group, if one is concerned.
        topic: the topic.
        broker_name: the broker.
        amount: the part of the number.
        examples: the first offences, each as one line.
        severity: what it comes to; None where nobody minds.
    """

    consumer_group: str | None
    topic: str | None
    broker_name: str | None
    amount: float
    examples: tuple[str, ...]
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One expectation on one day, before its number is held against its range.

    Attributes:
        expectation: what must hold.
        severity: what a failure does: the severest of the offenders that remain.
        threshold_min: least number allowed; None for no lower limit.
        threshold_max: greatest number allowed; None for no upper limit.
        is_comparable: False for a comparison of two days where there is no earlier one: it neither holds nor fails.
        observed: the number of all whom the rules mind; None if it was not measured.
        remaining: the part of it that no waiver excuses; None if it was not measured.
        offenders: who remains.
        examples: the first offences: of who remains, or where nobody does, of who is excused.
        excused: waivers in force that excuse somebody, each with its part of the number.
        ended: waivers that would have excused somebody who remains, had they not ended.
    """

    expectation: Expectation
    severity: Severity
    threshold_min: float | None
    threshold_max: float | None
    is_comparable: bool = True
    observed: float | None = None
    remaining: float | None = None
    offenders: tuple[AffectedSubject, ...] = ()
    examples: tuple[str, ...] = ()
    excused: tuple[tuple[Waiver, float], ...] = ()
    ended: tuple[Waiver, ...] = ()

    @property
    def is_held(self) -> bool:
        """Whether what remains is in range; what was not measured is not."""
        return is_in_range(self.remaining, self.threshold_min, self.threshold_max)


@dataclass(frozen=True, slots=True)
class _Measure:
    """What was measured for one expectation."""

    observed: float
    examples: tuple[str, ...]
    offenders: tuple[AffectedSubject, ...]


def evaluate(
    measures: Iterable[Mapping[str, Any]], rules: Rules, *, baseline_ds: date | None
) -> list[Evaluation]:
    """What remains of each expectation that somebody asks for, in the order of the suites.

    Args:
        measures: rows of `measures.METRIC_SCHEMA`. Where `offenders` is missing or null, nobody in particular is
            concerned.
        rules: what counts on this day.
        baseline_ds: the earlier day that the measures compare with; None if there is none.

    Raises:
        MeasureError: a measure that no expectation declares, or two for one expectation.
    """
    measured = _by_expectation(measures)
    evaluations = []
    for expectation in EXPECTATIONS.values():
        severity = rules.severest(expectation)
        if severity is None:
            continue
        measure = measured.get(expectation.expectation_id)
        if expectation.is_of_two_days and baseline_ds is None:
            evaluations.append(
                Evaluation(expectation, severity, *rules.thresholds(expectation), is_comparable=False)
            )
        elif measure is None:
            evaluations.append(Evaluation(expectation, severity, *rules.thresholds(expectation)))
        elif expectation.threshold_min is not None:
            evaluations.append(_of_wanted(expectation, severity, measure, rules))
        else:
            evaluations.append(_of_unwanted(expectation, severity, measure, rules))
    return evaluations


def idle_waivers(evaluations: Iterable[Evaluation], rules: Rules) -> list[Waiver]:
    """The waivers that excuse nobody on this day, and would not if they had not ended."""
    used: list[Waiver] = []
    for evaluation in evaluations:
        used += [waiver for waiver, _ in evaluation.excused]
        used += evaluation.ended
        if not evaluation.is_comparable:
            used += rules.waivers(evaluation.expectation)
    return [waiver for waiver in rules.settings.waivers if waiver not in used]


def is_in_range(number: float | None, least: float | None, most: float | None) -> bool:
    """Whether a number is allowed; none is not."""
    return number is not None and (least is None or number >= least) and (most is None or number <= most)


def _of_wanted(expectation: Expectation, severity: Severity, measure: _Measure, rules: Rules) -> Evaluation:
    """An expectation that asks for enough of something: nobody in particular offends, all of it is excused or nothing."""
    least, most = rules.thresholds(expectation)
    excused: list[tuple[Waiver, float]] = []
    ended: list[Waiver] = []
    remaining = measure.observed
    if not is_in_range(remaining, least, most):
        for waiver in filter(_is_whole, rules.waivers(expectation)):
            if rules.is_in_force(waiver):
                excused.append((waiver, measure.observed))
                remaining = least or 0.0
            else:
                ended.append(waiver)
    return Evaluation(
        expectation,
        severity,
        least,
        most,
        observed=measure.observed,
        remaining=remaining,
        examples=measure.examples,
        excused=tuple(excused),
        ended=tuple(ended),
    )


def _of_unwanted(expectation: Expectation, severity: Severity, measure: _Measure, rules: Rules) -> Evaluation:
    """An expectation that asks for no more than so much: who offends can be minded, or excused, one by one."""
    least, most = rules.thresholds(expectation)
    minded = _minded(expectation, measure, rules)
    observed = _total(minded)
    remaining = minded
    excused: list[tuple[Waiver, float]] = []
    ended: list[Waiver] = []
    if not is_in_range(observed, least, most):
        for waiver in filter(rules.is_in_force, rules.waivers(expectation)):
            named = [offender for offender in remaining if _names(waiver, offender)]
            if named:
                excused.append((waiver, _total(named)))
                remaining = [offender for offender in remaining if not _names(waiver, offender)]
        ended = [
            waiver
            for waiver in rules.waivers(expectation)
            if not rules.is_in_force(waiver) and any(_names(waiver, offender) for offender in remaining)
        ]
    severities = {offender.severity for offender in remaining or minded}
    return Evaluation(
        expectation,
        "block" if "block" in severities else "warn" if "warn" in severities else severity,
        least,
        most,
        observed=observed,
        remaining=_total(remaining),
        offenders=tuple(remaining),
        examples=measure.examples
        if len(remaining) == len(measure.offenders)
        else first_examples(remaining or minded),
        excused=tuple(excused),
        ended=tuple(ended),
    )


def _minded(expectation: Expectation, measure: _Measure, rules: Rules) -> list[AffectedSubject]:
    """The offenders that somebody minds, with what each comes to."""
    if expectation.is_each_limited:
        return [limited for offender in measure.offenders if (limited := _above_limit(offender, rules))]
    return [
        replace(offender, severity=severity)
        for offender in measure.offenders
        if (severity := rules.severity(expectation, offender.consumer_group)) is not None
    ]


def _above_limit(offender: AffectedSubject, rules: Rules) -> AffectedSubject | None:
    """An offender of amount 1 if its number is above the limit of its group."""
    limits = rules.max_over_mean(offender.consumer_group)
    if limits is None:
        return None
    asked: tuple[tuple[Severity, float | None], ...] = (("block", limits.block), ("warn", limits.warn))
    for severity, limit in asked:
        if limit is not None and offender.amount > limit:
            said = offender.examples or (_subject(offender),)
            told = tuple(
                f"{example}: {offender.amount:.2f} times as many, allowed {limit:g}" for example in said
            )
            return replace(offender, amount=1.0, examples=told, severity=severity)
    return None


def _names(waiver: Waiver, offender: AffectedSubject) -> bool:
    """Whether a waiver excuses an offender: in each column that it names."""
    return all(
        named is None or named == concerned
        for named, concerned in (
            (waiver.consumer_group, offender.consumer_group),
            (waiver.topic, offender.topic),
            (waiver.broker_name, offender.broker_name),
        )
    )


def _is_whole(waiver: Waiver) -> bool:
    return waiver.consumer_group is None and waiver.topic is None and waiver.broker_name is None


def _total(offenders: Iterable[AffectedSubject]) -> float:
    return math.fsum(offender.amount for offender in offenders)


def first_examples(offenders: Iterable[AffectedSubject]) -> tuple[str, ...]:
    """The first offences of some offenders, in the order of their text."""
    texts = sorted(text for offender in offenders for text in offender.examples or (_subject(offender),))
    return tuple(one_line(text) for text in texts[:MOST_EXAMPLES])


def _subject(offender: AffectedSubject) -> str:
    named = {"group": offender.consumer_group, "topic": offender.topic, "broker": offender.broker_name}
    return (
        ", ".join(f"{what} {name}" for what, name in named.items() if name is not None)
        or "(no example was kept)"
    )


def _by_expectation(rows: Iterable[Mapping[str, Any]]) -> dict[str, _Measure]:
    """The measure of every expectation that was measured."""
    measured: dict[str, _Measure] = {}
    for row in rows:
        expectation_id, observed = row["expectation_id"], row["observed"]
        if expectation_id not in EXPECTATIONS:
            raise MeasureError(
                f"The measure {expectation_id} belongs to no expectation: "
                "declare it in a suite of expectations/, or stop measuring it."
            )
        if expectation_id in measured:
            raise MeasureError(
                f"The measure {expectation_id} is there twice: let one statement of expectations/metrics.py give it."
            )
        # A number that is none was not measured; a range would let an infinity pass on one side.
        if observed is not None and math.isfinite(observed):
            examples = tuple(row["examples"] if row["examples"] is not None else ())
            measured[expectation_id] = _Measure(
                float(observed),
                tuple(map(one_line, examples[:MOST_EXAMPLES])),
                _offenders(
                    row, float(observed), examples, is_sum=not EXPECTATIONS[expectation_id].is_each_limited
                ),
            )
    return measured


def _offenders(
    row: Mapping[str, Any], observed: float, examples: tuple[str, ...], *, is_sum: bool
) -> tuple[AffectedSubject, ...]:
    """Whom a number concerns; a part that is not told of anybody concerns nobody in particular, and stays."""
    given = row.get("offenders")
    offenders = [
        AffectedSubject(
            each["consumer_group"],
            each["topic"],
            each["broker_name"],
            each["amount"],
            tuple(each["examples"]),
        )
        for each in (given if given is not None else ())
    ]
    untold = observed - _total(offenders)
    if is_sum and untold > _LEAST_UNTOLD * max(1.0, observed):
        offenders.append(AffectedSubject(None, None, None, untold, () if offenders else examples))
    return tuple(offenders)


def one_line(text: str) -> str:
    """A text with what would break a line, move a cursor or turn the direction of writing spelt out; cut if long."""
    shown = "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        else character
        for character in text
    )
    return shown if len(shown) <= _MOST_EXAMPLE_CHARACTERS else f"{shown[:_MOST_EXAMPLE_CHARACTERS]}…"
