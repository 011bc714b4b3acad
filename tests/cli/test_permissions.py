"""Errors name folders that the user cannot read. Their contents are not reported as missing."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.offline_captures import lay_out

if TYPE_CHECKING:
    from pathlib import Path

# Root can read everything unless it drops these capabilities.
_CAPABILITIES = "-dac_override,-dac_read_search"
_AS_OTHER_USERS = (
    ["setpriv", f"--bounding-set={_CAPABILITIES}", f"--inh-caps={_CAPABILITIES}"] if os.geteuid() == 0 else []
)


def ledger(*words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from rebalance_ledger.cli.console import main; main()"]
    return subprocess.run(
        [*_AS_OTHER_USERS, *program, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("name", ["", "gold"])
def test_an_unreadable_warehouse_is_not_reported_as_missing(name: str, tmp_path: Path) -> None:
    (tmp_path / "warehouse" / "gold").mkdir(parents=True)
    closed = tmp_path / "warehouse" / name
    closed.chmod(0)
    try:
        ended = ledger("summary", "--warehouse", str(tmp_path / "warehouse"))
    finally:
        closed.chmod(0o755)

    assert ended.returncode == 2
    assert f"{closed} cannot be read: Permission denied." in ended.stderr


def test_an_unreadable_source_folder_is_not_treated_as_empty(tmp_path: Path) -> None:
    texts = lay_out("5.5.0", "mqadmin", tmp_path / "texts")
    (texts / "more").mkdir()
    (texts / "more").chmod(0)
    exports = tmp_path / "exports"
    try:
        ended = ledger(
            *("exports", "import", "--cluster", "shop", "--ds", "2026-11-21", "--exports", str(exports)),
            *("--mqadmin", str(texts), "--captured-at", "2026-11-21T12:00:00Z"),
        )
    finally:
        (texts / "more").chmod(0o755)

    assert ended.returncode == 2
    assert f"- {texts / 'more'} cannot be read: Permission denied\n" in ended.stderr
    assert not exports.exists()
