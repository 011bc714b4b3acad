"""`ledger explain`: one group on one screen, for a person on call.

Belongs here: layout on a terminal. Does not belong here: the queries (`sql/report/group`) and how tables are opened.
"""

from __future__ import annotations

import sys
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rebalance_ledger.printable import counted, visible
from rebalance_ledger.report.published_day import check_group, find_day
from rebalance_ledger.report.queries import Value, literal, report_queries, report_query
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.query import open_groups, open_tables
from rebalance_ledger.warehouse.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date

    from rebalance_ledger.warehouse.cluster_day import ClusterDay

_MISMATCHES: Final = ("multiple_owners", "unowned", "unexpected_owner")
_STYLE: Final = {"critical": "bold red", "warning": "bold yellow", "info": "bold"}
_MOST_FINDINGS: Final = 5
_MOST_ID_DIGITS: Final = 10
"""A queue id is an `int` of Java."""
_MOST_TOPICS: Final = 8
_MOST_MEMBERS: Final = 10
_MOST_QUEUES: Final = 12
_MOST_READERS: Final = 3
_WIDTH_OF_A_PIPE: Final = 100

Row = dict[str, Any]


def explain(
    group: str,
    *,
    topic: str | None,
    queue: str | None,
    cluster: str | None,
    ds: date | None,
    warehouse: str,
) -> None:
    """Write the explanation of a group to standard output.

    Args:
        group: Name of the consumer group.
        topic: Only this topic; None for all.
        queue: Only this queue, `BROKER:ID`, with its owners on earlier days; None for all.
        cluster: Name of the cluster; None if only one has published days.
        ds: UTC day; None for the newest published day.
        warehouse: Root of the warehouse, a local path or a URI.

    Raises:
        QueryError: There is no such day, group, topic or queue, or the warehouse cannot be read.
    """
    location = None if queue is None else _broker_and_id(queue)
    snapshot = Snapshot(warehouse)
    day = find_day(snapshot, cluster, ds)
    answers = _answers(snapshot, day, group, location)
    if not any(answers[name] for name in ("topics", "queues", "findings", "quarantine")):
        check_group(snapshot, day, group)
    console = Console(
        width=None if sys.stdout.isatty() else _WIDTH_OF_A_PIPE, highlight=False, markup=False, emoji=False
    )
    with console.capture() as screen:
        _Screen(console, day, group, warehouse).show(answers, topic, location)
    # Rich fills lines with spaces up to the width.
    sys.stdout.write("\n".join(line.rstrip() for line in screen.get().splitlines()) + "\n")


def _answers(
    snapshot: Snapshot, day: ClusterDay, group: str, location: tuple[str, int] | None
) -> dict[str, list[Row]]:
    # The screen counts rows, and filters them by topic and queue.
    queries = {
        query.name.rpartition("/")[2]: query.unlimited
        for query in report_queries("group")
        if query.name not in {"group/ownership_history", "group/ring"}
    }
    queries["verdict"] = report_query("day/verdict")
    values: dict[str, Value] = {"cluster": day.cluster, "ds": day.ds, "groups": (group,)}
    texts = {name: query.text(values) for name, query in queries.items()}
    with open_groups(snapshot, list(texts.values()), [group], day) as tables:
        answers = {name: tables.rows(text) for name, text in texts.items()}
    if location is not None:
        of_queue: dict[str, Value] = {"broker": location[0], "queue_id": location[1]}
        history = report_query("queue/days").unlimited.text(values | of_queue)
        with open_tables(snapshot, [history], consumer_groups=[group]) as tables:
            answers["days"] = tables.rows(history)
    return answers


def _broker_and_id(queue: str) -> tuple[str, int]:
    broker, separator, number = queue.rpartition(":")
    if not separator or not broker or not number.isdecimal() or len(number) > _MOST_ID_DIGITS:
        raise QueryError(f"--queue {queue!r} is not BROKER:ID, for example broker-a:3.")
    return broker, int(number)


