"""SQL over the published tables without a JVM: deltalake opens them, and DuckDB runs the query.

The connection can only read the tables of one snapshot: no files, network, extensions or settings, and only one statement that reads.

Does not belong here: the output of rows (`rebalance_ledger.cli.sql`), and the version of a table that a reader sees (`snapshot`).
"""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_ledger.suggestion import did_you_mean
from rebalance_ledger.tables import ALL_TABLES, GOLD_TABLES, SILVER_TABLES
from rebalance_ledger.tables.gold.finding import FINDING
from rebalance_ledger.tables.gold.gate_result import GATE_RESULT
from rebalance_ledger.warehouse.damage import damage_sentence, find_damage
from rebalance_ledger.warehouse.data_files import connect_reader
from rebalance_ledger.warehouse.errors import NOT_IN_TIME, QueryError, one_line
from rebalance_ledger.warehouse.sandbox import SANDBOX_CONFIG, connect
from rebalance_ledger.warehouse.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import date

    import pyarrow.dataset as pads

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.cluster_day import ClusterDay
    from rebalance_ledger.warehouse.snapshot import PublishedTable

__all__ = ["OpenTables", "QueryError", "Result", "header_comment", "open_tables", "query", "views"]

QUARANTINE = "quarantine"
"""The schema of the verdicts that refused a day."""

LATEST, PREVIOUS = "latest", "previous"
"""Schemas with every table and view for one day of each cluster: its newest published day, and the newest one before that. They
select files, so a query reads only that day; a join with a subquery for the newest day would read all days."""

_VIEW_FOLDER = Path(__file__).resolve().parents[2] / "sql" / "views"

_GROUP = "consumer_group"
_TOPIC = "topic"

_BATCH_ROW_COUNT = 1000

_INTERRUPT_AGAIN_S = 0.05

_WORD = re.compile(r"\w+")
_OF_CHOSEN_DAYS = re.compile(rf'"?\b({LATEST}|{PREVIOUS})\b"?\s*\.\s*"?\w+"?', re.IGNORECASE)
_BEFORE_DETAILS = re.compile(r"\n\n|\n\* SET |\. Detail:")
_OF_A_FILE = re.compile(r"stream registered as|arrow_scan|get_next|IOError|Parquet|Python exception")
"""Text of errors raised by the scan of a file, not by the query."""

_NAMES = frozenset({"consumer_group", "topic", "broker_name", "client_id", "strategy"})

_UNKNOWN_TABLE = re.compile(r"Table with name (?P<name>.+?) does not exist")


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to a query.

    Attributes:
        column_names: Names in the query, possibly repeated. EXPLAIN has one, `plan`, and a row per line.
        rows: Rows in Python's types (numbers, `str`, `bool`, `date`, `datetime` in UTC, `Decimal`, `list`, `dict`, …). They can be
            iterated once, and are read a batch at a time.
        batches: The same rows as Arrow record batches, to be read instead of `rows`.
        schema: Schema of the batches.
    """

    column_names: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    batches: Iterator[pa.RecordBatch]
    schema: pa.Schema


def views() -> dict[str, str]:
    """Return the views of `sql/views`, name -> text; each is one SELECT after a comment that describes a row."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(_VIEW_FOLDER.glob("*.sql"))}


def header_comment(view_text: str) -> str:
    """Return the comment above a view as one line."""
    return " ".join(
        line.removeprefix("--").strip() for line in view_text.splitlines() if line.startswith("--")
    )


