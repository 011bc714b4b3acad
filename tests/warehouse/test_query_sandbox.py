"""The query sandbox: a query reads the published tables only, and cannot write, load, change or exhaust anything."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path

import duckdb
import pytest

from rebalance_ledger.warehouse import query as query_module
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.query import query

SECRET = "a-word-that-no-table-holds"  # noqa: S105  # The value that no query may find.

WAYS_OUT = {
    "files": [
        "FROM '{file}'",
        'FROM "{file}"',
        "FROM 'file://{file}'",
        "FROM '{folder}/*.csv'",
        "FROM read_csv('{file}')",
        "FROM read_csv(['{file}'])",
        "FROM read_csv_auto('{file}')",
        "FROM sniff_csv('{file}')",
        "FROM read_text('{file}')",
        "FROM read_text('{folder}/../{folder_name}/*')",
        "FROM read_blob('{file}')",
        "FROM read_json('{file}')",
        "FROM read_json_objects('{file}')",
        "FROM read_ndjson_auto('{file}')",
        "FROM read_parquet('{file}')",
        "FROM parquet_scan('{file}')",
        "FROM parquet_metadata('{file}')",
        "FROM parquet_kv_metadata('{file}')",
        "FROM parquet_bloom_probe('{file}', 'a', 1)",
        "FROM read_duckdb('{file}')",
        "FROM glob('{folder}/*')",
        "FROM read_text('/proc/self/environ')",
        "FROM read_text('/dev/stdin')",
        # DuckDB's own database is the only location that the sandboxed DuckDB can still open.
        "FROM read_text(':memory:')",
        "FROM read_text(':memory:.wal')",
        "FROM read_csv(':memory:')",
        "FROM query('FROM read_text(''{file}'')')",
        "FROM query_table('{file}')",
        "FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{file}'')'))",
        "SELECT (SELECT content FROM read_text('{file}'))",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, read_text('{file}') WHERE n < 2) FROM r",
        "SELECT * FROM finding, LATERAL (FROM read_text('{file}'))",
        "EXPLAIN ANALYZE FROM read_csv('{file}')",
        "DESCRIBE FROM read_csv('{file}')",
        "SUMMARIZE FROM read_csv('{file}')",
        "PIVOT (FROM read_csv('{file}')) ON secret",
    ],
    "addresses": [
        "FROM read_csv('http://127.0.0.1:9/x')",
        "FROM 'https://127.0.0.1:9/x.parquet'",
        "FROM read_parquet('s3://bucket/x')",
        "FROM read_text('hf://datasets/x/y/z')",
    ],
    "extensions": [
        "FROM delta_scan('{folder}')",
        "FROM iceberg_scan('{folder}')",
        "FROM sqlite_scan('{file}', 't')",
        "FROM postgres_scan('host=127.0.0.1', 'public', 't')",
        "FROM mysql_query('db', 'SELECT 1')",
        "FROM st_read('{file}')",
        "FROM read_xlsx('{file}')",
        "FROM sql_auto_complete('SEL')",
        "FROM duckdb_extensions()",
        "SELECT shell_exec('id')",
    ],
    "the environment": [
        "SELECT getenv('LEDGER_SECRET')",
        "SELECT current_setting('LEDGER_SECRET')",
        "FROM load_aws_credentials()",
        "FROM frame",
        "FROM warehouse",
    ],
    "settings": [
        "FROM enable_logging()",
        "FROM enable_logging('QueryLog', storage := 'file', storage_path := '{folder}')",
        "FROM enable_profiling()",
        "FROM set_config('memory_limit', '100GB')",
        "SELECT set_config('memory_limit', '100GB', false)",
        "FROM pragma_enable_external_access()",
    ],
    "statements inside others": [
        "FROM query('COPY (SELECT 1) TO ''{folder}/out''')",
        "FROM query('ATTACH ''{folder}/out''')",
        "FROM query('SET memory_limit = ''100GB''')",
        "FROM query('SELECT 1; DROP VIEW gold.finding')",
        "FROM json_execute_serialized_sql('{{\"statements\": []}}')",
        "EXPLAIN COPY (SELECT 1) TO '{folder}/out'; COPY (SELECT 1) TO '{folder}/out'",
    ],
}

OTHER_STATEMENTS = [
    "COPY finding TO '{folder}/out'",
    "COPY finding FROM '{file}'",
    "COPY FROM DATABASE memory TO other",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}'",
    "ATTACH '{folder}/out' AS o",
    "ATTACH '{file}' (READ_ONLY)",
    "DETACH memory",
    "INSTALL httpfs",
    "FORCE INSTALL httpfs FROM '{folder}'",
    "LOAD '{folder}/x.duckdb_extension'",
    "UPDATE EXTENSIONS",
    "SET memory_limit = '100GB'",
    "SET GLOBAL threads = 1000",
    "SET VARIABLE a = 1",
    "RESET memory_limit",
    "PRAGMA temp_directory = '{folder}'",
    "PRAGMA enable_profiling",
    "CREATE SECRET s (TYPE s3)",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
    "CREATE MACRO m() AS TABLE FROM read_text('{file}')",
    "CREATE TEMP TABLE t AS SELECT 1",
    "CREATE OR REPLACE VIEW gold.finding AS SELECT 1",
    "ALTER VIEW gold.finding RENAME TO f",
    "TRUNCATE finding",
    "MERGE INTO finding USING finding AS f ON true WHEN MATCHED THEN DELETE",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "DEALLOCATE p",
    "VACUUM",
    "ANALYZE",
    "CHECKPOINT",
    "COMMENT ON VIEW gold.finding IS 'x'",
    "CALL enable_logging()",
    "CALL force_checkpoint()",
]


class Surroundings:
    """A folder with a secret in every file that a query could try to read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "secret.csv"
        for name in ("secret.csv", ":memory:", ":memory:.wal"):
            (folder / name).write_text(f"secret\n{SECRET}\n")
        self._before = self._files()

    def fill_in(self, text: str) -> str:
        """Replace the placeholders in a query by paths."""
        return text.format(file=self.file, folder=self.folder, folder_name=self.folder.name)

    def is_untouched(self) -> bool:
        """Return whether no file was added, removed or changed."""
        return self._files() == self._before

    def _files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEDGER_SECRET", SECRET)
    return Surroundings(tmp_path)


