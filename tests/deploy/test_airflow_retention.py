"""Retention of Airflow's metadata and logs; `airflow` itself is a stub that records its arguments."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "deploy" / "airflow_retention.py"
DAY_S = 24 * 3600


def clean(home: Path, exit_code: int = 0) -> tuple[int, list[str]]:
    """Run it once; return its exit code and the arguments of `airflow`."""
    calls = home / "calls"
    stand_in = home / "airflow"
    stand_in.write_text(f'#!/bin/sh\necho "$@" >"{calls}"\nexit {exit_code}\n')
    stand_in.chmod(0o755)
    answer = subprocess.run(
        [sys.executable, PROGRAM, "--once"],
        env={
            "PATH": f"{home}{os.pathsep}{os.environ['PATH']}",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW_METADATA_RETENTION_DAYS": "90",
            "AIRFLOW_LOG_RETENTION_DAYS": "30",
        },
        check=False,
        capture_output=True,
    )
    return answer.returncode, calls.read_text().split()


def file_of_age(file: Path, days: int) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    changed = time.time() - days * DAY_S
    os.utime(file, (changed, changed))
    return file


def test_old_rows_and_logs_are_removed_and_recent_ones_are_kept(tmp_path: Path) -> None:
    old = file_of_age(tmp_path / "logs" / "dag_id=d" / "run" / "attempt=1.log", 31)
    young = file_of_age(tmp_path / "logs" / "dag_id=d" / "other-run" / "attempt=1.log", 29)
    beside = file_of_age(tmp_path / "not-a-log", 100)
    code, words = clean(tmp_path)
    assert code == 0
    assert not old.exists()
    assert young.exists()
    assert beside.exists()
    # Without these two, rows would move to tables that stay, and a failure would look like success.
    assert {"--skip-archive", "--error-on-cleanup-failure", "--yes"} <= set(words)
    before = datetime.fromisoformat(words[words.index("--clean-before-timestamp") + 1])
    assert abs(datetime.now(tz=UTC) - timedelta(days=90) - before) < timedelta(minutes=5)


def test_a_link_is_removed_and_not_followed(tmp_path: Path) -> None:
    target = file_of_age(tmp_path / "elsewhere" / "file", 100)
    link = tmp_path / "logs" / "latest"
    link.parent.mkdir()
    link.symlink_to(target)
    changed = time.time() - 100 * DAY_S
    os.utime(link, (changed, changed), follow_symlinks=False)
    clean(tmp_path)
    assert not link.is_symlink()
    assert target.exists()


def test_an_old_empty_folder_is_removed(tmp_path: Path) -> None:
    empty = tmp_path / "logs" / "empty"
    empty.mkdir(parents=True)
    clean(tmp_path)
    assert empty.is_dir()
    os.utime(empty, (0, 0))
    clean(tmp_path)
    assert not empty.exists()


def test_a_failure_of_airflow_is_reported(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    code, _ = clean(tmp_path, exit_code=1)
    assert code != 0