@contextmanager
def query(
    root: str,
    text: str,
    *,
    conditions: Mapping[str, str | int | date] | None = None,
    as_of: date | None = None,
    compare_ds: date | None = None,
    cluster: str | None = None,
    timeout_s: float | None = None,
) -> Iterator[Result]:
    """Run one SQL query over the published tables of a warehouse.

    Args:
        root: Root of the warehouse, a local path or a URI.
        text: One statement that reads: SELECT, WITH, FROM, VALUES, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN.
        conditions: Column of the answer -> its value; rows with other values are excluded.
        as_of: The day that the schema `latest` shows instead of each cluster's newest one; `previous` shows the day before it.
        compare_ds: The day that the schema `previous` shows instead.
        cluster: The cluster whose days the tables show; None for all. No file of another cluster is read.
        timeout_s: Time limit in seconds; None for no limit.

    Yields:
        The result; its rows can be read inside the `with` block.

    Raises:
        QueryError: There is no warehouse, the text has several statements or one that does not read, the query has an error, the answer
            does not have the column of a condition, or the time limit is exceeded. This is also raised while rows are read.
    """
    with open_tables(
        root, [text], as_of=as_of, compare_ds=compare_ds, cluster=cluster, timeout_s=timeout_s
    ) as tables:
        yield tables.query(text, conditions)


