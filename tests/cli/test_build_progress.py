"""During a build, the terminal shows a progress bar, and all of Spark's output is in the log."""

from __future__ import annotations

import logging
import os
from datetime import date
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.cli import build_progress as progress_of_builds
from rebalance_ledger.cli.build_progress import build_progress, log_file

if TYPE_CHECKING:
    from pathlib import Path

LOGGER = logging.getLogger("tests.build_progress")


def test_the_log_has_the_records_and_the_output_of_the_jvm(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "logs" / "build.log"
    with build_progress(log, LOGGER, 2):
        LOGGER.info("gold.finding: 1.2 s")
        os.write(2, b"WARN DAGScheduler\n")
    os.write(2, b"after\n")

    assert log.read_text().splitlines() == ["gold.finding: 1.2 s", "WARN DAGScheduler"]
    assert capfd.readouterr().err == "after\n"
    assert LOGGER.handlers == []


def test_an_error_leaves_stderr_as_it_was(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def build_with_an_error() -> None:
        with build_progress(tmp_path / "build.log", LOGGER, 2):
            raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):
        build_with_an_error()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_the_log_is_in_the_users_folder_if_the_checkout_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, checkout = tmp_path / "state", tmp_path / "checkout"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setattr(progress_of_builds, "_LOGS", checkout / "logs")

    assert log_file("shop", date(2026, 11, 16)) == checkout / "logs/ledger-run-shop-2026-11-16.log"
    checkout.touch()  # No folder can be created there, not even by root.
    assert (
        log_file("shop", date(2026, 11, 16)) == state / "rebalance-ledger/logs/ledger-run-shop-2026-11-16.log"
    )
