"""The queries of `sql/report`, `sql/metrics` and `sql/notification`: their text with the values of a cluster, day and group.

Belongs here: names, titles and texts of queries. Does not belong here: their answers (`day_report`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

Value = str | int | date | tuple[str, ...]
"""A value of a parameter; several texts stand for the elements of an IN list."""

_SQL: Final = Path(__file__).resolve().parents[2] / "sql"
_PARAMETER: Final = re.compile(r"\$(\w+)")
_MOST_ROWS: Final = re.compile(
    r"(?:(?<=LIMIT )|(?<=\) <= ))\d+(?=\s*(?:\Z|ORDER BY(?:(?!\bFROM\b).)*\Z))", re.DOTALL
)
_EVERY_ROW: Final = str(2**62)


@dataclass(frozen=True, slots=True)
class Query:
    """A query of `sql/report`.

    Attributes:
        name: Path below `sql/report` without suffix, for example `day/findings`.
        title: First line of its comment.
        notes: The other lines of its comment, as one line; empty if there are none.
        body: The statement below the comment, with `$cluster`, `$ds` and `$groups`.
    """

    name: str
    title: str
    notes: str
    body: str

    @property
    def most_rows(self) -> int | None:
        """The number of rows at which the statement ends, for each group if there are several; None without a limit."""
        match = _MOST_ROWS.search(self.body)
        return int(match[0]) if match else None

    @property
    def unlimited(self) -> Query:
        """The query with all of its rows, for callers that count them."""
        return replace(self, body=_MOST_ROWS.sub(_EVERY_ROW, self.body))

    def text(self, values: Mapping[str, Value]) -> str:
        """Return the statement with its parameters as literals, ready for `ledger sql`.

        Args:
            values: Name of a parameter -> its value.

        Raises:
            KeyError: A parameter has no value.
        """
        return _PARAMETER.sub(lambda match: literal(values[match[1]]), self.body)


@cache
def report_query(name: str) -> Query:
    """Read a query of `sql/report`, by its path below that folder."""
    return _read("report", name)


def report_queries(folder: str) -> list[Query]:
    """Return the queries of one folder of `sql/report`, `day` or `group`, sorted by name."""
    paths = sorted((_SQL / "report" / folder).glob("*.sql"))
    return [report_query(f"{folder}/{path.stem}") for path in paths]


def metric_queries() -> list[Query]:
    """Return the queries of `sql/metrics`, sorted by name."""
    return [_read("metrics", path.stem) for path in sorted((_SQL / "metrics").glob("*.sql"))]


def notification_query(name: str) -> Query:
    """Read a query of `sql/notification`."""
    return _read("notification", name)


def _read(folder: str, name: str) -> Query:
    lines = (_SQL / folder / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    comment = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
    body = "\n".join(line for line in lines if not line.startswith("--"))
    return Query(name, comment[0], " ".join(comment[1:]).strip(), body)


def literal(value: Value) -> str:
    """Return a value as a literal of SQL, without characters that do not print."""
    if isinstance(value, tuple):
        return ", ".join(map(literal, value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    # Characters that do not print are calls of chr, so that the text can be copied from a page or a terminal.
    parts = [
        "'" + "".join(chars).replace("'", "''") + "'"
        if is_printable
        else " || ".join(f"chr({ord(char)})" for char in chars)
        for is_printable, chars in groupby(value, str.isprintable)
    ]
    return f"({' || '.join(parts)})" if len(parts) > 1 or not value.isprintable() else "".join(parts) or "''"
