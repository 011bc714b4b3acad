"""`ledger backfill`: many days of one cluster, and after them the days that depend on what they changed.

Belongs here: which days, in which order, and what became of each. Does not belong here: the processes that run them
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
"""The outcome of a day that readers see."""

UP_TO_DATE: Final = "up to date"
"""The outcome of a day that was published before, from the same export, settings, code and baseline, and was not run."""

_OUTCOMES: Final = {_DONE: PUBLISHED, _BAD_INPUT: "bad input", _REFUSED: "refused"}
_WORST_FIRST: Final = (_CRASHED, _REFUSED, _BAD_INPUT, _DONE)
_REASON_LINES = 30  # a refusal names each failed expectation on a line of its own

ASKED_FOR: Final = "asked for"
"""Why a day of the range is computed; a later one has the reasons of `outdated_day`."""

NO_EXPORT: Final = "no export"
"""The outcome of a day of the range for which nothing has landed; no fault of its own."""


NO_REPORT: Final = "no report"
"""The outcome of a report that could not be written of a published day, beside the outcome of the day."""


class DayOutcome(NamedTuple):
    """What became of one day.

    Attributes:
        cluster: the cluster's name.
        ds: the day.
        why: why it was computed: it was asked for, or it was out of date, and how.
        outcome: `published`, `refused`, `bad input`, `crashed`, `no export`, `up to date`, or `no report`.
        exit_code: of its run.
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
    """Run each day of a range that has an export, then each later day that depends on what has changed.

    A day that fails does not stop the others: every day is computed from its own export, and one that was compared with an
    earlier day than it could have been is out of date and is computed again when that day is there. Those follow in order,
    so each is computed again once at most.

    Args:
        any_day: the cluster, and where its days are read and written.
        first: the first day.
        last: the last day, included.
        is_reversed: whether to begin with the last.
        run: computes a day, given why, and the later days that are run next.
        is_published_skipped: Whether days that are published and up to date are not run.

    Yields:
        One outcome for each run, as it ends, and for each day of the range without an export.
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
        # A day that is run before the day before it is not compared with that one.
        next_day = day.ds + timedelta(days=1)
        ahead = days_to_run(any_day, next_day, last, is_published_skipped=is_published_skipped)
        outcome = run(day, ASKED_FOR, () if is_reversed else ahead)
        published = None
        if outcome.exit_code != _DONE:
            failed.add(day.ds)
        yield outcome
    settled = first - timedelta(days=1)
    while True:
        # Computing a day again can put a later one out of date and none that is earlier.
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
    """Yield the days of a range that have an export, in order; those that are published and up to date only if they are not skipped."""
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
    """Return the worst exit code: a crash, then a refusal, then bad input; bad input too if no day had an export."""
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
