"""Ctrl-C and the time limit of `ledger sql`, tested in separate processes: both end the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from rebalance_ledger.cli.interruption import INTERRUPTED_SENTENCE
from rebalance_ledger.cli.sql import TIME_LIMIT_S
from tests.support.command_line import ledger

ENDLESS = "SELECT count(*) FROM range(1000000000000) AS numbers WHERE range % 13 = 99"
UNINTERRUPTIBLE = "SELECT levenshtein(repeat('a', 400000), repeat('b', 400000))"
"""One function call that takes minutes, during which DuckDB does not check for an interrupt."""

TIMEOUT_S = 60
"""Far more than an interrupt needs. The queries themselves take minutes or never end."""

# The program imports the engines first, so that the signal arrives during the query and not during the imports.
# Tests that run in the background ignore SIGINT, and their processes would inherit that.
_PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import rebalance_ledger.cli.app, rebalance_ledger.cli.result_formats, rebalance_ledger.warehouse.query
print("imported", flush=True)
sys.argv = ["ledger", *sys.argv[1:]]
rebalance_ledger.cli.app.main()
"""


def started(*words: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "imported\n"
    return process


def last_output(process: subprocess.Popen[str]) -> str:
    """Return the standard error of a process; kill it if it does not end by itself."""
    try:
        return process.communicate(timeout=TIMEOUT_S)[1]
    finally:
        process.kill()


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("query", "options"),
    [
        pytest.param(ENDLESS, (), id="endless"),
        pytest.param(UNINTERRUPTIBLE, (), id="one_call"),
        pytest.param(ENDLESS, ("--timeout-seconds=inf",), id="longest_limit"),
    ],
)
def test_ctrl_c_ends_a_query_at_once(shop_warehouse: str, query: str, options: tuple[str, ...]) -> None:
    process = started("sql", query, f"--warehouse={shop_warehouse}", *options)
    before = cpu_seconds(process)
    while cpu_seconds(process) < before + 1:  # The query is running.
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    err = last_output(process)
    assert process.returncode == 130
    assert err == f"{INTERRUPTED_SENTENCE}\n"


@pytest.mark.parametrize("query", [ENDLESS, UNINTERRUPTIBLE], ids=["endless", "one_call"])
def test_a_query_is_ended_at_its_time_limit_even_if_it_does_not_stop(shop_warehouse: str, query: str) -> None:
    process = started("sql", query, f"--warehouse={shop_warehouse}", "--timeout-seconds=0.5")
    err = last_output(process)
    assert process.returncode == 2
    assert "not answered in time" in err
    assert len(err.splitlines()) == 1


def test_a_query_has_a_time_limit_that_can_be_changed_or_switched_off(
    shop_warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = []
    monkeypatch.setattr(
        "rebalance_ledger.cli.app.run_sql", lambda *_, timeout_s, **__: limits.append(timeout_s)
    )
    for words in ([], ["--timeout-seconds=7.5"], ["--timeout-seconds=0"]):
        assert ledger("sql", "SELECT 1", f"--warehouse={shop_warehouse}", *words) == 0
    assert limits == [TIME_LIMIT_S, 7.5, None]
    assert ledger("sql", "SELECT 1", f"--warehouse={shop_warehouse}", "--timeout-seconds=-1") == 2


def test_an_interrupted_command_reports_it_in_one_line(
    shop_warehouse: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rebalance_ledger.cli.app.show_tables", interrupted)
    assert ledger("tables", f"--warehouse={shop_warehouse}") == 130
    assert capsys.readouterr().err == f"{INTERRUPTED_SENTENCE}\n"


def test_errors_escape_control_characters(shop_warehouse: str, capsys: pytest.CaptureFixture[str]) -> None:
    place = f"--warehouse={shop_warehouse}"
    for query in (
        'FROM "a\x1b[2Jb\u202e"',
        "SELECT error('x\x1b]0;title\x07y')",
    ):
        assert ledger("sql", query, place) == 2
        err = capsys.readouterr().err
        assert "\\x1b" in err
        assert err.removesuffix("\n").isprintable(), err
    assert ledger("sql", "SELECT 1", f"{place}/no\x1b[2Jsuch") == 2
    assert capsys.readouterr().err.removesuffix("\n").isprintable()


def test_a_query_restores_the_signal_handler(shop_warehouse: str) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert ledger("sql", "SELECT 1", f"--warehouse={shop_warehouse}") == 0
    assert signal.getsignal(signal.SIGINT) is before
    # A signal handler can only be set in the main thread. Queries work in other threads too.
    codes: list[int] = []
    thread = Thread(target=lambda: codes.append(ledger("sql", "SELECT 1", f"--warehouse={shop_warehouse}")))
    thread.start()
    thread.join()
    assert codes == [0]
