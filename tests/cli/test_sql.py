"""The output of `ledger sql` and `ledger tables` as users see it."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from rebalance_ledger.cli import result_formats
from rebalance_ledger.cli.result_formats import TERMINAL_ROW_LIMIT, write_table
from rebalance_ledger.cli.sql import OutputFormat, run_sql, show_tables
from rebalance_ledger.tables import ALL_TABLES
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.query import query
from tests.support.published_sample import Publisher
from tests.support.staging_fixtures import MONDAY, owners, stage_day

REPOSITORY = Path(__file__).resolve().parents[2]


Written = Callable[[str, OutputFormat], str]


class Terminal(io.StringIO):
    """An output stream that reports to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def written(shop_warehouse: str, capsys: pytest.CaptureFixture[str]) -> Written:
    """Return a function that returns a query's standard output, which is not a terminal here."""

    def run(text: str, output_format: OutputFormat) -> str:
        run_sql(text, output_format=output_format, warehouse=shop_warehouse)
        return capsys.readouterr().out

    return run


def on_terminal(warehouse: str, text: str, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    terminal = Terminal()
    with query(warehouse, text) as result:
        write_table(result.column_names, result.rows, terminal)
    return terminal.getvalue()


class TestCsv:
    def test_output_can_be_parsed_by_any_reader(self, written: Written) -> None:
        text = written(
            """SELECT 'a,b' AS c, 'say "x"' AS q, E'two\\nlines' AS l, 1.5 AS d, true AS b""", "csv"
        )

        assert list(csv.reader(io.StringIO(text, newline=""))) == [
            ["c", "q", "l", "d", "b"],
            ["a,b", 'say "x"', "two\nlines", "1.5", "true"],
        ]
        assert text.endswith("\r\n")

    def test_null_is_nothing_and_an_empty_string_is_quoted(self, written: Written) -> None:
        assert written("SELECT 1 AS a, NULL AS n, '' AS e, 2 AS z", "csv") == 'a,n,e,z\r\n1,,"",2\r\n'

    @pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\uff1d"])
    def test_a_name_that_looks_like_a_formula_is_text(self, start: str, written: Written) -> None:
        text = written(f"SELECT '{start}HYPERLINK(1)' AS name", "csv")

        _, (cell,) = csv.reader(io.StringIO(text, newline=""))
        assert cell == f"'{start}HYPERLINK(1)"

    def test_numbers_and_dates_keep_their_sign_and_digits(self, written: Written) -> None:
        text = written(
            "SELECT -1 AS i, -0.5::DOUBLE AS f, 9223372036854775807 AS big, DATE '2026-11-17' AS d", "csv"
        )

        assert text.splitlines()[1] == "-1,-0.5,9223372036854775807,2026-11-17"

    def test_a_result_without_rows_is_its_header(self, written: Written) -> None:
        assert written("SELECT client_id FROM finding WHERE false", "csv") == "client_id\r\n"


class TestJson:
    def test_values_keep_their_type_and_their_digits(self, written: Written) -> None:
        text = written(
            """SELECT 9223372036854775807 AS big, sum(9223372036854775807) AS bigger, 0.1 AS decimal_number,
            DATE '2026-11-17' AS day, TIMESTAMPTZ '2026-11-17 01:54:43.659+00' AS moment, NULL AS missing,
            '' AS empty, 'NaN'::DOUBLE AS nan, 'Infinity'::DOUBLE AS infinite, true AS yes,
            [1, NULL] AS list, {'a': DATE '2026-11-17'} AS struct, INTERVAL 90 MINUTE AS duration""",
            "json",
        )

        assert json.loads(text) == [
            {
                "big": 9223372036854775807,
                "bigger": 9223372036854775807,
                "decimal_number": 0.1,
                "day": "2026-11-17",
                "moment": "2026-11-17T01:54:43.659000Z",
                "missing": None,
                "empty": "",
                "nan": None,
                "infinite": None,
                "yes": True,
                "list": [1, None],
                "struct": {"a": "2026-11-17"},
                "duration": "P0M0DT5400S",
            }
        ]

    def test_a_decimal_that_no_double_holds_is_text(self, written: Written) -> None:
        text = written("SELECT 0.1234567890123456789012 AS d", "json")

        assert json.loads(text) == [{"d": "0.1234567890123456789012"}]

    def test_columns_of_one_name_are_all_kept(self, written: Written) -> None:
        assert json.loads(written("SELECT 1 AS a, 2 AS a, 3 AS a_2", "json")) == [
            {"a": 1, "a_2": 2, "a_2_2": 3}
        ]

    def test_an_empty_result_is_an_empty_array(self, written: Written) -> None:
        assert json.loads(written("SELECT 1 WHERE false", "json")) == []

    def test_letters_are_unchanged_and_control_characters_are_escaped(self, written: Written) -> None:
        text = written("SELECT '订单' || chr(27) || '[2J' || chr(155) || chr(8238) AS name", "json")

        assert "订单\\u001b[2J\\u009b\\u202e" in text
        assert json.loads(text) == [{"name": "订单\x1b[2J\x9b\u202e"}]


class TestTable:
    def test_output_without_a_terminal_has_whole_values(self, written: Written) -> None:
        text = written("SELECT repeat('x', 500) AS long, 1 AS n", "table")

        assert "x" * 500 in text

    def test_null_differs_from_an_empty_string(self, written: Written) -> None:
        text = written("SELECT 'a' AS k, NULL AS v UNION ALL SELECT 'b', '' ORDER BY k", "table")

        assert [line.split() for line in text.splitlines()[2:4]] == [["a", "null"], ["b"]]

    def test_it_ends_with_the_number_of_rows(self, written: Written) -> None:
        assert written("SELECT 1", "table").splitlines()[-1] == "1 row"
        assert written("FROM finding WHERE false", "table").splitlines()[-1] == "0 rows"

    def test_wide_letters_keep_the_columns_aligned(self, written: Written) -> None:
        lines = written(
            "SELECT '订单' AS a, 1 AS b UNION ALL SELECT 'abcd', 2 ORDER BY b", "table"
        ).splitlines()

        assert lines[2:4] == ["订单  1", "abcd  2"]

    def test_a_line_break_in_a_name_does_not_break_the_line(self, written: Written) -> None:
        lines = written("SELECT E'a\\nforged row' AS name", "table").splitlines()

        assert lines[2] == "a\\nforged row"

    def test_a_result_too_large_to_be_aligned_is_refused_before_it_fills_the_memory(
        self, written: Written, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(result_formats, "_MOST_ALIGNED_BYTES", 100_000)

        with pytest.raises(QueryError, match="take --format csv or --format json"):
            written("SELECT repeat('x', 1000) FROM range(101)", "table")
        assert written("SELECT repeat('x', 1000) FROM range(101)", "csv").count("x" * 1000) == 101

    def test_a_plan_keeps_its_lines(self, written: Written) -> None:
        assert len(written("EXPLAIN SELECT 1", "table").splitlines()) > 4

    @pytest.mark.parametrize("width", [40, 80, 200])
    def test_words_are_not_wrapped_if_one_line_per_value_has_room_for_them(
        self, width: int, shop_warehouse: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        words = [f"{letter * 20} {letter * 12}" for letter in "abcdefg"]
        columns = ", ".join(f"'{word}' AS c{number}" for number, word in enumerate(words))
        shown = on_terminal(shop_warehouse, f"SELECT {columns}", width, monkeypatch)
        assert set(" ".join(words).split()) <= set(shown.split())
        assert ("row 1" in shown) == (width < 200)

    @pytest.mark.parametrize("width", [18, 200])
    def test_markup_and_control_sequences_in_a_name_have_no_effect_on_a_terminal(
        self, width: int, shop_warehouse: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = "[red]x[/red]:boom:"
        text = on_terminal(
            shop_warehouse, f"SELECT '{name}' || chr(27) || ']0;title' || chr(7) AS name", width, monkeypatch
        )

        assert name + "\\x1b]0;title\\x07" in "".join(text.split())
        assert "\x1b]" not in text
        assert "\x07" not in text

    def test_a_narrow_terminal_gets_one_line_per_value(
        self, shop_warehouse: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = on_terminal(shop_warehouse, "FROM latest.finding WHERE cluster = 'shop-prod'", 80, monkeypatch)

        assert "10.1.0.101@member" in text
        # Style sequences have no width on a terminal.
        assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()) <= 80
        assert [line.split()[0] for line in text.splitlines() if "member-sync" in line] == ["consumer_group"]

    def test_a_value_too_long_for_its_column_is_folded_not_cut(
        self, shop_warehouse: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = on_terminal(
            shop_warehouse, "SELECT repeat('x', 300) AS a, repeat('y', 300) AS b", 60, monkeypatch
        )

        assert (text.count("x"), text.count("y"), "…" in text) == (300, 300, False)

    def test_a_terminal_gets_the_first_rows_and_a_hint_that_there_are_more(
        self, shop_warehouse: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = on_terminal(shop_warehouse, f"FROM range({TERMINAL_ROW_LIMIT + 1})", 80, monkeypatch)

        assert text.splitlines()[-1].startswith(f"the first {TERMINAL_ROW_LIMIT} rows; `--format csv`")

    def test_a_terminal_gets_a_full_last_page_without_that_hint(
        self, shop_warehouse: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = on_terminal(shop_warehouse, f"FROM range({TERMINAL_ROW_LIMIT})", 80, monkeypatch)

        assert text.splitlines()[-1] == f"{TERMINAL_ROW_LIMIT} rows"


def without_pandas(*words: str) -> str:
    """Run a command; return its output, followed by whether pandas was loaded."""
    program = (
        "import atexit, sys; atexit.register(lambda: print('pandas' in sys.modules)); sys.argv[0] = 'ledger'; "
        "from rebalance_ledger.cli.console import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return done.stdout


class TestProcess:
    def test_importing_the_command_imports_no_engine(self) -> None:
        program = "import sys, rebalance_ledger.cli.sql; print([m for m in ('duckdb', 'pyarrow', 'deltalake', 'pandas', 'pyspark') if m in sys.modules])"

        done = subprocess.run(
            [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
        )

        assert done.stdout == "[]\n"

    @pytest.mark.parametrize("name", ["rows.csv", "rows.json", "rows.parquet"])
    def test_a_command_that_reads_tables_works_without_pandas(
        self, shop_warehouse: str, tmp_path: Path, name: str
    ) -> None:
        output = tmp_path / name

        written = without_pandas(
            "sql", "--warehouse", shop_warehouse, "--output", str(output), "FROM finding LIMIT 2"
        )

        assert written == "False\n"
        assert duckdb.sql(f"FROM '{output}'").fetchall()

    def test_a_day_is_published_verified_and_maintained_without_pandas(self, tmp_path: Path) -> None:
        warehouse = Warehouse.at(str(tmp_path / "warehouse"))
        stage_day(warehouse, MONDAY, queue_assignment=owners("c1"))
        day = ("--cluster=shop", f"--ds={MONDAY}", f"--warehouse={warehouse.root}")

        assert without_pandas("step", "publish", *day).endswith("\nFalse\n")

        for command in (
            ("fingerprint", "--cluster=shop"),
            ("verify",),
            ("maintain", "--apply"),
        ):
            assert without_pandas(*command, f"--warehouse={warehouse.root}").endswith("False\n")

    def test_a_reader_that_leaves_early_is_no_error(self, shop_warehouse: str) -> None:
        program = (
            "import sys; from rebalance_ledger.cli.sql import run_sql; "
            "run_sql('FROM range(3000000)', output_format='csv', warehouse=sys.argv[1])"
        )

        with subprocess.Popen(
            [sys.executable, "-c", program, shop_warehouse],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "range\n"
            process.stdout.close()
            assert process.stderr.read() == ""
        assert process.returncode == 0


class TestShowTables:
    def test_it_names_every_table_and_column_and_what_is_published(
        self, shop_warehouse: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        show_tables(shop_warehouse)

        lines = capsys.readouterr().out.splitlines()
        for table in ALL_TABLES:
            assert any(
                line.startswith(f"{table.qualified_name}: one row per {table.grain}; ") for line in lines
            )
            for column in table.all_columns:
                assert any(
                    line.split()[:1] == [column.name] and line.endswith(column.comment) for line in lines
                )
        finding = next(line for line in lines if line.startswith("gold.finding"))
        assert finding.endswith("; 3 rows of 2 days, 2026-11-17 to 2026-11-18, 2 clusters")
        publication = next(line for line in lines if line.startswith("gold.publication:"))
        assert publication.endswith("; 3 rows of 2 days, 2026-11-17 to 2026-11-18, 2 clusters")
        assert any(
            line.startswith("silver.broker:") and line.endswith("; nothing published") for line in lines
        )

    def test_without_a_warehouse_it_shows_the_tables_and_says_how_to_get_one(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        show_tables(str(tmp_path / "none"))

        out = capsys.readouterr().out
        assert "gold.queue_assignment" in out
        assert "There is no warehouse at" in out.splitlines()[-1]

    def test_a_broken_warehouse_is_an_error(self, tmp_path: Path) -> None:
        publisher = Publisher(tmp_path)
        publisher.publish("shop-prod", "2026-11-17", finding=[])
        for commit in (tmp_path / "gold/publication/_delta_log").glob("*.json"):
            commit.write_text("not a commit")

        with pytest.raises(QueryError, match=r"gold/publication cannot be opened as a Delta table"):
            show_tables(str(tmp_path))
