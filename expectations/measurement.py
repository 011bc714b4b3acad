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
            "offenders",
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


class GateDatabase:
    """A database that sees the relations that it is shown and nothing else."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, is_small: bool) -> None:
        self._connection = connection
        self._is_small = is_small
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
        self._connection.execute(
            f"CREATE OR REPLACE TABLE {name} AS SELECT unnest(from_json(?, ?), max_depth := 2)",
            [json.dumps(records), f"[{json_structure(ddl)}]"],
        )

    def _take_statements_as_written(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Turn the optimizer off if rows are few: it takes two seconds, longer than the statements. Each connection has its own switch."""
        if self._is_small:
            connection.execute("PRAGMA disable_optimizer")

    def _show(self, name: str, rows: duckdb.DuckDBPyRelation) -> None:
        if self._is_small:
            self._connection.execute(f"DROP TABLE IF EXISTS {name}")
            rows.create(name)
        else:
            rows.create_view(name, replace=True)

    def metrics(self, statements: Sequence[str] = METRIC_STATEMENTS) -> list[dict[str, Any]]:
        """Return the rows of `METRIC_SCHEMA` that statements of `expectations.suites.metrics` give."""
        for name, query in SHARED_VIEWS.items():
            if any(name in statement for statement in statements):
                self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS {duckdb_sql(query)}")
        with ThreadPoolExecutor(_SMALL_STATEMENTS_AT_ONCE if self._is_small else 1) as pool:
            return [_plain(row) for rows in pool.map(self.rows, statements) for row in rows]

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Return the rows that a query in the suites' SQL gives."""
        with self._connection.cursor() as connection:
            self._take_statements_as_written(connection)
            connection.execute(_parsed(statement))
            names = [column[0] for column in connection.description or ()]
            return [dict(zip(names, values, strict=True)) for values in connection.fetchall()]


def parse_statements() -> None:
    """Translate and parse all statements, which takes the first `GateDatabase.metrics` of a process two seconds."""
    for statement in METRIC_STATEMENTS:
        _parsed(statement)


@cache
def _parsed(statement: str) -> duckdb.Statement:
    """Parse a statement once for all days of this process: with 100 kB of text that takes a fifth of measuring a small day."""
    (parsed,) = duckdb.extract_statements(duckdb_sql(statement))
    return parsed


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with sums as floating-point numbers, whatever type they were added up in."""
    offenders = [{**offender, "amount": float(offender["amount"])} for offender in row["offenders"] or ()]
    return {**row, "observed": float(row["observed"]), "offenders": offenders}


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
