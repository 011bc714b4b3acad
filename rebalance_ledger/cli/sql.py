"""`ledger sql` and `ledger tables`: query the published tables, and list them.

Belongs here: options and output of the commands. Does not belong here: opening tables (`rebalance_ledger.warehouse.query`), and writing
values (`result_formats`).
"""

# The engines (duckdb, pyarrow, deltalake) take half a second to import, and the command line imports this module
# for its other commands too: so they are imported where they are used.
# ruff: noqa: PLC0415

from __future__ import annotations

import resource
import sys
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, Literal

import psutil  # type: ignore[import-untyped]  # it ships no types

from rebalance_ledger.cli.interruption import ended_at_once
from rebalance_ledger.cli.terminal import until_reader_leaves
from rebalance_ledger.printable import counted
from rebalance_ledger.suggestion import did_you_mean
from rebalance_ledger.warehouse.errors import NOT_IN_TIME, NoWarehouseError, QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date
    from pathlib import Path

    from rebalance_ledger.warehouse.cluster_day import ClusterDay
    from rebalance_ledger.warehouse.snapshot import Snapshot

_MOST_NAMES: Final = 10

OutputFormat = Literal["table", "csv", "json"]

TIME_LIMIT_S: Final = 300.0
"""Default time limit of a query."""

_LONGEST_LIMIT_S: Final = 1e9
"""A longer time limit is none: the system's calls that wait take no such number, and a thread that fails in one would watch nothing."""

_GRACE_S: Final = 2.0
"""For how long after its time duckdb may take to stop: one call of a function over one long value cannot be interrupted."""

_MOST_MEMORY_BYTES = 4 * 1024**3
"""Memory limit of the process: DuckDB's 2 GB, and the same for Arrow, Python and the output."""


def run_sql(
    query: str,
    *,
    output_format: OutputFormat,
    warehouse: str,
    timeout_s: float | None = None,
    conditions: Mapping[str, str | int | date] | None = None,
    as_of: date | None = None,
    compare_ds: date | None = None,
    output: Path | None = None,
) -> int:
    """Write the answer to a query to standard output or a file, and return the number of rows.

    Args:
        query: One SQL statement that reads.
        output_format: `table`, `csv` or `json`.
        warehouse: Root of the warehouse, a local path or a URI.
        timeout_s: Time limit in seconds; None for no limit.
        conditions: See `rebalance_ledger.warehouse.query.query`.
        as_of: See there.
        compare_ds: See there.
        output: A file, `.csv`, `.json` or `.parquet`, instead of standard output and `output_format`.

    Ctrl-C ends the process at once, with exit code 130.

    Raises:
        QueryError: what `rebalance_ledger.warehouse.query.query` raises; rows that were read before an error are written.
    """
    if timeout_s is not None and timeout_s > _LONGEST_LIMIT_S:
        timeout_s = None
    with ended_at_once(None if timeout_s is None else timeout_s + _GRACE_S, NOT_IN_TIME):
        from rebalance_ledger.cli.result_formats import WRITERS, CountedRows, check_output, write_file
        from rebalance_ledger.warehouse.query import query as answer

        if output is not None:
            check_output(output)
        with (
            _bounded_memory(),
            answer(
                warehouse,
                query,
                conditions=conditions,
                as_of=as_of,
                compare_ds=compare_ds,
                timeout_s=timeout_s,
            ) as result,
            until_reader_leaves(),
        ):
            if output is not None:
                return write_file(output, result)
            rows = CountedRows(result.rows)
            WRITERS[output_format](result.column_names, iter(rows), sys.stdout)
        return rows.count


def run_sql_by_cluster(query: str, warehouse: str) -> None:
    """Answer a query for one cluster after another, and write all rows as one table on standard output.

    Arrow keeps the metadata of every file that a query has read, some ten kilobytes each: with the days of all clusters at once
    that is gigabytes.

    Args:
        query: One SQL statement that reads; a row of its answer depends on one cluster alone.
        warehouse: The warehouse's root, a local path or a URI.

    Ctrl-C ends the process at once, with exit code 130.

    Raises:
        QueryError: As `run_sql`.
    """
    with ended_at_once(None, NOT_IN_TIME):
        from rebalance_ledger.cli.result_formats import write_table
        from rebalance_ledger.warehouse.query import open_tables
        from rebalance_ledger.warehouse.snapshot import Snapshot

        def rows_of(cluster: str) -> Iterator[tuple[Any, ...]]:
            with open_tables(snapshot, [query], cluster=cluster) as tables:
                yield from tables.query(query).rows

        with _bounded_memory(), until_reader_leaves():
            snapshot = Snapshot(warehouse)
            with open_tables(snapshot, [query], cluster="") as tables:
                names = tables.query(query).column_names
            clusters = sorted({day.cluster for day in snapshot.days})
            write_table(names, chain.from_iterable(map(rows_of, clusters)), sys.stdout)


