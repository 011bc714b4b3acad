"""`ledger ask`: the questions of `sql/questions`, by name and with options instead of SQL.

Belongs here: finding a question, and converting options to conditions on its answer. Does not belong here: running the query
(`rebalance_ledger.warehouse.query`) and writing its rows (`result_formats`).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rebalance_ledger.cli.sql import run_sql
from rebalance_ledger.suggestion import did_you_mean
from rebalance_ledger.warehouse.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from rebalance_ledger.cli.sql import OutputFormat
    from rebalance_ledger.warehouse.snapshot import Snapshot

_FOLDER: Final = Path(__file__).resolve().parents[2] / "sql" / "questions"
_OF_ONE_DAY: Final = re.compile(r"\b(?:latest|previous)\.")
_OF_TWO_DAYS: Final = re.compile(r"\bprevious\.")


def question_names() -> list[str]:
    """Return the names of all questions, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.sql"))


def question_sql(name: str) -> str:
    """Return the SQL of a question.

    Raises:
        QueryError: There is no question of this name.
    """
    names = question_names()
    if name not in names:
        advice = did_you_mean(name, names, most=3, cutoff=0.5) or "`ledger ask` lists them."
        raise QueryError(f"There is no question {name!r}: {advice}")
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")


def list_questions() -> None:
    """Write the name and the sentence of every question to standard output."""
    names = question_names()
    width = max(map(len, names))
    for name in names:
        sentence = question_sql(name).splitlines()[0].removeprefix("--").strip()
        sys.stdout.write(f"{name:<{width}}  {sentence}\n")


def ask(
    name: str,
    *,
    conditions: Mapping[str, str | int],
    ds: date | None,
    output_format: OutputFormat,
    warehouse: str,
    timeout_s: float | None,
    compare_ds: date | None = None,
    output: Path | None = None,
) -> int:
    """Write the answer to a question to standard output or a file, and return the number of rows.

    Args:
        name: Name of the question in `sql/questions`.
        conditions: Column of the answer -> its value.
        ds: The day; None for the newest published day of each cluster.
        output_format: `table`, `csv` or `json`.
        warehouse: Root of the warehouse, a local path or a URI.
        timeout_s: Time limit in seconds; None for no limit.
        compare_ds: The day to compare with; None for the newest earlier published day.
        output: See `run_sql`.

    Raises:
        QueryError: There is no such question, its answer has no such column, it does not compare days, a day would be compared with
            itself, or the query fails.
    """
    text = question_sql(name)
    if compare_ds is not None and not _OF_TWO_DAYS.search(text):
        comparing = [other for other in question_names() if _OF_TWO_DAYS.search(question_sql(other))]
        raise QueryError(f"The question {name} does not compare two days; {', '.join(comparing)} does.")
    if compare_ds is not None:
        from rebalance_ledger.warehouse.snapshot import Snapshot  # noqa: PLC0415  # the engines take time to import

        _check_days_differ(Snapshot(warehouse), conditions.get("cluster"), ds, compare_ds)
    of_one_day = _OF_ONE_DAY.search(text) is not None
    restricted = {**conditions, **({"ds": ds} if ds is not None and not of_one_day else {})}
    return run_sql(
        text,
        output_format=output_format,
        warehouse=warehouse,
        timeout_s=timeout_s,
        conditions=restricted,
        as_of=ds if of_one_day else None,
        compare_ds=compare_ds,
        output=output,
    )


def _check_days_differ(snapshot: Snapshot, cluster: object, ds: date | None, compare_ds: date) -> None:
    """Check that no cluster's day is compared with itself: the newest published day, unless `--ds` names another.

    Raises:
        QueryError: A day is the one that it is compared with.
    """
    days, _ = snapshot.compared_days(ds, compare_ds)
    same = sorted(day.cluster for day in days if day.ds == compare_ds and cluster in {None, day.cluster})
    if same:
        what = "the day of --ds" if ds is not None else f"the newest published day of {', '.join(same)}"
        raise QueryError(
            f"--compare-ds {compare_ds} is {what}, which would be compared with itself: name another published day"
            + ("." if ds is not None else ", or the day to show with --ds, or a cluster with --cluster.")
        )
