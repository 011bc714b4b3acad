"""Parses a report as a browser does: tables, statements, attributes; and runs the statements."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from html.parser import HTMLParser

from rebalance_ledger.warehouse.query import query

NOT_SHOWN = {"consumer_group", "arcs"}
"""Columns of a group's queries that the page shows elsewhere: in the heading and in a chart."""


@dataclass
class ReportPage(HTMLParser):
    """The parts of a report that tests compare.

    Attributes:
        tables: (name of the query, cells by row) in the order of the page, without the header.
        statements: (name of the query, SQL) in the order of the page.
        tags: Every element with its attributes.
        text: All text.
        style: Content of the style element.
    """

    tables: list[tuple[str, list[list[str]]]] = field(default_factory=list)
    statements: list[tuple[str, str]] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""
    style: str = ""
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    @classmethod
    def of(cls, html: str) -> ReportPage:
        """Parse a page."""
        page = cls()
        page.feed(html)
        page.close()
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the element, and begin a table, row, cell or statement."""
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        self._open.append(tag)
        query = attributes.get("data-query")
        if tag == "table":
            self.tables.append((query or "", []))
        elif tag == "tr" and self.tables:
            self.tables[-1][1].append([])
        elif tag in {"td", "th"} and self.tables and self.tables[-1][1]:
            self.tables[-1][1][-1].append("")
        elif tag == "pre" and query:
            self.statements.append((query, ""))

    def handle_endtag(self, tag: str) -> None:
        """Close the element."""
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Add the text to the open cell or statement."""
        self.text += data
        if "style" in self._open:
            self.style += data
        if {"td", "th"} & set(self._open):
            self.tables[-1][1][-1][-1] += data
        elif "pre" in self._open and self.statements:
            query, sql = self.statements[-1]
            self.statements[-1] = (query, sql + data)


def shown(value: object) -> str:
    """Return a value as displayed in a cell."""
    match value:
        case None | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(shown, value))
        case _:
            return str(value).replace("\x1b", r"\x1b").replace("\u202e", r"\u202e")


def compare_tables_with_statements(root: str, page: ReportPage) -> int:
    """Run every statement of the page and compare its rows with the table of the same query; return the number of tables."""
    tables: dict[str, list[list[list[str]]]] = defaultdict(list)
    for name, rows in page.tables:
        tables[name].append([row for row in rows[1:] if row])
    count = 0
    for name, sql in page.statements:
        with query(root, sql) as result:
            hidden = NOT_SHOWN if name.startswith("group/") else set()
            positions = [at for at, column in enumerate(result.column_names) if column not in hidden]
            rows = [[shown(row[at]) for at in positions] for row in result.rows]
        if name in tables and rows:
            assert tables[name].pop(0) == rows, sql
            count += 1
    assert [name for name, unmatched in tables.items() if name and unmatched] == []
    return count
