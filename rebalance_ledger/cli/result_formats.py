"""Output formats for the rows of a query: a table for people, CSV for spreadsheets, JSON for programs.

Names from a cluster are untrusted, and appear on terminals and in spreadsheets. A cell is therefore never interpreted as markup, as a control
sequence of the terminal, or as a formula.

Does not belong here: the query (`rebalance_ledger.warehouse.query`).
"""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain, count, islice
from sys import getsizeof
from typing import TYPE_CHECKING, Any, TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from rebalance_ledger.printable import visible
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rebalance_ledger.warehouse.query import Result

TERMINAL_ROW_LIMIT = 1000
"""Largest number of rows in a table on a terminal; pipes, CSV and JSON have all rows."""

_MOST_ALIGNED_BYTES = 512 * 1024 * 1024
"""Largest answer in memory that is written as a table to a pipe or file."""

_UNLIMITED_CELLS = 1_000_000

_FORMULA_START = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters with which a formula of a spreadsheet can start, including full-width forms."""

_CSV_SPECIAL = re.compile(r'[",\r\n]|^\s|\s$')


def write_table(column_names: Sequence[str], rows: Iterator[tuple[Any, ...]], out: TextIO) -> None:
    """Write a table that fits the terminal, or is as wide as its values if `out` is not a terminal.

    Null is a dim `null`. Non-printing characters, including line breaks, are escapes. If the terminal is too narrow for the longest word of
    each column, each row is written as lines with name and value. Values are folded, never truncated.

    Raises:
        QueryError: The table is too large to be aligned in memory.
    """
    if not out.isatty():
        _write_aligned(column_names, list(_bounded(rows)), out)
        return
    console = Console(file=out, highlight=False, markup=False, emoji=False)
    shown = list(islice(rows, TERMINAL_ROW_LIMIT))
    grid = _grid(column_names, shown)
    if _width_without_broken_words(console, grid) <= console.width:
        console.print(grid)
    else:
        for number, row in enumerate(shown, start=1):
            console.print(_record(number, column_names, row))
    if next(rows, None) is None:
        console.print(_row_count(len(shown)))
    else:
        console.print(f"the first {len(shown)} rows; `--format csv` or `--format json` gives all")


def write_csv(column_names: Sequence[str], rows: Iterator[tuple[Any, ...]], out: TextIO) -> None:
    """Write CSV (RFC 4180) with a header.

    Null is empty, an empty string is `""`. Text that a spreadsheet would interpret as a formula is prefixed with `'`. Non-printing characters
    are escapes, except line breaks and tabs. Arrays and structs are JSON.
    """
    header = tuple(column_names)
    out.writelines(",".join(map(_csv_field, row)) + "\r\n" for row in chain([header], rows))


def write_json(column_names: Sequence[str], rows: Iterator[tuple[Any, ...]], out: TextIO) -> None:
    """Write an array of objects, one line each, while rows are read.

    Integers keep every digit, dates and times are ISO 8601, NaN and infinity are null. A repeated column name gets a number as suffix.
    """
    keys = _distinct(column_names)
    separator = "[\n"
    is_ascii = not _is_unicode(out)
    for row in rows:
        out.write(separator + _json(dict(zip(keys, row, strict=True)), is_ascii=is_ascii))
        separator = ",\n"
    out.write("[]\n" if separator == "[\n" else "\n]\n")


WRITERS: dict[str, Callable[[Sequence[str], Iterator[tuple[Any, ...]], TextIO], None]] = {
    "table": write_table,
    "csv": write_csv,
    "json": write_json,
}
"""The output formats by their name on the command line."""


class CountedRows:
    """Rows that are counted while they are read."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for row in self._rows:
            self.count += 1
            yield row


def check_output(output: Path) -> None:
    """Check that the suffix of a file is a format.

    Raises:
        QueryError: It does not end with `.csv`, `.json` or `.parquet`.
    """
    if output.suffix not in {".csv", ".json", ".parquet"}:
        raise QueryError(
            f"--output {output}: the name must end with .csv, .json or .parquet, which is the format."
        )


def write_file(output: Path, result: Result) -> int:
    """Write an answer to a file atomically, and return the number of rows.

    Args:
        output: The file; its suffix is the format.
        result: The answer.

    Raises:
        QueryError: The rows cannot be read.
        OSError: The file cannot be written.
    """
    with whole_file(output) as draft:
        if output.suffix == ".parquet":
            return _write_parquet(draft, result)
        rows = CountedRows(result.rows)
        with draft.open("w", encoding="utf-8", newline="") as out:
            WRITERS[output.suffix.removeprefix(".")](result.column_names, iter(rows), out)
        return rows.count


