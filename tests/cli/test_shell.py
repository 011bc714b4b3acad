"""`ledger sql` without a statement is a shell, which can write results to files."""

from __future__ import annotations

import csv
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rebalance_ledger.cli.app import app, main
from rebalance_ledger.cli.shell import completions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE_S = 60


class Shell:
    """The shell on a pseudo-terminal, with input as a user types it."""

    def __init__(self, warehouse: str, home: Path) -> None:
        self._unread = ""
        self._terminal, other_side = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rebalance_ledger.cli.app", "sql", f"--warehouse={warehouse}"],
            stdin=other_side,
            stdout=other_side,
            stderr=other_side,
            env={**os.environ, "XDG_STATE_HOME": str(home), "TERM": "dumb"},
            start_new_session=True,
        )
        os.close(other_side)

    def write(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def read_until(self, text: str) -> str:
        """Return the output up to and including a text, and buffer the rest."""
        end = time.monotonic() + DEADLINE_S
        while text not in self._unread:
            assert time.monotonic() < end, self._unread
            if select.select([self._terminal], [], [], 0.2)[0]:
                self._unread += os.read(self._terminal, 65536).decode(errors="replace")
        before, _, self._unread = self._unread.partition(text)
        return before + text

    def end(self) -> int:
        """Exit with Ctrl-D at the next prompt; kill the process if it does not end."""
        try:
            self.read_until("ledger> ")
            self.write("\x04")
            with suppress(OSError):  # Raised after the shell closes its side.
                while select.select([self._terminal], [], [], DEADLINE_S)[0] and os.read(
                    self._terminal, 65536
                ):
                    pass
            return self._process.wait(timeout=DEADLINE_S)
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            os.close(self._terminal)


@pytest.fixture
def shell(shop_warehouse: str, tmp_path: Path) -> Iterator[Shell]:
    started = Shell(shop_warehouse, tmp_path)
    try:
        started.read_until("ledger> ")
        yield started
    finally:
        assert started.end() == 0


def test_a_statement_over_two_lines_is_answered_and_an_error_does_not_end_the_shell(shell: Shell) -> None:
    shell.write("SELECT count(*) + 41 AS answer\n")
    shell.read_until("...> ")
    shell.write("FROM latest.publication WHERE cluster = 'shop-prod';\n")
    assert "42" in shell.read_until("1 row")

    shell.read_until("ledger> ")
    shell.write("SELECT nothing FROM publication;\n")
    shell.read_until("The query cannot be answered")

    shell.read_until("ledger> ")
    shell.write("\\ask open_findings\n")
    shell.read_until("critical")


def test_the_history_is_kept(shop_warehouse: str, tmp_path: Path) -> None:
    shell = Shell(shop_warehouse, tmp_path)
    shell.read_until("ledger> ")
    shell.write("SELECT 1 AS one;\n")
    shell.read_until("1 row")

    assert shell.end() == 0
    assert "SELECT 1 AS one;" in (tmp_path / "rebalance-ledger" / "history").read_text()


def test_tables_commands_and_mistakes(shell: Shell) -> None:
    shell.write("\\tables queue_assignment\n")
    shell.read_until("strategy_source")
    shell.read_until("ledger> ")
    shell.write("\\tables queue_asignment\n")
    shell.read_until("queue_assignment")
    shell.read_until("ledger> ")
    shell.write("\\nonsense\n")
    shell.read_until("There is no command \\nonsense")


@pytest.mark.parametrize(
    ("line", "word", "expected"),
    [
        ("SELECT max_over FROM assignment_fairness", "max_over", ["max_over_mean"]),
        ("SELECT * FROM latest.queue_as", "latest.queue_as", ["latest.queue_assignment"]),
        ("sel", "sel", ["SELECT"]),
        ("\\ask open_f", "open_f", ["open_findings"]),
        ("\\tab", "\\tab", ["\\tables"]),
        ("\\tables producer_s", "producer_s", ["producer_spread"]),
    ],
)
def test_completion(line: str, word: str, expected: list[str]) -> None:
    assert completions(line, word) == expected


def test_columns_are_those_of_the_named_tables() -> None:
    assert "jain_index" in completions("SELECT  FROM assignment_fairness", "")
    assert "jain_index" not in completions("SELECT  FROM finding", "")


class TestOutput:
    QUERY = "SELECT consumer_group, queue_id, observed_client_ids FROM latest.ownership_drift WHERE cluster = 'shop-prod' ORDER BY ALL"

    def write(self, warehouse: str, output: Path) -> str:
        result = CliRunner().invoke(
            app,
            ["sql", self.QUERY, "--warehouse", warehouse, "--output", str(output)],
            catch_exceptions=False,
        )
        assert result.exit_code == 0
        assert result.stdout == ""
        assert list(output.parent.iterdir()) == [output]
        return result.stderr

    def test_each_format_has_all_rows(self, shop_warehouse: str, tmp_path: Path) -> None:
        paths = [tmp_path / suffix / f"rows.{suffix}" for suffix in ("csv", "json", "parquet")]
        for path in paths:
            path.parent.mkdir()
            assert "12 rows are in" in self.write(shop_warehouse, path)

        with paths[0].open(newline="") as lines:
            from_csv = [(row["consumer_group"], int(row["queue_id"])) for row in csv.DictReader(lines)]
        from_json = [(row["consumer_group"], row["queue_id"]) for row in json.loads(paths[1].read_text())]
        parquet = pq.read_table(paths[2])
        from_parquet = [(row["consumer_group"], row["queue_id"]) for row in parquet.to_pylist()]
        assert len(from_csv) == 12
        assert from_csv == from_json == from_parquet
        assert str(parquet.schema.field("observed_client_ids").type).startswith("list")

    def test_another_suffix_is_refused_and_a_failing_query_keeps_the_file(
        self,
        shop_warehouse: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        kept = tmp_path / "kept.csv"
        kept.write_text("before")
        for query, output in (("SELECT 1", "rows.txt"), ("SELECT error('no')", str(kept))):
            monkeypatch.setattr(
                "sys.argv", ["ledger", "sql", query, f"--warehouse={shop_warehouse}", f"--output={output}"]
            )
            with pytest.raises(SystemExit) as ending:
                main()
            assert ending.value.code == 2
        assert "the name must end with .csv, .json or .parquet" in capsys.readouterr().err
        assert kept.read_text() == "before"
        assert list(tmp_path.iterdir()) == [kept]

    def test_the_answer_to_a_question_can_be_written_too(self, shop_warehouse: str, tmp_path: Path) -> None:
        output = tmp_path / "findings.parquet"
        arguments = ["ask", "open_findings", "--warehouse", shop_warehouse, "--output", str(output)]
        assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
        assert pq.read_table(output).num_rows > 0