class _Screen:
    """The parts of the explanation, in their order on the screen."""

    def __init__(self, console: Console, day: ClusterDay, group: str, warehouse: str) -> None:
        self._console = console
        self._day = day
        self._group = group
        of_cluster = f"--cluster {quote(day.cluster)}"
        in_warehouse = f"--ds {day.ds} --warehouse {quote(warehouse)}"
        self._of_day = f"{of_cluster} {in_warehouse}"
        self._options = f"{of_cluster} --group {quote(group)} {in_warehouse}"
        self._of_all_days = f"{of_cluster} --group {quote(group)} --warehouse {quote(warehouse)}"
        self._warehouse = warehouse

    def show(
        self, answers: dict[str, list[Row]], topic: str | None, location: tuple[str, int] | None
    ) -> None:
        """Write all parts.

        Raises:
            QueryError: The group has no such topic or queue.
        """
        is_wanted = self._filter(answers, topic, location)
        topics = [row for row in answers["topics"] if topic in {None, row["topic"]}]
        queues = [row for row in answers["queues"] if is_wanted(row)]
        findings = [row for row in answers["findings"] if topic is None or row["topic"] in {None, topic}]
        self._heading(answers, topics, queues)
        if answers["quarantine"] and not findings:
            self._title("Findings: unknown")
        else:
            self._findings(findings)
        self._topics(topics)
        self._queues(queues, has_all=location is not None)
        self._sharing([row for row in answers["sharing"] if is_wanted(row)])
        self._days(answers.get("days", []), topic, location)
        self._members(answers["members"])
        self._strategies(answers["strategies"])

    def _filter(
        self, answers: dict[str, list[Row]], topic: str | None, location: tuple[str, int] | None
    ) -> Callable[[Row], bool]:
        topics = sorted({row["topic"] for row in (*answers["topics"], *answers["queues"])})
        if topic is not None and topic not in topics:
            raise QueryError(
                f"Group {self._group!r} has no topic {topic!r} on {self._day.ds}; it has {', '.join(topics) or 'none'}."
            )

        def is_wanted(row: Row) -> bool:
            return topic in {None, row["topic"]} and location in {None, (row["broker_name"], row["queue_id"])}

        if location is not None and not any(map(is_wanted, answers["queues"])) and not answers["days"]:
            raise QueryError(
                f"Group {self._group!r} has no queue {location[0]}:{location[1]} on {self._day.ds}; "
                f"`ledger explain {quote(self._group)} {self._of_day}` lists its queues."
            )
        return is_wanted

    def _heading(self, answers: dict[str, list[Row]], topics: list[Row], queues: list[Row]) -> None:
        day, verdict, quarantine = self._day, answers["verdict"], answers["quarantine"]
        gate = f"gate: {verdict[0]['gate_verdict']}" if verdict else ""
        self._line(Text(visible(self._group), style="bold"), f" in {day.cluster} on {day.ds} (UTC), {gate}")
        if quarantine:
            ids = ", ".join(row["expectation_id"] for row in quarantine)
            self._line(
                Text("Quarantined", style="bold yellow"),
                f": the day is published without this group, because of {ids}.",
            )
            return
        if verdict and verdict[0]["approved_by"]:
            self._line(
                Text("Refused by the gate", style="bold yellow"),
                visible(
                    f", and published because {verdict[0]['approved_by']} approved it: {verdict[0]['approval_reason']}"
                ),
            )
        states = list(dict.fromkeys(map(_state, answers["states"]))) or ["state unknown"]
        client_counts = [row["client_count"] for row in answers["states"] if row["client_count"] is not None]
        members = counted(max(client_counts), "member") if client_counts else "members unknown"
        counts = ", ".join(
            f"{sum(row['state'] == state for row in queues)} {state}"
            for state in dict.fromkeys(row["state"] for row in queues)
        )
        self._line(
            f"{'; '.join(states)}; {members}; {counted(len({row['topic'] for row in (*topics, *queues)}), 'topic')}; {counted(len(queues), 'queue')}: {counts or 'none'}"
        )
        if not answers["topics"] and not answers["queues"]:
            self._line(
                "No topic of this group is known"
                + (
                    ": it has no members that subscribe to one, and no progress."
                    if states == ["offline"]
                    else "."
                )
            )

    def _findings(self, findings: list[Row]) -> None:
        roots = [row for row in findings if row["explained_by"] is None]
        self._title(f"Findings: {_finding_counts(roots, findings)}")
        if not findings:
            self._line("  None on this day.")
        for row in (roots or findings)[:_MOST_FINDINGS]:
            subject = " ".join(
                visible(row[name]) for name in ("topic", "broker_name", "client_id") if row[name]
            )
            cause = f", cause: {row['likely_cause']}" if row["likely_cause"] else ""
            self._line(
                Text(f"  {row['severity']} ", style=_STYLE[row["severity"]]),
                Text(row["kind"], style="bold"),
                f" {subject}{cause}",
            )
            days = (
                f"since {row['since']} ({counted(row['day_count'], 'published day')})"
                if row["since"]
                else "since when is unknown"
            )
            self._block(row["evidence"] + f" [{days}]")
            self._block("Do: " + row["advice"])
            self._block(f"Page: {row['page']}")
        of_roots = f"ledger ask open_findings {self._options}"
        of_others = self._sql("severity, kind, topic, broker_name, client_id, evidence, advice", "finding")
        self._more(len(roots or findings), _MOST_FINDINGS, of_roots if roots else of_others)

    def _topics(self, topics: list[Row]) -> None:
        if not topics:
            return
        self._title("Strategy and fairness")
        table = _table("topic", "strategy", "because", ">queues", ">per client", ">max/mean")
        for row in topics[:_MOST_TOPICS]:
            least, most = row["min_queues_per_client"], row["max_queues_per_client"]
            spread = None if least is None and most is None else f"{_number(least)} to {_number(most)}"
            table.add_row(
                *map(
                    _cell,
                    (
                        row["topic"],
                        row["strategy"],
                        _because(row),
                        row["queue_count"],
                        spread,
                        row["max_over_mean"],
                    ),
                )
            )
        self._table(table)
        columns = "topic, strategy, strategy_source, queue_count, min_queues_per_client, max_queues_per_client, max_over_mean"
        self._more(
            len(topics),
            _MOST_TOPICS,
            self._sql(columns, "assignment_fairness", "AND is_effective ORDER BY topic"),
        )

    def _queues(self, queues: list[Row], *, has_all: bool) -> None:
        shown = queues if has_all else [row for row in queues if row["state"] in {*_MISMATCHES, "unknown"}]
        if not shown:
            if queues:
                self._title("Queues: no mismatch and no unknown owner")
            return
        self._title(
            "Queue"
            if has_all
            else f"Queues with a mismatch or an unknown owner: {len(shown)} of {len(queues)}"
        )
        alike: dict[tuple[str, ...], list[int]] = {}
        for row in shown:
            place = f"{row['topic']} {row['broker_name']}"
            alike.setdefault((row["state"], place, _owners(row), _why(row)), []).append(row["queue_id"])
        for (state, place, owners, why), queue_ids in list(alike.items())[:_MOST_QUEUES]:
            self._line("  ", Text(state, style="bold"), f"{why}: {place}:{_ranges(queue_ids)}")
            self._block(owners)
        self._more(len(alike), _MOST_QUEUES, f"ledger ask queue_history {self._options}")

    def _sharing(self, sharing: list[Row]) -> None:
        if not sharing:
            return
        self._title(f"Queues that members pop: {len(sharing)}")
        table = _table("topic", "broker", "queues", "may be read by", ">ready", ">in flight at most")
        alike: dict[tuple[str, ...], list[Row]] = {}
        for row in sharing:
            readers = row["possible_readers"]
            shown = (
                _ids(readers)
                if readers is None or len(readers) <= _MOST_READERS
                else counted(len(readers), "member")
            )
            alike.setdefault((row["topic"], row["broker_name"], shown), []).append(row)
        for (topic, broker, readers), rows in list(alike.items())[:_MOST_QUEUES]:
            queues = _ranges(sorted(row["queue_id"] for row in rows))
            counts = (_sum(rows, "ready_count"), _sum(rows, "in_flight_count_at_most"))
            table.add_row(*map(_cell, (topic, broker, queues, readers, *map(_number, counts))))
        self._table(table)
        self._more(len(alike), _MOST_QUEUES, f"ledger ask shared_queues {self._options}")

    def _days(self, days: list[Row], topic: str | None, location: tuple[str, int] | None) -> None:
        wanted = [row for row in days if topic in {None, row["topic"]}]
        if not wanted or location is None:
            return
        self._title("Owners of the queue by day")
        for row in wanted[:_MOST_QUEUES]:
            self._line(f"  {row['ds']} ", Text(row["state"], style="bold"), f"{_why(row)}: {row['topic']}")
            self._block(_owners(row))
        of_queue = f"--broker {quote(location[0])} --queue {location[1]}"
        self._more(len(wanted), _MOST_QUEUES, f"ledger ask queue_history {self._of_all_days} {of_queue}")

    def _members(self, members: list[Row]) -> None:
        if not members:
            return
        self._title(f"Members: {len(members)}")
        table = _table("client", "release", "reports", ">owns", ">should own", ">lag")
        for row in members[:_MOST_MEMBERS]:
            is_silent = row["observed_queue_count"] is None
            cells = (
                ", ".join(row["releases"]) or "unknown",
                ", ".join(row["reported_strategies"]) or ("unknown" if is_silent else "no strategy"),
            )
            counts = (row["observed_queue_count"], row["expected_queue_count"], row["lag_count"])
            table.add_row(*map(_cell, (row["client_id"], *cells, *map(_number, counts))))
        self._table(table)
        columns = "client_id, observed_queue_count, expected_queue_count, lag_count"
        self._more(len(members), _MOST_MEMBERS, self._sql(columns, "client_load", "ORDER BY client_id"))

    def _strategies(self, strategies: list[Row]) -> None:
        if len(strategies) < 2:  # noqa: PLR2004  # one strategy has nothing to be compared with
            return
        self._title("Strategies compared")
        table = _table("strategy", ">unowned", ">idle clients", ">max/mean", ">queues that move")
        for row in strategies:
            name = f"{row['strategy']} (in effect)" if row["is_effective"] else row["strategy"]
            columns = ("unowned_queue_count", "idle_client_count", "max_over_mean", "moved_queue_count")
            table.add_row(*map(_cell, (name, *(_number(row[column]) for column in columns))))
        self._table(table)

    def _title(self, text: str) -> None:
        self._console.print()
        self._console.print(Text(text, style="bold underline"))

    def _line(self, *parts: str | Text) -> None:
        self._console.print(
            Text.assemble(*(visible(part) if isinstance(part, str) else part for part in parts))
        )

    def _block(self, text: str) -> None:
        self._console.print(Padding(Text(visible(text)), (0, 0, 0, 4)))

    def _table(self, table: Table) -> None:
        self._console.print(Padding(table, (0, 0, 0, 2)))

    def _sql(self, columns: str, table: str, rest: str = "") -> str:
        """Return the command that lists the rows of the group in a table or view on the day."""
        of_day = f"cluster = {literal(self._day.cluster)} AND ds = {literal(self._day.ds)}"
        condition = f"{of_day} AND consumer_group = {literal(self._group)} {rest}".rstrip()
        statement = _in_quotes(f"SELECT {columns} FROM {table} WHERE {condition}")  # noqa: S608  # printed, with literals
        return f"ledger sql {statement} --warehouse {quote(self._warehouse)}"

    def _more(self, count: int, most: int, command: str) -> None:
        """Write how many rows are not shown, and the command that lists all; in one line, so that it can be copied."""
        if count > most:
            self._console.print(Text(visible(f"  … {count - most} more: {command}")), soft_wrap=True)