@pytest.mark.parametrize("text", list(chain.from_iterable(WAYS_OUT.values())))
def test_a_query_cannot_escape_the_sandbox(
    text: str, shop_warehouse: str, surroundings: Surroundings
) -> None:
    # The comment names a table. A text that names none opens all tables, which takes longer than any query here.
    asked = f"{surroundings.fill_in(text)} -- finding"
    with pytest.raises(QueryError) as raised, query(shop_warehouse, asked) as result:
        list(result.rows)

    assert SECRET not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert surroundings.is_untouched()


@pytest.mark.parametrize("text", OTHER_STATEMENTS)
def test_a_statement_that_does_not_read_is_refused(
    text: str, shop_warehouse: str, surroundings: Surroundings
) -> None:
    with (
        pytest.raises(QueryError, match=r"read-only|cannot be answered \(parser error\)"),
        query(shop_warehouse, surroundings.fill_in(text)),
    ):
        pass
    assert surroundings.is_untouched()


def test_no_function_of_duckdb_reads_a_file_or_the_environment(surroundings: Surroundings) -> None:
    """Call every function of the installed DuckDB with paths, and search its results for the secret."""
    calls = [
        f"{'FROM' if kind.startswith('table') else 'SELECT'} {name}({arguments})"
        for kind, name in _functions()
        for arguments in (
            "",
            f"'{surroundings.file}'",
            f"'{surroundings.folder}/*'",
            "':memory:'",
            "'LEDGER_SECRET'",
            f"'{surroundings.file}', '{surroundings.file}'",
        )
    ]
    with closing(query_module._closed_connection()) as connection:
        connection.execute("SET lock_configuration = true")
        for text in calls:
            found = ""
            with suppress(duckdb.Error, OverflowError):
                found = str(connection.sql(text).limit(100).fetchall())
            assert SECRET not in found, text
            assert str(Path.home()) not in found, text
    assert len(calls) > 3000
    assert surroundings.is_untouched()


def _functions() -> list[tuple[str, str]]:
    """Return the kind and name of each function that can be written as a call and does more than wait."""
    with closing(duckdb.connect(":memory:")) as connection:
        return connection.sql(
            """SELECT DISTINCT function_type, function_name FROM duckdb_functions()
            WHERE function_type IN ('table', 'table_macro', 'scalar', 'macro')
                AND function_name SIMILAR TO '[a-z_0-9]+'
                AND function_name NOT LIKE '%collate\\_%' ESCAPE '\\'
                AND function_name NOT LIKE '\\_\\_internal%' ESCAPE '\\'
                AND function_name NOT IN ('sleep_ms', 'pg_sleep') ORDER BY ALL"""
        ).fetchall()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sleep_ms(600000)",
        "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b WHERE hash(a.range, b.range) = 1",
        "FROM range(1000000000000)",
    ],
)
def test_a_query_that_takes_too_long_is_stopped(text: str, shop_warehouse: str) -> None:
    start = time.monotonic()
    with (
        pytest.raises(QueryError, match="not answered in time"),
        query(shop_warehouse, text, timeout_s=0.2) as result,
    ):
        for _ in result.rows:
            pass
    # Far below the duration of the query, even on a busy machine.
    assert time.monotonic() - start < 300


def test_a_query_that_is_in_time_is_answered(shop_warehouse: str) -> None:
    with query(shop_warehouse, "SELECT count(*) FROM finding", timeout_s=300) as result:
        assert list(result.rows) == [(3,)]


@pytest.mark.parametrize(
    "value", ["TIMESTAMP '290000-01-01'", "'infinity'::DATE", "DATE '200000-01-01'", "[TIMESTAMP 'infinity']"]
)
def test_a_value_beyond_pythons_calendar_is_reported_in_one_sentence(value: str, shop_warehouse: str) -> None:
    with (
        pytest.raises(QueryError, match="cast it to VARCHAR"),
        query(shop_warehouse, f"SELECT {value}") as result,
    ):
        list(result.rows)
