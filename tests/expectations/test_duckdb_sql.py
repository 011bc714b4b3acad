"""The gate's SQL in DuckDB returns the results that Spark documents, where the two dialects differ."""

# ruff: noqa: S608, ISC004 - this module defines the SQL.
from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from expectations.duckdb_sql import duckdb_sql, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTS = "(SELECT 'a' AS name, array(5, 7) AS items UNION ALL SELECT 'b', array() UNION ALL SELECT 'c', NULL)"


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        prepare(connection)
        connection.execute(f"CREATE TABLE list AS {duckdb_sql(f'SELECT * FROM {LISTS}')}")
        yield connection


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SELECT name, item FROM list LATERAL VIEW explode(items) AS item", [("a", 5), ("a", 7)]),
        (
            "SELECT list.name, item FROM list LATERAL VIEW OUTER explode(items) AS item",
            [("a", 5), ("a", 7), ("b", None), ("c", None)],
        ),
        (
            "SELECT name, place, item FROM list LATERAL VIEW posexplode(items) AS place, item",
            [("a", 0, 5), ("a", 1, 7)],
        ),
        (
            "SELECT name, twice, item FROM list LATERAL VIEW explode(items) AS item "
            "LATERAL VIEW inline(array(struct(2 * item AS x, 'y' AS y))) AS twice, text WHERE text = 'y'",
            [("a", 10, 5), ("a", 14, 7)],
        ),
        (
            f"SELECT * FROM {LISTS} LATERAL VIEW explode(items) AS item WHERE item > 5",
            [("a", [5, 7], 7)],
        ),
        (
            "SELECT l.name, item, other.name FROM list AS l JOIN list AS other ON other.name = 'b' "
            "LATERAL VIEW explode(l.items) AS item",
            [("a", 5, "b"), ("a", 7, "b")],
        ),
        (
            "SELECT name, aggregate(items, 0L, (total, item) -> total + item), "
            "aggregate(items, 1D, (total, item) -> total + 2 * item) FROM list WHERE name IN ('a', 'c')",
            [("a", 12, 25.0), ("c", None, None)],
        ),
    ],
)
def test_a_list_is_unnested_to_the_rows_that_spark_returns(
    database: duckdb.DuckDBPyConnection, statement: str, rows: list[tuple[object, ...]]
) -> None:
    assert sorted(database.execute(duckdb_sql(statement)).fetchall(), key=str) == rows


def test_a_sum_or_difference_that_no_bigint_holds_is_null(database: duckdb.DuckDBPyConnection) -> None:
    statement = (
        "SELECT try_add(most, 1L), try_subtract(most, -1L), try_add(few, 1L), few - try_subtract(few, 1L), "
        "transform(array(most, few), number -> try_add(number, 1L)) "
        "FROM (SELECT 9223372036854775807L AS most, 3L AS few)"
    )

    assert database.execute(duckdb_sql(statement)).fetchall() == [(None, None, 4, 1, [None, 4])]


def test_lists_are_not_unnested_by_a_join_over_their_source_columns(
    database: duckdb.DuckDBPyConnection,
) -> None:
    """With such a join, DuckDB would store a copy of each line of the export and compare the copies."""
    statement = "SELECT name, item FROM list LATERAL VIEW explode(items) AS item WHERE item > 5"

    [(_, plan)] = database.execute(f"EXPLAIN {duckdb_sql(statement)}").fetchall()

    assert "UNNEST" in plan.upper()
    assert "JOIN" not in plan.upper()