class OpenTables:
    """One snapshot of the published tables, open for several queries."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        statements: Mapping[str, duckdb.Statement],
        read: Collection[pads.Dataset],
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._read = read

    def query(self, text: str, conditions: Mapping[str, str | int | date] | None = None) -> Result:
        """Start one of the queries; its rows are readable until the next one starts.

        Raises:
            QueryError: As `query`; also while the rows are read.
        """
        statement = self._statements[text]
        with _as_query_error(self._read):
            relation = _restricted(self._connection.sql(statement), conditions or {})
            reader = relation.to_arrow_reader(_BATCH_ROW_COUNT)
        if statement.type == duckdb.StatementType.EXPLAIN:
            lines = ((line,) for _, plan in _rows(reader, self._read) for line in plan.splitlines())
            return Result(("plan",), lines, _batches(reader, self._read), reader.schema)
        names = tuple(reader.schema.names)
        return Result(names, _rows(reader, self._read), _batches(reader, self._read), reader.schema)

    def rows(self, text: str) -> list[dict[str, Any]]:
        """Return all rows of one of the queries, each as column name -> value.

        Raises:
            QueryError: As `query`.
        """
        result = self.query(text)
        return [dict(zip(result.column_names, row, strict=True)) for row in result.rows]


@contextmanager
def open_tables(
    warehouse: str | Snapshot,
    texts: Collection[str],
    *,
    as_of: date | None = None,
    compare_ds: date | None = None,
    cluster: str | None = None,
    consumer_groups: Collection[str] | None = None,
    read_once: Collection[Table] = (),
    timeout_s: float | None = None,
) -> Iterator[OpenTables]:
    """Open the tables that several queries name, all at the same snapshot.

    Args:
        warehouse: Its root, or a snapshot of it.
        texts: The queries, each one statement that reads.
        as_of: See `query`.
        compare_ds: See `query`.
        cluster: See `query`.
        consumer_groups: The groups whose rows the tables show, so that views do not compute the others; None for all. All findings
            are shown, because a finding of a group may be explained by one without a group.
        read_once: Tables of whose history several queries read all days: if it is small, it is read into memory first, because opening
            a file takes longer than reading its few rows.
        timeout_s: After how many seconds the queries together are aborted; None for no limit.

    Raises:
        QueryError: As `query`.
    """
    with closing(_closed_connection()) as connection:
        statements = {text: _one_reading_statement(connection, text) for text in texts}
        snapshot = _snapshot_of(warehouse, cluster)
        all_days, *chosen_days = (
            [day for day in days if cluster in {None, day.cluster}]
            for days in (snapshot.days, *snapshot.compared_days(as_of, compare_ds))
        )
        read = _register(
            connection, snapshot, "\n".join(texts), all_days, chosen_days, consumer_groups, read_once
        )
        connection.execute("SET lock_configuration = true")
        with _interrupted_after(timeout_s, connection):
            yield OpenTables(connection, statements, read)


@contextmanager
def open_groups(
    warehouse: str | Snapshot, texts: Collection[str], groups: Collection[str], day: ClusterDay
) -> Iterator[OpenTables]:
    """Open the rows of some groups and their topics on one day, and read them once for all queries; other tables have all rows.

    Args:
        warehouse: Its root, or a snapshot of it.
        texts: Queries that name every column that they or the views need, because the tables have no others.
        groups: Names of the groups.
        day: The published day.

    Raises:
        QueryError: As `query`.
    """
    with closing(_closed_connection()) as connection:
        statements = {text: _one_reading_statement(connection, text) for text in texts}
        snapshot = _snapshot_of(warehouse)
        view_texts = views()
        words = _words_with_those_of_named_views("\n".join(texts), view_texts)
        whole: list[pads.Dataset] = []
        topics: set[str] = set()
        with closing(connect_reader()) as reader:
            # Tables of groups first: they have the topics.
            for table in sorted(ALL_TABLES, key=lambda table: _subject_of(table) != _GROUP):
                if table.name not in words:
                    continue
                published, subject = snapshot.published(table), _subject_of(table)
                if subject is None:
                    whole.append(published.dataset())
                    _create(connection, table.layer, table.name, whole[-1])
                    continue
                wanted = {subject: groups if subject == _GROUP else topics}
                rows = published.rows_of(day, wanted, {*words, _TOPIC}, reader)
                if subject == _GROUP and _TOPIC in rows.schema.names:
                    topics.update(rows[_TOPIC].unique().to_pylist())
                _create(connection, table.layer, table.name, rows)
        named_views = _in_order_of_use({name: text for name, text in view_texts.items() if name in words})
        _create_views(connection, "gold", ("gold", "silver"), named_views)
        connection.execute("SET lock_configuration = true")
        yield OpenTables(connection, statements, whole)


def _snapshot_of(warehouse: str | Snapshot, cluster: str | None = None) -> Snapshot:
    return warehouse if isinstance(warehouse, Snapshot) else Snapshot(warehouse, cluster)


def _subject_of(table: Table) -> str | None:
    """Return the column that selects the rows of groups: consumer_group, topic, or None for all rows.

    All findings are needed, because a finding of a group may be explained by one without a group.
    """
    names = {column.name for column in table.columns}
    return next((name for name in (_GROUP, _TOPIC) if name in names and table is not FINDING), None)


def _restricted(
    relation: duckdb.DuckDBPyRelation, conditions: Mapping[str, str | int | date]
) -> duckdb.DuckDBPyRelation:
    """Return the rows that meet the conditions, in their order; values are constants of the plan and never SQL text."""
    for column, value in conditions.items():
        if column not in relation.columns:
            raise QueryError(
                f"The answer has no column {column}, so it cannot be restricted by it; it has {', '.join(relation.columns)}."
            )
        relation = relation.filter(duckdb.ColumnExpression(column) == duckdb.ConstantExpression(value))
    return relation


def _closed_connection() -> duckdb.DuckDBPyConnection:
    connection = connect()
    # Without access to other files, DuckDB would still open files of its database, whose name is `:memory:`, in the current folder.
    connection.execute("SET disabled_filesystems = 'LocalFileSystem'")
    return connection


def _rows(reader: pa.RecordBatchReader, read: Collection[pads.Dataset]) -> Iterator[tuple[Any, ...]]:
    for batch in _batches(reader, read):
        yield from zip(*(_values(column) for column in batch.columns), strict=True)


def _batches(reader: pa.RecordBatchReader, read: Collection[pads.Dataset]) -> Iterator[pa.RecordBatch]:
    with _as_query_error(read):
        yield from reader


@contextmanager
def _interrupted_after(timeout_s: float | None, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Interrupt the connection if the block exceeds the time limit."""
    if timeout_s is None:
        yield
        return
    is_over = Event()

    def interrupt() -> None:
        if not is_over.wait(timeout_s):
            connection.interrupt()
            # An interrupt between two statements has no effect, so it is repeated.
            while not is_over.wait(_INTERRUPT_AGAIN_S):
                connection.interrupt()

    watch = Thread(target=interrupt, daemon=True)
    watch.start()
    try:
        yield
    finally:
        is_over.set()
        watch.join()  # It must not meet a connection that is closed.