def published_days_hint(
    warehouse: str, cluster: str | None = None, ds: date | None = None, group: str | None = None
) -> str:
    """Return a sentence for an answer without rows: what is published, and whether the cluster, day and group asked for are."""
    from rebalance_ledger.warehouse.snapshot import Snapshot

    snapshot = Snapshot(warehouse)
    days = snapshot.days
    clusters = sorted({day.cluster for day in days})
    if not clusters:
        return f"No rows: no day is published in {warehouse}."
    if cluster is not None and cluster not in clusters:
        near = get_close_matches(cluster, clusters, n=1, cutoff=0.5)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        return f"No rows: no day of cluster {cluster!r} is published.{meant} Published clusters: {', '.join(clusters[:_MOST_NAMES])}."
    of_clusters = [day for day in days if cluster is None or day.cluster == cluster]
    first, last = min(day.ds for day in of_clusters), max(day.ds for day in of_clusters)
    count = counted(len(of_clusters), "published day")
    span = f"{count} of {', '.join(sorted({day.cluster for day in of_clusters})[:_MOST_NAMES])}, {first}{'' if first == last else f' to {last}'}"
    if ds is not None and ds not in {day.ds for day in of_clusters}:
        return f"No rows: {ds} is not published. There {'is' if len(of_clusters) == 1 else 'are'} {span}."
    if group is not None:
        wanted = (
            snapshot.compared_days(None, None)[0] if ds is None else [day for day in days if day.ds == ds]
        )
        quarantined = _quarantined_days(snapshot, {day for day in wanted if day in of_clusters}, group)
        if quarantined:
            named = ", ".join(f"{day.ds} of {day.cluster}" for day in quarantined[:_MOST_NAMES])
            return f"No rows: {named} is published without group {group!r}, which is quarantined; `ledger explain` says why."
    return f"No rows in {span}."


def _quarantined_days(snapshot: Snapshot, days: set[ClusterDay], group: str) -> list[ClusterDay]:
    """Return those of some published days that are published without a group, which the gate has quarantined."""
    from rebalance_ledger.tables.gold.quarantined_group import QUARANTINED_GROUP
    from rebalance_ledger.warehouse.cluster_day import ClusterDay

    rows = snapshot.published(QUARANTINED_GROUP).rows(days, ["cluster", "ds", "consumer_group"])
    return sorted({ClusterDay(row["cluster"], row["ds"]) for row in rows if row["consumer_group"] == group})


def show_tables(warehouse: str, wanted: str | None = None) -> None:
    """Write tables, their columns, the views, and what is published on standard output.

    Args:
        warehouse: the warehouse's root, a local path or a URI; where there is none yet, the tables are shown
            without what is published.
        wanted: Name of one table or view, with or without its layer; None for all.

    Raises:
        QueryError: there is a warehouse and its publications cannot be read, or there is no such table.
    """
    from rich.console import Console
    from rich.text import Text

    from rebalance_ledger.tables import GOLD_TABLES, SILVER_TABLES
    from rebalance_ledger.warehouse.query import header_comment, views
    from rebalance_ledger.warehouse.snapshot import Snapshot

    tables = [
        table
        for table in (*GOLD_TABLES, *SILVER_TABLES)
        if wanted in {None, table.name, table.qualified_name}
    ]
    shown_views = {name: text for name, text in views().items() if wanted in {None, name, f"gold.{name}"}}
    if wanted is not None and not tables and not shown_views:
        names = [*(table.name for table in (*GOLD_TABLES, *SILVER_TABLES)), *views()]
        suggestion = did_you_mean(wanted.rpartition(".")[2], names, most=2, cutoff=0.6)
        raise QueryError(
            f"There is no table or view {wanted!r}: {suggestion or '`ledger tables` lists them.'}"
        )
    try:
        row_counts = Snapshot(warehouse).row_counts()
        status = f"Published in {warehouse}; docs/tables.md has the same list, docs/sql.md says how to ask."
    except NoWarehouseError as error:
        row_counts, status = {}, str(error)

    # Beside a terminal lines stay whole, so that they can be searched.
    console = Console(width=None if sys.stdout.isatty() else sys.maxsize, highlight=False, markup=False)
    with console.capture() as written:
        for table in tables:
            published = _published(row_counts.get(table.qualified_name, {}))
            console.print(
                Text.assemble(
                    (table.qualified_name, "bold"), f": one row per {table.grain}; ", (published, "dim")
                )
            )
            for column in table.all_columns:
                start = f"  {column.name:<24} {column.type:<20} "
                lines = wrap(
                    column.comment, console.width, initial_indent=start, subsequent_indent=" " * len(start)
                )
                console.print(Text("\n".join(lines)))
            console.print()
        for name, text in shown_views.items():
            console.print(Text.assemble((f"gold.{name}", "bold"), f" (view): {header_comment(text)}"))
        console.print(Text(f"\n{status}"))
    with until_reader_leaves():
        sys.stdout.write(written.get())


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """Let this process take so much more memory and no more, for as long as the block lasts.

    duckdb's own limit leaves out single values and what is handed over to Python: a list of a billion numbers would
    take all that the machine has, and the kernel would then end some process, not always this one.

    Raises:
        QueryError: Python needed more.
    """
    own_bytes = psutil.Process().memory_info().data
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = own_bytes + _MOST_MEMORY_BYTES
    limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([wanted, *limits]), hard))
    try:
        yield
    except MemoryError as error:
        raise QueryError(
            f"The answer needs more than {_MOST_MEMORY_BYTES} bytes of memory: narrow it, or aggregate."
        ) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _published(row_counts: Mapping[ClusterDay, int]) -> str:
    if not row_counts:
        return "nothing published"
    days = sorted({day.ds for day in row_counts})
    span = f"{days[0]}" if len(days) == 1 else f"{len(days)} days, {days[0]} to {days[-1]}"
    clusters = len({day.cluster for day in row_counts})
    return f"{counted(sum(row_counts.values()), 'row')} of {span}" + (
        f", {clusters} clusters" if clusters > 1 else ""
    )
