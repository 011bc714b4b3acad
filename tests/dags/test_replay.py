"""`make replay` without exports or without Airflow ends with one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.pipeline import replay
from rebalance_ledger.pipeline.airflow_server import free_port
from tests.support.computed_days import SAMPLE_EXPORTS, SETTINGS_FILE

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_PORT", str(free_port()))
    monkeypatch.setenv("LEDGER_EXPORTS", str(SAMPLE_EXPORTS))
    monkeypatch.setenv("LEDGER_SETTINGS", str(SETTINGS_FILE))


def test_without_airflow(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main([]) == 2

    error = capsys.readouterr().err
    assert error.startswith("No Airflow answers at http://127.0.0.1:")
    assert "run `make airflow` in another terminal" in error
    assert error.count("\n") == 1


def test_without_exports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEDGER_EXPORTS", str(tmp_path))

    assert replay.main([]) == 2
    assert capsys.readouterr().err == f"{tmp_path} has no export of shop-prod: land one first.\n"
