"""One day from its export to its report, with output for people: `ledger run`, and each day of `ledger backfill`.

Belongs here: the order of the steps, and their output. Does not belong here: the steps (`rebalance_ledger.pipeline.steps`).
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

from rebalance_ledger.pipeline import steps
from rebalance_ledger.printable import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.console import Console

    from rebalance_ledger.pipeline.day import Day


def publish_day(day: Day, console: Console, build: Callable[[], None], *, build_log: Path) -> None:
    """Verify, build, gate and publish one day.

    Args:
        day: The day.
        console: Console for progress, warnings and results.
        build: Computes and stages the day.
        build_log: The file with the output of the build.

    Raises:
        RefusedError: The gate refused the day.
        ExportError: The day has no export, or the export has changed since it was sealed.
        Exception: See the steps.
    """
    steps.check_writable(day.warehouse)
    with _step(console, "verify the export"):
        steps.verify(day)
    with _step(console, f"build: silver and gold, staged (log: {build_log})", has_bar=True):
        build()
    with _step(console, "gate"):
        verdict = steps.gate(day)
    with _step(console, "publish"):
        publication = steps.publish(day)
    for warning in verdict.warnings:
        console.print(f"warning: {warning}")
    changed = counted(len(publication.changed_tables), "table")
    console.print(
        f"{day.cluster} {day.ds} is published in {day.warehouse.root}: {counted(publication.row_count, 'row')}, "
        f"{changed} changed."
    )


def report_day(day: Day, console: Console) -> None:
    """Write the report of a published day, and print the number of problems.

    Raises:
        QueryError: The day is not published, or cannot be read.
        OSError: A file cannot be written.
    """
    with _step(console, "report"):
        page = steps.report(day)
    print_problems(day, console)
    console.print(f"Report: {page}", soft_wrap=True)


def print_problems(day: Day, console: Console) -> None:
    """Write the number of problems of the published day, and the command that lists them."""
    from rebalance_ledger.warehouse.query import query  # noqa: PLC0415  # duckdb takes time to import

    counted = (
        "SELECT count(*), severity, cluster FROM latest.finding WHERE root_finding_id IS NULL GROUP BY severity, cluster "
        "ORDER BY list_position(['critical', 'warning', 'info'], severity)"
    )
    of_cluster = {"cluster": day.cluster}
    with query(day.warehouse.root, counted, conditions=of_cluster, as_of=day.ds) as result:
        problems = ", ".join(f"{count} {severity}" for count, severity, _ in result.rows) or "none"
    console.print(
        f"Problems of the day: {problems}. Show them: ledger ask open_findings --cluster {quote(day.cluster)} --ds {day.ds} "
        f"--warehouse {quote(day.warehouse.root)}",
        soft_wrap=True,
    )


@contextmanager
def _step(console: Console, name: str, *, has_bar: bool = False) -> Iterator[None]:
    """Write the name of a step when it starts, and its duration when it ends; if there is a progress bar, after the bar."""
    start = time.monotonic()
    begin, rest = ("", f"{name} …") if has_bar and console.is_terminal else (f"{name} …", "")
    console.print(begin, end="", soft_wrap=True)
    try:
        yield
    except BaseException:
        console.print(f"{rest} failed", soft_wrap=True)
        raise
    console.print(f"{rest} {time.monotonic() - start:.1f} s", soft_wrap=True)
