"""`make run` on a terminal shows the table that Spark computed last, and then clears the line."""

from __future__ import annotations

import os
import termios
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

RECORD = "\x1b[2m2026-11-24T04:54:11Z\x1b[0m [info] \x1b[1mgold.finding: 0.3 s  \x1b[0m [spark_submit]\n"


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("airflow_environment")
def test_the_newest_table_of_the_log_is_shown_and_then_cleared(tmp_path: Path) -> None:
    from rebalance_ledger.pipeline.sample_run import (
        RECORD_COUNT,
        _TableAtWork,
    )

    log = tmp_path / "run.log"
    log.write_text(RECORD.replace("gold.finding", "gold.of_an_earlier_day"))
    screen, terminal_fd = os.openpty()
    termios.tcsetwinsize(terminal_fd, (24, 80))
    with os.fdopen(terminal_fd, "w") as terminal:
        table_at_work = _TableAtWork(terminal, log, column=10)
        with log.open("a") as more:
            more.write(RECORD)
        shown = b""
        while b"gold.finding" not in shown:
            shown += os.read(screen, 1000)
        table_at_work.close()
        terminal.flush()
        while not shown.endswith(b"\x1b[K"):
            shown += os.read(screen, 1000)
    os.close(screen)
    assert f"1/{RECORD_COUNT} gold.finding".encode() in shown
    assert b"earlier" not in shown
