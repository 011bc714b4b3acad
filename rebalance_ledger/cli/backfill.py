"""`ledger backfill`: progress while days run, and the table of their outcomes.

Belongs here: output. Does not belong here: the choice of days (`rebalance_ledger.pipeline.backfill`), and the processes that run them
(`rebalance_ledger.pipeline.day_workers`).
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from itertools import chain
from typing import TYPE_CHECKING

from rich.console import Console

from rebalance_ledger.cli.build_progress import log_file
from rebalance_ledger.cli.day_run import report_day
from rebalance_ledger.cli.failures import BAD_INPUT, logged_failure
from rebalance_ledger.cli.terminal import echo
from rebalance_ledger.exports.manifest import export_directory
from rebalance_ledger.pipeline import steps
from rebalance_ledger.pipeline.backfill import (
    NO_EXPORT,
    NO_REPORT,
    PUBLISHED,
    backfill,
    days_to_run,
    exit_code_of,
    run_in_worker,
    write_progress,
)
from rebalance_ledger.pipeline.day_workers import DayWorker
from rebalance_ledger.printable import counted
from rebalance_ledger.result_file import write_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from datetime import date

    from rebalance_ledger.pipeline.backfill import DayOutcome
    from rebalance_ledger.pipeline.day import Day


def run_backfill(
    any_days: Sequence[Day],
    first: date,
    last: date,
    *,
    is_reversed: bool,
    is_published_skipped: bool,
) -> int:
    """Run a range of days of the clusters, write a line for each day, and return the exit code.

    Args:
        any_days: One day of each cluster, with the same exports, warehouse and settings.
        first: The first day.
        last: The last day, included.
        is_reversed: Whether to begin with the last.
        is_published_skipped: Whether days that are published and up to date are skipped.

    Raises:
        ExportError: A cluster's name cannot be that of an export; nothing is run.
        SettingsError: The settings file is wrong; nothing is run.
    """
    _check_names(any_days)
    settings = [day.settings for day in any_days]  # A wrong file would fail every day alike.
    steps.check_writable(any_days[0].warehouse)
    begin = time.monotonic()
    outcomes: list[DayOutcome] = []
    reports: list[Future[DayOutcome | None]] = []
    log = log_file(any_days[0].cluster, first, program="backfill")
    log.unlink(missing_ok=True)

    def days_of_next_clusters(position: int) -> Iterator[Day]:
        """Yield the days of the following clusters that can be computed together with those of a cluster."""
        for other, of_other in zip(any_days[position + 1 :], settings[position + 1 :], strict=True):
            if is_reversed or of_other.hypothetical != settings[position].hypothetical:
                return
            yield from days_to_run(other, first, last, is_published_skipped=is_published_skipped)

    # The report of a day is written beside the next day: this process only waits for the worker.
    with (
        ThreadPoolExecutor(1) as reporter,
        DayWorker(any_days[0], log, lambda line: write_progress(f"  {line}")) as worker,
    ):
        for position, day in enumerate(any_days):

            def run(one: Day, why: str, ahead: Iterable[Day], position: int = position) -> DayOutcome:
                outcome = run_in_worker(worker, one, why, chain(ahead, days_of_next_clusters(position)))
                if outcome.outcome == PUBLISHED:
                    reports.append(reporter.submit(report_published, one, outcome))
                return outcome

            outcomes += backfill(
                day,
                first,
                last,
                is_reversed=is_reversed,
                is_published_skipped=is_published_skipped,
                run=run,
            )
    outcomes += [failed for report in reports if (failed := report.result()) is not None]
    for outcome in outcomes:
        name = f"{outcome.cluster}  " if len(any_days) > 1 else ""
        echo(f"{name}{outcome.ds}  {outcome.outcome:<9}  {outcome.why:<9}  {outcome.reason}".rstrip())
    published = sum(outcome.outcome == PUBLISHED for outcome in outcomes)
    write_progress(f"{counted(published, 'day')} published in {time.monotonic() - begin:.1f} s.")
    code = exit_code_of(outcomes)
    if code:
        failures = (
            f"{one.cluster} {one.ds} {one.outcome}: {one.reason}" for one in outcomes if one.exit_code
        )
        write_result(reason="\n".join(failures) or "No day of the range has an export.")
    if code == BAD_INPUT and all(outcome.outcome == NO_EXPORT for outcome in outcomes):
        names = ", ".join(day.cluster for day in any_days)
        write_progress(
            f"No day from {first} to {last} has an export of {names} in {any_days[0].exports}: land one."
        )
    return code


def _check_names(days: Sequence[Day]) -> None:
    """Check the names of clusters before any day is run: an invalid one would end the days of the others too."""
    for day in days:
        export_directory(day.exports, day.cluster, day.ds)


def report_published(day: Day, published: DayOutcome) -> DayOutcome | None:
    """Write the report of a published day; return the reason of a failure, or None."""
    text = StringIO()
    try:
        report_day(day, Console(file=text, highlight=False, markup=False))
    except Exception as error:  # noqa: BLE001  # the other days are run, and this one is reported as failed
        failure = logged_failure(error)
        reason = f"The day is published, and its report was not written: {failure.sentence}"
        text.write(f"{reason}\n")
        return published._replace(outcome=NO_REPORT, exit_code=failure.exit_code, reason=reason)
    finally:
        for line in text.getvalue().splitlines():
            write_progress(f"  {day.cluster} {day.ds}: {line}")
    return None
