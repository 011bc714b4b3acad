"""A disk that becomes full at any time: a one-sentence error, readers keep the old day, and a rerun succeeds with free space."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.ledger_process import Days, Ledger

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[2]


def on_full_disk(ledger: Ledger, disk: Path, free_kib: int, *command: str) -> dict[str, Any]:
    """Return the results of a command on a disk with this much space, and of the same command with enough space."""
    disk.mkdir()
    words = replace(ledger, warehouse=disk / "warehouse").words(*command)
    ended = subprocess.run(
        [
            "unshare", "--mount", "--map-root-user",
            sys.executable, ROOT / "tests" / "support" / "on_full_disk.py", ledger.warehouse, disk, str(free_kib), *words,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    report: dict[str, Any] = json.loads(ended.stdout)
    return report


@pytest.mark.parametrize("free_kib", [0, 32, 64])
def test_a_publication_on_a_full_disk_makes_no_row_of_the_day_visible(
    days: Days, tmp_path: Path, free_kib: int
) -> None:
    before, after = days.contents
    report = on_full_disk(days.judged, tmp_path / "disk", free_kib, "step", "publish")
    code, output = report["full"]
    assert code == 1
    assert "No space left on device" in output
    assert "Traceback" not in output
    assert report["read_when_full"] == report["read_after"] == before
    assert report["again"][0] == 0, report["again"][1]
    assert report["read_again"] == after


@pytest.mark.parametrize("free_kib", [0, 500])
def test_a_computation_on_a_full_disk_makes_no_row_of_the_day_visible(
    days: Days, tmp_path: Path, free_kib: int
) -> None:
    before, after = days.contents
    report = on_full_disk(days.monday, tmp_path / "disk", free_kib, "run")
    code, output = report["full"]
    assert code == 1
    assert "No space left on device" in output
    assert "Traceback" not in output
    assert report["read_when_full"] == report["read_after"] == before
    assert report["again"][0] == 0, report["again"][1]
    assert report["read_again"] == after