def _in_quotes(statement: str) -> str:
    """Return a statement quoted for the shell: in double quotes if these change nothing, since SQL has single ones."""
    return quote(statement) if set(statement) & set('$`"\\!') else f'"{statement}"'


def _table(*names: str) -> Table:
    """Return a table with columns; a name that starts with `>` has its values on the right."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in names:
        is_number = name.startswith(">")
        table.add_column(name.removeprefix(">"), justify="right" if is_number else "left", overflow="fold")
    return table


def _cell(value: object) -> Text:
    return Text(visible("unknown" if value is None else str(value)))


def _number(value: object) -> str:
    return "unknown" if value is None else str(value)


def _sum(rows: Sequence[Row], column: str) -> int | None:
    """Return the sum of a column, None if a value is unknown."""
    values = [row[column] for row in rows]
    return None if None in values else sum(values)


def _ids(client_ids: Sequence[str] | None) -> str:
    if client_ids is None:
        return "unknown"
    return ", ".join(client_ids) or "no client"


def _owners(row: Row) -> str:
    if row["state"] == "shared":
        return f"popped by {_ids(row['observed_owners'] or None)}; members share it"
    # Without an owner in the export: only a queue that is not `unknown` has none.
    is_unknown = row["ownership"] == "unknown" and not row["observed_owners"]
    return f"owned by {'unknown' if is_unknown else _ids(row['observed_owners'])}; should be owned by {_ids(row['expected_owners'])}"


def _why(row: Row) -> str:
    why = row["likely_cause"] or row.get("reason")
    return f" ({why})" if why else ""


def _ranges(numbers: list[int]) -> str:
    """Return ascending numbers as ranges: `0-2,5`."""
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return ",".join(
        f"{start}" if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)
    )


def _finding_counts(roots: Sequence[Row], findings: Sequence[Row]) -> str:
    """Return the number of findings, and of those that others explain: of the same group, or of another subject."""
    explained = [row for row in findings if row["explained_by"] is not None]
    elsewhere = [row for row in explained if not row["is_root_of_group"]] if roots else explained
    kinds = ", ".join(sorted({row["root_kind"] or row["explained_by"] for row in elsewhere}))
    if not roots:
        return f"{len(findings)}, explained by {kinds}" if findings else "0"
    parts = [f"{len(explained) - len(elsewhere)} that these explain"] * (len(explained) > len(elsewhere))
    parts += [f"{len(elsewhere)} explained by {kinds}"] * bool(elsewhere)
    return f"{len(roots)} (and {', '.join(parts)})" if parts else f"{len(roots)}"


def _because(row: Row) -> str:
    match row["strategy_source"]:
        case "observed":
            return f"{_number(row['reporting_client_count'])} of {_number(row['client_count'])} members report it"
        case "configured":
            return "the settings file names it"
        case _:
            return "computed to compare"


def _state(row: Row) -> str:
    reason = row["group_state_reason"]
    return f"{row['group_state']} ({reason})" if reason else str(row["group_state"])