def _values(column: pa.Array) -> list[Any]:
    """Return a column in Python's types; an interval becomes an ISO 8601 duration, because Python has no such type."""
    try:
        values: list[Any] = column.to_pylist()
    except OverflowError as error:
        raise QueryError(
            f"A value of type {column.type} is beyond what can be shown ({error}): cast it to VARCHAR."
        ) from error
    if pa.types.is_interval(column.type):
        return [
            value and f"P{value.months}M{value.days}DT{value.nanoseconds / 1_000_000_000:g}S"
            for value in values
        ]
    return values


def _one_reading_statement(connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    with _as_query_error():
        statements = connection.extract_statements(text)
    if not statements:
        raise QueryError('The query is empty: give one, for example "SELECT * FROM latest.finding".')
    if len(statements) > 1:
        raise QueryError(f"The query holds {len(statements)} statements: run each by itself.")
    try:
        kind = statements[0].type
    except ValueError:  # Python's duckdb has no name for every kind.
        kind = None
    if kind not in {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}:
        name = "that reads no table" if kind is None else f"of type {kind.name}"
        raise QueryError(
            f"The published tables are read-only, and this is a statement {name}: "
            "use SELECT, WITH, FROM, VALUES, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN."
        )
    return statements[0]


def _register(
    connection: duckdb.DuckDBPyConnection,
    snapshot: Snapshot,
    text: str,
    all_days: Collection[ClusterDay],
    chosen_days: Sequence[Collection[ClusterDay]],
    consumer_groups: Collection[str] | None,
    read_once: Collection[Table],
) -> Collection[pads.Dataset | pa.Table]:
    """Register the tables and views that the query names in DuckDB, or all if it names none (`SHOW TABLES`).

    Other tables are not opened, because opening a table takes some milliseconds, and listing its files takes longer with each year of
    history.

    Returns:
        The rows that a query may read; those in memory have no files that could be damaged.
    """
    view_texts = views()
    words = _words_with_those_of_named_views(text, view_texts)
    tables = [table for table in ALL_TABLES if table.name in words]
    if not tables:
        tables, words = list(ALL_TABLES), {LATEST, PREVIOUS, QUARANTINE, *view_texts}
    named_views = _in_order_of_use({name: text for name, text in view_texts.items() if name in words})

    published = {table: snapshot.published(table) for table in tables}
    quarantined = snapshot.quarantined_gate_results().dataset() if QUARANTINE in words else None
    read: list[pads.Dataset | pa.Table] = list(filter(None, [quarantined]))

    def create(schema: str, table: Table, rows: pads.Dataset | pa.Table) -> None:
        read.append(rows)
        if consumer_groups is not None and table is not FINDING and _GROUP in rows.schema.names:
            # Arrow takes an empty list for one of nulls, which no text is compared with.
            rows = rows.filter(pc.field(_GROUP).isin(pa.array(consumer_groups, pa.string())))
        _create(connection, schema, table.name, rows)

    for schema, days in zip((LATEST, PREVIOUS), map(set, chosen_days), strict=True):
        if schema in words:
            for table, table_snapshot in published.items():
                create(schema, table, _rows_of_days(table, table_snapshot, days, is_read_once=False))
            _create_views(connection, schema, (schema,), named_views)
    if quarantined is not None:
        _create(connection, QUARANTINE, GATE_RESULT.name, quarantined)
    # With years of history, listing the files of all days takes longer than a query of the newest ones.
    has_all_days = names_all_days(text, {*named_views, *(table.name for table in tables)})
    if has_all_days:
        for table, table_snapshot in published.items():
            create(
                table.layer,
                table,
                _rows_of_days(table, table_snapshot, set(all_days), is_read_once=table in read_once),
            )
    _create_views(connection, "gold", ("gold", "silver"), named_views if has_all_days else {})
    return read


def _rows_of_days(
    table: Table, published: PublishedTable, days: Collection[ClusterDay], *, is_read_once: bool
) -> pads.Dataset | pa.Table:
    in_memory = published.in_memory(days) if is_read_once else None
    return published.dataset(days, _repeated_columns(table)) if in_memory is None else in_memory


def _repeated_columns(table: Table) -> list[str]:
    """Return the string columns with few distinct values: names, and columns with a closed list of values."""
    return [
        column.name
        for column in table.columns
        if column.type == "string" and (column.values or column.name in _NAMES)
    ]


def names_all_days(text: str, names: Collection[str]) -> bool:
    """Return whether queries may name one of the tables and views other than as `latest.…` or `previous.…`."""
    other_text, count = _OF_CHOSEN_DAYS.subn(" ", text)
    return count == 0 or not _words(other_text).isdisjoint(names)


def _create(
    connection: duckdb.DuckDBPyConnection, schema: str, name: str, rows: pads.Dataset | pa.Table
) -> None:
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    connection.execute(f"SET schema = '{schema}'")
    connection.from_arrow(rows).create_view(name)


def _create_views(
    connection: duckdb.DuckDBPyConnection, schema: str, search_path: Collection[str], texts: dict[str, str]
) -> None:
    """Create views over the tables of `search_path`; a view keeps the tables that it was created with."""
    for schema_name in (*search_path, schema):
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema_name}")
    connection.execute(f"SET search_path = '{','.join(search_path)}'")
    for name, text in texts.items():
        connection.execute(f"CREATE VIEW {schema}.{name} AS {text}")


