"""`ledger backfill`: many days of one cluster, then the later days whose baseline they changed.

Belongs here: the choice of the days, their order, and their outcomes. Does not belong here: the processes that run them
(`rebalance_ledger.pipeline.day_workers`), and which days are out of date (`rebalance_ledger.pipeline.outdated`).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.exports.manifest import MANIFEST_NAME, ExportError, export_directory
from rebalance_ledger.pipeline import outdated
from rebalance_ledger.pipeline.outdated import PublishedDays
from rebalance_ledger.pipeline.steps import export_bytes
from rebalance_ledger.printable import visible
from rebalance_ledger.warehouse.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import date

    from rebalance_ledger.pipeline.day import Day
    from rebalance_ledger.pipeline.day_workers import DayWorker

_DONE, _CRASHED, _BAD_INPUT, _REFUSED = 0, 1, 2, 3

PUBLISHED: Final = "published"
"""Outcome of a published day."""

UP_TO_DATE: Final = "up to date"
"""Outcome of a day that was not run, because it is published from the same export, settings, code and baseline."""

_OUTCOMES: Final = {_DONE: PUBLISHED, _BAD_INPUT: "bad input", _REFUSED: "refused"}
_WORST_FIRST: Final = (_CRASHED, _REFUSED, _BAD_INPUT, _DONE)
_REASON_LINES = 30  # a refusal names each failed expectation on a line of its own

ASKED_FOR: Final = "asked for"
"""Reason for a day of the range; later days have the reasons of `outdated_day`."""

NO_EXPORT: Final = "no export"
"""Outcome of a day without an export, which is not a failure."""


NO_REPORT: Final = "no report"
"""Additional outcome of a published day whose report could not be written."""


class DayOutcome(NamedTuple):
    """The outcome of one day.

    Attributes:
        cluster: Name of the cluster.
        ds: The day.
        why: Why it was computed: it was requested, or why it was out of date.
        outcome: `published`, `refused`, `bad input`, `crashed`, `no export`, `up to date`, or `no report`.
        exit_code: Exit code of its run.
        reason: Why it was not published; empty if it was.
    """

    cluster: str
    ds: date
    why: str
    outcome: str
    exit_code: int
    reason: str


def backfill(
    any_day: Day,
    first: date,
    last: date,
    *,
    is_reversed: bool,
    run: Callable[[Day, str, Iterable[Day]], DayOutcome],
    is_published_skipped: bool = False,
) -> Iterator[DayOutcome]:
    """Run each day of a range with an export, then each later day whose baseline has changed.

    A failed day does not stop the others. Outdated days are computed again in order, so each of them at most once.

    Args:
        any_day: The cluster, and the locations of exports and warehouse.
        first: The first day.
        last: The last day, included.
        is_reversed: Whether to begin with the last day.
        run: Computes a day, given the reason and the days that are run next.
        is_published_skipped: Whether to skip days that are published and up to date.

    Yields:
        One outcome for each run when it ends, and for each day of the range without an export.
    """
    failed = set()
    days = _days(any_day, first, last)
    published = None  # Only a run changes what is published, so it is read again after each run only.
    for day in reversed(days) if is_reversed else days:
        if not _has_export(day):
            yield DayOutcome(day.cluster, day.ds, ASKED_FOR, NO_EXPORT, _DONE, "")
            continue
        if is_published_skipped and published is None:
            published = _published_days(any_day)
        if published is not None and _is_up_to_date(day, published):
            yield DayOutcome(day.cluster, day.ds, ASKED_FOR, UP_TO_DATE, _DONE, "")
            continue
        # A day that is run before its previous day is not compared with that day.
        next_day = day.ds + timedelta(days=1)
        ahead = days_to_run(any_day, next_day, last, is_published_skipped=is_published_skipped)
        outcome = run(day, ASKED_FOR, () if is_reversed else ahead)
        published = None
        if outcome.exit_code != _DONE:
            failed.add(day.ds)
        yield outcome
    settled = first - timedelta(days=1)
    while True:
        # Computing a day again can only make later days outdated.
        due = [
            stale
            for stale in outdated.stale_days(any_day.warehouse, any_day.cluster, any_day.exports)
            if stale.ds > settled and stale.ds not in failed
        ]
        if not due:
            return
        settled, why = due[0].ds, ", ".join(due[0].reasons)
        day, *later = (replace(any_day, ds=stale.ds) for stale in due)
        # What was published of an export that is gone stays as it is, and marked.
        yield (
            run(day, why, filter(_has_export, later))
            if _has_export(day)
            else DayOutcome(day.cluster, settled, why, NO_EXPORT, _DONE, "")
        )


def days_to_run(
    any_day: Day, first: date, last: date, *, is_published_skipped: bool = False
) -> Iterator[Day]:
    """Yield the days of a range with an export, in order, without skipped days."""
    published = _published_days(any_day) if is_published_skipped else None
    for day in _days(any_day, first, last):
        if _has_export(day) and not (published and _is_up_to_date(day, published)):
            yield day


def _days(any_day: Day, first: date, last: date) -> list[Day]:
    return [replace(any_day, ds=first + timedelta(days=number)) for number in range((last - first).days + 1)]


def _has_export(day: Day) -> bool:
    return (export_directory(day.exports, day.cluster, day.ds) / MANIFEST_NAME).is_file()


def _published_days(any_day: Day) -> PublishedDays:
    try:
        return outdated.published_days(any_day.warehouse, any_day.cluster)
    except QueryError:
        return PublishedDays({}, {})  # The run says what is wrong.


def _is_up_to_date(day: Day, published: PublishedDays) -> bool:
    try:
        return outdated.is_up_to_date(day, published)
    except ExportError:
        return False  # The run says what is wrong.


def exit_code_of(outcomes: list[DayOutcome]) -> int:
    """Return the worst exit code: a crash, then a refusal, then bad input; also bad input if no day has an export."""
    if all(outcome.outcome == NO_EXPORT for outcome in outcomes):
        return _BAD_INPUT
    codes = {outcome.exit_code for outcome in outcomes}
    return next(code for code in _WORST_FIRST if code in codes)


def run_in_worker(worker: DayWorker, day: Day, why: str, ahead: Iterable[Day]) -> DayOutcome:
    """Run one day in a worker; progress goes to standard error."""
    write_progress(f"{day.cluster} {day.ds} ({why})")
    result = worker.run(day, _export_bytes(day), ((later, _export_bytes(later)) for later in ahead))
    if result.reason:
        write_progress(f"  {result.reason}")
    reason = " ".join(line.strip() for line in result.reason.splitlines()[:_REASON_LINES])
    outcome = _OUTCOMES.get(result.exit_code, "crashed")
    return DayOutcome(day.cluster, day.ds, why, outcome, result.exit_code, reason)


def write_progress(line: str) -> None:
    """Write a line to standard error at once."""
    sys.stderr.write(f"{visible(line)}\n")
    sys.stderr.flush()


def _export_bytes(day: Day) -> int:
    try:
        return export_bytes(day)
    except ExportError:
        return 0  # The run says what is wrong with it.