def _write_parquet(draft: Path, result: Result) -> int:
    from pyarrow import parquet  # noqa: PLC0415  # most answers are not written as Parquet

    row_count = 0
    with parquet.ParquetWriter(draft, result.schema) as writer:
        for batch in result.batches:
            writer.write_batch(batch)
            row_count += batch.num_rows
    return row_count


def _bounded(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows; raise if there are too many for the memory limit."""
    size_bytes = 0
    for row in rows:
        size_bytes += sum(getsizeof(value) for value in row)
        if size_bytes > _MOST_ALIGNED_BYTES:
            raise QueryError(
                f"The answer takes more than {_MOST_ALIGNED_BYTES} bytes, too many for an aligned table: narrow it, "
                "or take --format csv or --format json, which write rows as they come."
            )
        yield row


def _write_aligned(column_names: Sequence[str], rows: list[tuple[Any, ...]], out: TextIO) -> None:
    """Write values in aligned columns, without Rich, which takes seconds for large tables."""
    numeric = _numeric_columns(len(column_names), rows)
    lines = [[visible(name) for name in column_names]]
    lines += [["null" if value is None else visible(_plain_text(value)) for value in row] for row in rows]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(column_names))]
    rule = "─" if _is_unicode(out) else "-"
    lines.insert(1, [rule * width for width in widths])
    for line in lines:
        cells = (
            " " * (width - cell_len(cell)) + cell if is_numeric else cell + " " * (width - cell_len(cell))
            for cell, width, is_numeric in zip(line, widths, numeric, strict=True)
        )
        out.write("  ".join(cells).rstrip() + "\n")
    out.write(f"\n{_row_count(len(rows))}\n")


def _row_count(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _numeric_columns(column_count: int, rows: list[tuple[Any, ...]]) -> list[bool]:
    """Return whether the values of each column are numbers, which are right-aligned."""
    values = ([row[column] for row in rows if row[column] is not None] for column in range(column_count))
    return [
        bool(column)
        and all(isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in column)
        for column in values
    ]


def _grid(column_names: Sequence[str], rows: list[tuple[Any, ...]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name, is_numeric in zip(column_names, _numeric_columns(len(column_names), rows), strict=True):
        table.add_column(Text(visible(name)), justify="right" if is_numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def _width_without_broken_words(console: Console, grid: Table) -> int:
    """Return the smallest width in cells at which no word of a table is folded."""
    unlimited = console.options.update(max_width=_UNLIMITED_CELLS)
    return Measurement.get(console, unlimited, grid).minimum


def _record(number: int, column_names: Sequence[str], row: tuple[Any, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(f"row {number}", overflow="fold")
    table.add_column("", overflow="fold")
    for name, value in zip(column_names, row, strict=True):
        table.add_row(Text(visible(name)), _cell(value))
    return table


def _cell(value: object) -> Text:
    if value is None:
        return Text("null", style="dim")
    return Text(visible(_plain_text(value)))


def _csv_field(value: object) -> str:
    if value is None:
        return ""
    text = _plain_text(value)
    if isinstance(value, str):
        text = visible(text, keep="\r\n\t")
        text = f"'{text}" if text.startswith(_FORMULA_START) else text
    if not text or _CSV_SPECIAL.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def _is_unicode(out: TextIO) -> bool:
    """Return whether an output can show every character; text in memory has no charset and can."""
    return (out.encoding or "utf").lower().startswith("utf")


def _json(value: object, *, is_ascii: bool = False) -> str:
    """Return JSON that is safe for a terminal: only non-printing characters are escaped, or with `is_ascii` all beyond ASCII."""
    text = json.dumps(_json_value(value), ensure_ascii=is_ascii, allow_nan=False)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def _plain_text(value: object) -> str:
    plain = _json_value(value) if not isinstance(value, float | Decimal) else value
    if isinstance(plain, bool | list | dict) or plain is None:
        return _json(plain)
    return str(plain)


def _json_value(value: object) -> object:
    """Convert a value of a result to a JSON value."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return _json_number(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case list() | tuple():
            return [_json_value(element) for element in value]
        case dict():
            return {str(key): _json_value(element) for key, element in value.items()}
        case bytes():
            return value.hex()
        case _:
            return str(value)


def _json_number(value: Decimal) -> int | float | str:
    """Return a decimal as a number if no digit is lost, otherwise as text."""
    if value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    return nearest if Decimal(repr(nearest)) == value else str(value)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return unique names: a repeated name gets the first suffix number that makes it unique."""
    distinct: list[str] = []
    for name in names:
        candidates = (name if n == 1 else f"{name}_{n}" for n in count(1))
        distinct.append(next(candidate for candidate in candidates if candidate not in distinct))
    return distinct