def _words_with_those_of_named_views(text: str, view_texts: dict[str, str]) -> set[str]:
    """Return the words of the query and of every view that it uses, in lower case: table names are among them."""
    words = _words(text)
    unread = set(view_texts)
    while referenced_tables := unread & words:
        words = words.union(*(_words(view_texts[name]) for name in referenced_tables))
        unread -= referenced_tables
    return words


def _in_order_of_use(view_texts: dict[str, str]) -> dict[str, str]:
    """Return the views so that each comes after those that it uses."""
    uses = {name: (_words(text) & view_texts.keys()) - {name} for name, text in view_texts.items()}
    return {name: view_texts[name] for name in TopologicalSorter(uses).static_order()}


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


@contextmanager
def _as_query_error(read: Collection[pads.Dataset] = ()) -> Iterator[None]:
    """Translate errors of DuckDB to `QueryError`, with the file if it cannot be read."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        # Errors while rows are read come through Arrow, as its exceptions or as OSError.
        text = str(error)
        if _OF_A_FILE.search(text) and (damage := find_damage(read)) is not None:
            raise QueryError(
                f"The query cannot be answered (damaged file): {damage_sentence(*damage)}"
            ) from error
        raise QueryError(_sentence(text)) from error


def _sentence(error: str) -> str:
    # The text after a blank line repeats the query or gives advice that the connection does not allow; the text after "Detail:" is a
    # Python traceback.
    head = one_line(_BEFORE_DETAILS.split(error, maxsplit=1)[0])
    kind, separator, message = head.partition(" Error: ")
    if not separator:
        return f"The query failed while its rows were read: {head}."
    if kind == "Out of Memory":
        return (
            f"The query needs more than {SANDBOX_CONFIG['memory_limit']} of memory: "
            "narrow it with conditions on cluster and ds, or aggregate."
        )
    if kind == "INTERRUPT":
        return NOT_IN_TIME
    if kind == "Permission":
        return f"A query can read the published tables and nothing else: {message}."
    unknown_table = _UNKNOWN_TABLE.match(message)
    if unknown_table:
        return _no_table(unknown_table["name"])
    return f"The query cannot be answered ({kind.lower()} error): {message}."


def _no_table(name: str) -> str:
    names = [*(table.name for table in ALL_TABLES), *views()]
    suggestion = did_you_mean(name.rpartition(".")[2], names, most=2, cutoff=0.7)
    if suggestion:
        return f"There is no table {name}: {suggestion} `ledger tables` lists all."
    return f"There is no table {name}; there are {_table_names()}."


def _table_names() -> str:
    return "; ".join(
        (
            f"gold: {', '.join(table.name for table in GOLD_TABLES)}",
            f"silver: {', '.join(table.name for table in SILVER_TABLES)}",
            f"views: {', '.join(views()) or 'none'}",
            f"each also in {LATEST} and {PREVIOUS}; and {QUARANTINE}.{GATE_RESULT.name}",
        )
    )
