"""Output to a terminal works in any charset and contains no control characters from a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from rebalance_ledger.cli.app import app
from rebalance_ledger.cli.terminal import SentenceConsole
from rebalance_ledger.exports.manifest import ExportError
from rebalance_ledger.storage.location import InvalidLocationError
from tests.support.published_sample import Publisher

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "\u202egnp.x\u2028é"


@pytest.fixture(scope="module")
def hostile_warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    publisher = Publisher(tmp_path_factory.mktemp("hostile") / "warehouse")
    finding = {"severity": "critical", "kind": "unowned", "consumer_group": "grüße-😀", "finding_id": "f"}
    publisher.publish(HOSTILE, "2026-11-18", finding=[finding], ownership_drift=[])
    return publisher.root


def ledger(*words: str | bytes, text: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in a separate process with additional environment variables."""
    return subprocess.run(
        [sys.executable, "-c", "from rebalance_ledger.cli.console import main; main()", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        input=text,
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("charset", ["ascii", "latin-1", "gbk"])
def test_a_charset_that_lacks_characters_gets_escapes(charset: str, hostile_warehouse: str) -> None:
    words = ("ask", "open_findings", "--warehouse", hostile_warehouse)

    as_table = ledger(*words, PYTHONIOENCODING=charset)
    as_json = ledger(*words, "--format", "json", PYTHONIOENCODING=charset)

    assert as_table.returncode == as_json.returncode == 0, as_table.stderr + as_json.stderr
    assert "\\U0001f600" in as_table.stdout.decode(charset)
    assert "-----" in as_table.stdout.decode(charset)
    assert json.loads(as_json.stdout.decode(charset))[0]["consumer_group"] == "grüße-😀"


@pytest.mark.parametrize("words", [["report", "--output", "page.html"], ["verify"], ["summary"]])
def test_bidirectional_control_characters_in_a_name_are_escaped(
    words: list[str], hostile_warehouse: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    ended = CliRunner().invoke(app, [*words, "--warehouse", hostile_warehouse])

    assert "\\u202egnp.x\\u2028é" in ended.output
    assert not {"\u202e", "\u2028"} & set(ended.output)


def test_a_console_does_not_pass_control_sequences_on(capsys: pytest.CaptureFixture[str]) -> None:
    # A broker's answer can appear like this in a warning of `ledger exports collect`.
    SentenceConsole(stderr=True, markup=False).print(
        "warning: 10.0.0.1:10911 was \x1b[2J\x07silent\nand more"
    )

    assert capsys.readouterr().err == "warning: 10.0.0.1:10911 was \\x1b[2J\\x07silent\nand more\n"


@pytest.mark.parametrize(
    "words",
    [
        ["sql", b"SELECT '\xff'"],
        ["ask", "open_findings", "--group", b"\xff"],
        ["run", "--cluster", b"\xff", "--ds", "2026-11-16"],
        ["maintain", "--warehouse", b"\xff"],
    ],
    ids=["query", "condition", "cluster", "warehouse"],
)
def test_an_argument_that_is_not_valid_text_is_refused_in_one_sentence(words: list[str | bytes]) -> None:
    ended = ledger(*words, PYTHONUTF8="1")

    assert ended.returncode == 2
    assert ended.stderr.count(b"\n") == 1
    assert ended.stderr.startswith(b"The argument ")
    assert b"is not utf-8" in ended.stderr


@pytest.mark.parametrize(("letter", "count", "length"), [("a", 225, 225), ("机", 25, 225)])
def test_a_cluster_whose_name_is_too_long_for_a_warehouse_is_refused_before_its_day_is_computed(
    letter: str, count: int, length: int, tmp_path: Path
) -> None:
    place = ("--exports", str(tmp_path), "--warehouse", str(tmp_path / "warehouse"))

    too_long, longest = (
        CliRunner().invoke(app, ["step", "verify", "--cluster", letter * size, "--ds", "2026-11-16", *place])
        for size in (count, count - 1)
    )

    assert isinstance(too_long.exception, InvalidLocationError)
    assert f"is {length} characters long in the names of files" in str(too_long.exception)
    assert isinstance(longest.exception, ExportError)


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_a_query_from_standard_input_that_is_not_valid_text_is_refused(
    errors: str, hostile_warehouse: str
) -> None:
    ended = ledger(
        *("sql", "-", "--warehouse", hostile_warehouse),
        text=b"SELECT '\xff'",
        PYTHONIOENCODING=f"utf-8:{errors}",
    )

    assert ended.returncode == 2
    assert b"Standard input is not utf-8" in ended.stderr
    assert b"Traceback" not in ended.stderr


_COMMANDS_THAT_WRITE = [
    ["metrics"],
    ["verify"],
    ["ask"],
    ["explain", "order-service", "--cluster", "shop-prod"],
    ["gate", "show", "--cluster", "shop-prod", "--ds", "2026-11-19"],
]


@pytest.mark.parametrize("words", _COMMANDS_THAT_WRITE)
def test_a_closed_pipe_does_not_change_the_exit_code(words: list[str], shop_warehouse: str) -> None:
    command = [sys.executable, "-c", "from rebalance_ledger.cli.console import main; main()", *words]
    readable, writable = os.pipe()
    os.close(readable)

    with os.fdopen(writable, "wb") as left:
        ended = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LEDGER_WAREHOUSE": shop_warehouse},
            stdout=left,
            stderr=subprocess.PIPE,
            check=False,
        )

    # `verify` finds that this warehouse has no row hashes. Its exit code must show that even if the reader has closed.
    assert ended.returncode == (2 if words == ["verify"] else 0)
    assert bool(ended.stderr) is (words == ["verify"])


@pytest.mark.parametrize("query", ["-- days\nSELECT 1 AS n", "--days\nSELECT 1 AS n", "--\nSELECT 1 AS n"])
def test_a_query_may_begin_with_a_comment(query: str, shop_warehouse: str) -> None:
    ended = CliRunner().invoke(app, ["sql", query, "--warehouse", shop_warehouse, "--format", "csv"])

    assert ended.stdout.split() == ["n", "1"]


def test_an_option_of_sql_that_does_not_exist_is_named() -> None:
    ended = CliRunner().invoke(app, ["sql", "--fromat=csv", "SELECT 1"])

    assert ended.exit_code == 2
    assert "No such option: --fromat" in ended.output


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&- 2>&-", "2>&-"])
def test_processes_of_a_command_have_streams_that_its_caller_closed(
    closed: str, hostile_warehouse: str
) -> None:
    program = (
        "import subprocess, sys\n"
        "from rebalance_ledger.cli.app import main\n"
        "try:\n    main()\n"
        "except SystemExit as ending:\n    assert not ending.code\n"
        "child = 'import sys; sys.exit(None in (sys.stdin, sys.stdout, sys.stderr))'\n"
        "sys.exit(subprocess.run([sys.executable, '-c', child]).returncode)\n"
    )

    command = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", sys.executable, "-c", program, "summary", f"--warehouse={hostile_warehouse}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        timeout=60,
    )  # fmt: skip

    assert command.returncode == 0


@pytest.mark.parametrize("is_absolute", [True, False])
def test_packages_of_another_spark_are_ignored(
    is_absolute: bool,  # noqa: FBT001  # a parameter of the test
    tmp_path: Path,
    hostile_warehouse: str,
) -> None:
    foreign = tmp_path / "spark" / "python"
    foreign.mkdir(parents=True)
    for module in ("duckdb", "pyspark", "strategies"):
        (foreign / f"{module}.py").write_text("raise ImportError('of another Spark')\n", encoding="utf-8")
    named = str(foreign) if is_absolute else os.path.relpath(foreign)

    answer = ledger(
        *("ask", "open_findings", "--warehouse", hostile_warehouse),
        PYTHONPATH=os.pathsep.join([named, *sys.path]),
    )

    assert answer.returncode == 0, answer.stderr
