"""Measuring a staged day: the suites' statements run by DuckDB over Arrow data.

Belongs here: the database, and the form of its result. Does not belong here: where the rows come from
(`rebalance_ledger.pipeline.gate_metrics`), and the translation of a statement (`duckdb_sql`).
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa

from expectations.duckdb_sql import duckdb_sql, json_structure, prepare
from expectations.suites.metrics import METRIC_STATEMENTS, SHARED_VIEWS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow.dataset as pads

METRIC_SCHEMA: Final = pa.schema(
    [
        ("expectation_id", pa.string()),
        ("observed", pa.float64()),
        ("examples", pa.list_(pa.string())),
        (
            "affected_subjects",
            pa.list_(
                pa.struct(
                    [
                        ("consumer_group", pa.string()),
                        ("topic", pa.string()),
                        ("broker_name", pa.string()),
                        ("amount", pa.float64()),
                        ("examples", pa.list_(pa.string())),
                    ]
                )
            ),
        ),
    ]
)
"""Columns of the measured numbers: one row for each expectation."""

_SMALL_STATEMENTS_AT_ONCE: Final = 2
"""Statements over few rows run in one thread each, so two cores run two; those over many rows share their threads and memory."""
_PLAN: Final = "planned"
_RUN_PLAN: Final = f"EXECUTE {_PLAN}"


class GateDatabase:
    """A database that sees the relations that it is shown and nothing else.

    One with few rows keeps them in tables, and the plans of its statements too: with the tables of the next day, they run again.
    Planning takes as long as running them. DuckDB makes a plan again if a table has got other columns.

    Attributes:
        is_small: Whether the rows are few, so that they are kept in memory.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, is_small: bool) -> None:
        self._connection = connection
        self.is_small = is_small
        self._columns: dict[str, list[tuple[str, str]]] = {}
        self._shown: set[str] = set()
        self._planned: dict[str, duckdb.DuckDBPyConnection] = {}
        prepare(connection)
        self._take_statements_as_written(connection)

    def show(self, name: str, rows: pads.Dataset | pa.Table) -> None:
        """Show rows under the name that the statements use."""
        self._show(name, self._connection.from_arrow(rows))

    def show_files(self, name: str, files: Sequence[str]) -> None:
        """Show the rows of Parquet files in the folders that the database was opened with; it reads them without Arrow."""
        self._show(name, self._connection.read_parquet(list(files), hive_partitioning=False))

    def show_query(self, name: str, query: str) -> None:
        """Show the result of a query in DuckDB's SQL over what was shown before."""
        self._show(name, self._connection.sql(query))

    def show_records(self, name: str, ddl: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Show records, whose values JSON can represent, with the columns of a Spark schema."""
        query = "SELECT unnest(from_json(?, ?), max_depth := 2)"
        rows = self._connection.sql(query, params=[json.dumps(records), f"[{json_structure(ddl)}]"])
        self._keep(name, rows)

    def clear(self) -> None:
        """Remove all rows; tables and plans remain."""
        for name in self._columns:
            self._connection.execute(f"TRUNCATE {name}")
        self._shown.clear()

    def _take_statements_as_written(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Turn the optimizer off if rows are few: it takes two seconds, longer than the statements. Each connection has its own switch."""
        if self.is_small:
            connection.execute("PRAGMA disable_optimizer")

    def _show(self, name: str, rows: duckdb.DuckDBPyRelation) -> None:
        if self.is_small:
            self._keep(name, rows)
        else:
            rows.create_view(name, replace=True)

    def _keep(self, name: str, rows: duckdb.DuckDBPyRelation) -> None:
        """Store rows in a table, in place of its earlier rows."""
        self._shown.add(name)
        columns = list(zip(rows.columns, map(str, rows.types), strict=True))
        if self._columns.get(name) == columns:
            self._connection.execute(f"TRUNCATE {name}")
            rows.insert_into(name)
        else:
            self._connection.execute(f"DROP TABLE IF EXISTS {name}")
            rows.create(name)
            self._columns[name] = columns

    def metrics(self, statements: Sequence[str] = METRIC_STATEMENTS) -> list[dict[str, Any]]:
        """Return the rows of `METRIC_SCHEMA` that statements of `expectations.suites.metrics` give.

        Raises:
            RuntimeError: A table has not been shown since the rows of an earlier day were removed.
        """
        shared = {
            name: query
            for name, query in SHARED_VIEWS.items()
            if any(name in statement for statement in statements)
        }
        texts = [*statements, *shared.values()]
        left_out = self._columns.keys() - shared.keys() - self._shown
        missing = sorted(name for name in left_out if any(name in text for text in texts))
        if missing:
            raise RuntimeError(
                f"The rows of {', '.join(missing)} are of no day: show them before the metrics."
            )
        for name, query in shared.items():
            self._keep(name, self._connection.sql(duckdb_sql(query)))
        with ThreadPoolExecutor(_SMALL_STATEMENTS_AT_ONCE if self.is_small else 1) as pool:
            answers = pool.map(self._rows_as_planned if self.is_small else self.rows, statements)
            return [_plain(row) for rows in answers for row in rows]

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Return the rows that a query in the suites' SQL gives."""
        with self._connection.cursor() as connection:
            self._take_statements_as_written(connection)
            return _records(connection.execute(_parsed(statement)))

    def _rows_as_planned(self, statement: str) -> list[dict[str, Any]]:
        if statement not in self._planned:
            self._planned[statement] = self._plan(duckdb_sql(statement))
        return _records(self._planned[statement].execute(_RUN_PLAN))

    def _plan(self, query: str) -> duckdb.DuckDBPyConnection:
        """Plan a statement, and return the connection in which `_RUN_PLAN` runs it: a connection runs one at a time."""
        connection = self._connection.cursor()
        self._take_statements_as_written(connection)
        connection.execute(f"PREPARE {_PLAN} AS {query}")
        return connection


def _records(answer: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]


def translate_statements() -> None:
    """Translate all statements, which takes the first `GateDatabase.metrics` of a process two seconds."""
    for statement in METRIC_STATEMENTS:
        duckdb_sql(statement)


@cache
def _parsed(statement: str) -> duckdb.Statement:
    """Parse a statement once for all days of this process: with 100 kB of text that takes a fifth of measuring a small day."""
    (parsed,) = duckdb.extract_statements(duckdb_sql(statement))
    return parsed


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with sums as floating-point numbers, whatever type they were added up in."""
    affected_subjects = [
        {**subject, "amount": float(subject["amount"])} for subject in row["affected_subjects"] or ()
    ]
    return {**row, "observed": float(row["observed"]), "affected_subjects": affected_subjects}


@contextmanager
def gate_database(
    config: Mapping[str, str], folders: Collection[str] = (), *, is_small: bool = False
) -> Iterator[GateDatabase]:
    """Open a database for the time of the block. It has access to no file outside of the folders.

    Args:
        config: DuckDB's settings.
        folders: Absolute paths of the folders whose files it may read.
        is_small: Whether the rows are few: they are read once, into memory, and statements run in one thread each, as they are written.
    """
    # DuckDB takes the list of folders before it is closed, and not when it is opened.
    with duckdb.connect(":memory:", config={**config, "enable_external_access": "true"}) as connection:
        connection.execute("SET allowed_directories = ?", [list(folders)])
        connection.execute("SET enable_external_access = FALSE")
        if is_small:
            connection.execute("SET threads = 1")
        yield GateDatabase(connection, is_small=is_small)
