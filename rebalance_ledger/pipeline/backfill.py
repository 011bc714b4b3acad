"""`ledger backfill`: many days of one cluster, and after them the days that depend on what they changed.

Belongs here: which days, in which order, and what became of each. Does not belong here: what a day's run does (`ledger run`, in a
process of its own, so that a crash takes one day with it), and which days are out of date (`rebalance_ledger.pipeline.outdated`).
"""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.exports.manifest import MANIFEST_NAME, export_directory
from rebalance_ledger.pipeline.outdated import stale_days

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date

    from rebalance_ledger.pipeline.steps import Day

_ROOT = Path(__file__).resolve().parents[2]
_DONE, _CRASHED, _BAD_INPUT, _REFUSED = 0, 1, 2, 3

_OUTCOMES: Final = {_DONE: "published", _BAD_INPUT: "bad input", _REFUSED: "refused"}
_WORST_FIRST: Final = (_CRASHED, _REFUSED, _BAD_INPUT, _DONE)
_REASON_LINES = 30  # a refusal names each failed expectation on a line of its own

ASKED_FOR: Final = "asked for"
"""Why a day of the range is computed; a later one has the reasons of `outdated_day`."""

NO_EXPORT: Final = "no export"
"""The outcome of a day of the range for which nothing has landed; no fault of its own."""


class DayOutcome(NamedTuple):
    """What became of one day.

    Attributes:
        ds: the day.
        why: why it was computed: it was asked for, or it was out of date, and how.
        outcome: `published`, `refused`, `bad input`, `crashed`, or `no export`.
        exit_code: of its run.
        reason: The last output of the run; empty if the day was published.
    """

    ds: date
    why: str
    outcome: str
    exit_code: int
    reason: str


def backfill(
    any_day: Day, first: date, last: date, *, is_reversed: bool, run: Callable[[Day, str], DayOutcome]
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
        run: computes a day, given why.

    Yields:
        One outcome for each run, as it ends, and for each day of the range without an export.
    """
    days = [replace(any_day, ds=first + timedelta(days=number)) for number in range((last - first).days + 1)]
    failed = set()
    for day in reversed(days) if is_reversed else days:
        if not _has_export(day):
            yield DayOutcome(day.ds, ASKED_FOR, NO_EXPORT, _DONE, "")
            continue
        outcome = run(day, ASKED_FOR)
        if outcome.exit_code != _DONE:
            failed.add(day.ds)
        yield outcome
    settled = first - timedelta(days=1)
    while True:
        # Computing a day again can put a later one out of date and none that is earlier.
        due = [
            stale
            for stale in stale_days(any_day.warehouse, any_day.cluster, any_day.exports)
            if stale.ds > settled and stale.ds not in failed
        ]
        if not due:
            return
        settled, why = due[0].ds, ", ".join(due[0].reasons)
        day = replace(any_day, ds=settled)
        # What was published of an export that is gone stays as it is, and marked.
        yield run(day, why) if _has_export(day) else DayOutcome(settled, why, NO_EXPORT, _DONE, "")


def _has_export(day: Day) -> bool:
    return (export_directory(day.exports, day.cluster, day.ds) / MANIFEST_NAME).is_file()


def exit_code_of(outcomes: list[DayOutcome]) -> int:
    """Return the worst exit code: a crash, then a refusal, then bad input; bad input too if no day had an export."""
    if all(outcome.outcome == NO_EXPORT for outcome in outcomes):
        return _BAD_INPUT
    codes = {outcome.exit_code for outcome in outcomes}
    return next(code for code in _WORST_FIRST if code in codes)


def run_in_process(day: Day, why: str) -> DayOutcome:
    """`ledger run` of one day, in a process of its own, whose words go to standard error."""
    sys.stderr.write(f"{day.cluster} {day.ds} ({why})\n")
    command = [
        sys.executable,
        "-m",
        "rebalance_ledger.cli.app",
        "run",
        f"--cluster={day.cluster}",
        f"--ds={day.ds}",
        f"--exports={day.exports}",
        f"--warehouse={day.warehouse.root}",
        *([f"--settings={day.settings_file.resolve()}"] if day.settings_file else []),
    ]
    output: deque[str] = deque(maxlen=_REASON_LINES)
    with subprocess.Popen(  # noqa: S603  # an argument list, never a shell
        command, cwd=_ROOT, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        for line in process.stderr or ():
            sys.stderr.write(f"  {line}")
            sys.stderr.flush()
            output.append(line.strip())
    code = process.returncode if process.returncode in {_DONE, _BAD_INPUT, _REFUSED} else _CRASHED
    reason = "" if code == _DONE else _failure_reason([line for line in output if line])
    return DayOutcome(day.ds, why, _OUTCOMES.get(code, "crashed"), code, reason)


def _failure_reason(output: list[str]) -> str:
    """Return the output after the last failed step, or the last line if no step failed."""
    ends = [number for number, line in enumerate(output) if line.endswith(" failed")]
    return " ".join(output[ends[-1] + 1 :]) if ends and ends[-1] + 1 < len(output) else "".join(output[-1:])
