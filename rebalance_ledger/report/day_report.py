"""The report of a published day: one page of HTML that loads nothing.

Belongs here: the order of the parts, the choice of groups, and the limits of the page. Does not belong here: queries (`sql/report`),
charts (`charts`) and the texts of finding pages (`docs/findings`).
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, FileSystemLoader
from markdown_it import MarkdownIt
from markupsafe import Markup

from rebalance_ledger.printable import visible
from rebalance_ledger.report import charts
from rebalance_ledger.report.published_day import check_group, find_day
from rebalance_ledger.report.queries import Query, Value, report_queries, report_query
from rebalance_ledger.tables import (
    ASSIGNMENT_CHURN,
    ASSIGNMENT_FAIRNESS,
    FINDING,
    OWNERSHIP_DRIFT,
    PUBLICATION,
    QUARANTINED_GROUP,
)
from rebalance_ledger.tables.vocabulary import FindingKind
from rebalance_ledger.warehouse.query import open_tables
from rebalance_ledger.warehouse.snapshot import Snapshot
from rebalance_ledger.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from jinja2 import Template

    from rebalance_ledger.warehouse.cluster_day import ClusterDay
    from rebalance_ledger.warehouse.query import OpenTables

_PAGE: Final = Path(__file__).parent / "page"
_FINDINGS: Final = Path(__file__).resolve().parents[2] / "docs" / "findings"
_KINDS: Final = frozenset(FindingKind)
_OF_ANOTHER_RELEASE: Final = Markup(
    "<p>Another release of rebalance-ledger has published this day, and this release does not have the kind.</p>"
)

MOST_PAGE_BYTES: Final = 2_000_000
"""Largest size of a page; `ledger report --group` shows groups that do not fit."""

_CLIENTS: Final = "day/clients"
"""Query of the clients with the most queues; it runs for their groups only, because waiting messages of all groups take seconds."""

_READ_ONCE: Final = (
    FINDING,
    QUARANTINED_GROUP,
    ASSIGNMENT_FAIRNESS,
    ASSIGNMENT_CHURN,
    OWNERSHIP_DRIFT,
    PUBLICATION,
)
"""Tables of which queries read the days before, too."""

_MOST_GROUPS: Final = 20
_MOST_LISTED_GROUPS: Final = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """A query with its rows.

    Attributes:
        query: The query.
        sql: Its statement with literals, as `ledger sql` takes it.
        rows: Column name -> value, in the order of the statement.
        columns: Names of the columns shown.
    """

    query: Query
    sql: str
    rows: list[dict[str, Any]]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """The part of the page about one group."""

    name: str
    anchor: str
    answers: dict[str, Answer]


def write_report(
    root: str, output: Path, *, cluster: str | None, ds: date | None, group: str | None
) -> ClusterDay:
    """Write the report of a published day and return the day.

    Args:
        root: Root of the warehouse, a local path or a URI.
        output: File to write; it appears whole or not at all.
        cluster: Name of the cluster; None if only one has published days.
        ds: UTC day; None for the newest published day.
        group: Show only this group in detail; None for the worst groups.

    Raises:
        QueryError: There is no such day or group, or the warehouse cannot be read.
        OSError: The file cannot be written.
    """
    snapshot = Snapshot(root)
    day = find_day(snapshot, cluster, ds)
    if group is not None:
        check_group(snapshot, day, group)
    page = render_report(snapshot, day, group)
    with whole_file(output) as draft:
        draft.write_text(page, encoding="utf-8")
    return day


def render_report(snapshot: Snapshot, day: ClusterDay, group: str | None) -> str:
    """Return the page of a published day as HTML, at most `MOST_PAGE_BYTES` long.

    Raises:
        QueryError: The warehouse cannot be read.
    """
    values: dict[str, Value] = {"cluster": day.cluster, "ds": day.ds}
    day_queries = {query.name: query for query in report_queries("day")}
    texts = {name: query.text(values) for name, query in day_queries.items()}
    of_clients = texts.pop(_CLIENTS)
    of_loaded_groups = report_query("most_loaded_groups").text(values)
    with open_tables(
        snapshot, [*texts.values(), of_loaded_groups], cluster=day.cluster, read_once=_READ_ONCE
    ) as tables:
        answers = {name: _answer(tables, day_queries[name], text) for name, text in texts.items()}
        loaded_groups = [row["consumer_group"] for row in tables.rows(of_loaded_groups)]
    every_group = [row["consumer_group"] for row in answers["day/groups"].rows]
    wanted = [group] if group is not None else every_group[:_MOST_GROUPS]
    group_queries = report_queries("group") if wanted else []
    group_texts = {query: query.text(values | {"groups": tuple(wanted)}) for query in group_queries}
    with open_tables(
        snapshot,
        [of_clients, *group_texts.values()],
        cluster=day.cluster,
        consumer_groups=sorted({*loaded_groups, *wanted}),
        read_once=_READ_ONCE,
    ) as tables:
        answers[_CLIENTS] = _answer(tables, day_queries[_CLIENTS], of_clients)
        groups = _groups(tables, group_texts, values, wanted)
    while True:
        page = _html(day, answers, groups, len(every_group), is_one_group=group is not None)
        if len(page.encode()) <= MOST_PAGE_BYTES or len(groups) <= 1:
            return page
        groups = groups[: len(groups) * 3 // 4]


def _groups(
    tables: OpenTables, texts: Mapping[Query, str], values: dict[str, Value], names: Sequence[str]
) -> list[_Group]:
    """Return the details of groups; each query runs once for all of them."""
    rows_of: dict[tuple[str, str], list[dict[str, Any]]] = {}
    columns: dict[str, tuple[str, ...]] = {}
    for query, text in texts.items():
        answer = _answer(tables, query, text)
        columns[query.name] = answer.columns
        for row in answer.rows:
            rows_of.setdefault((query.name, row["consumer_group"]), []).append(row)
    return [
        _Group(
            name,
            f"group-{number}",
            {
                query.name.rpartition("/")[2]: Answer(
                    query,
                    query.text(values | {"groups": (name,)}),
                    rows_of.get((query.name, name), []),
                    tuple(
                        column for column in columns[query.name] if column not in {"consumer_group", "arcs"}
                    ),
                )
                for query in texts
            },
        )
        for number, name in enumerate(names, start=1)
    ]


def _answer(tables: OpenTables, query: Query, text: str) -> Answer:
    result = tables.query(text)
    rows = [dict(zip(result.column_names, row, strict=True)) for row in result.rows]
    return Answer(query, text, rows, result.column_names)


def _html(
    day: ClusterDay,
    answers: Mapping[str, Answer],
    groups: Sequence[_Group],
    group_count: int,
    *,
    is_one_group: bool,
) -> str:
    style = (_PAGE / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    kinds = sorted(
        {row["kind"] for row in answers["day/findings"].rows}
        | {row["kind"] for group in groups for row in group.answers["findings"].rows}
    )
    history = answers["day/history"]
    anchors = {group.name: group.anchor for group in groups}
    return _template().render(
        day=day,
        style=Markup(style),  # noqa: S704  # a file of this package
        style_digest=digest,
        verdict=answers["day/verdict"],
        parts={name.rpartition("/")[2]: answer for name, answer in answers.items()},
        charts=charts,
        history_days=sorted({row["ds"] for row in history.rows}, reverse=True),
        history_cells={(row["consumer_group"], row["ds"]): row for row in history.rows},
        history_groups=list(dict.fromkeys(row["consumer_group"] for row in history.rows)),
        listed_groups=answers["day/groups"].rows[:_MOST_LISTED_GROUPS],
        groups=groups,
        group_count=group_count,
        anchors=anchors,
        has_baseline=any(row["baseline_ds"] is not None for row in answers["day/verdict"].rows),
        is_one_group=is_one_group,
        pages={kind: _finding_page(kind) for kind in kinds},
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_PAGE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = cell_text
    environment.filters["visible"] = visible
    return environment.get_template("report.html.j2")


def cell_text(value: object) -> str:
    """Return a value as the page shows it: `-` for null, list elements with commas, escapes for what does not print."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(cell_text, value)) if value else "-"
    return visible(str(value))


def _finding_page(kind: str) -> Markup:
    """Return the page of a kind from `docs/findings` as HTML; its links to other files become plain text."""
    if kind not in _KINDS:
        return _OF_ANOTHER_RELEASE
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    text = (_FINDINGS / f"{kind}.md").read_text(encoding="utf-8")
    tokens = markdown.parse(text.partition("\n")[2])
    for token in tokens:
        token.children = [
            child for child in token.children or () if child.type not in {"link_open", "link_close"}
        ] or token.children
    return Markup(markdown.renderer.render(tokens, markdown.options, {}))  # noqa: S704  # a file of this package
