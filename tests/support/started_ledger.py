"""The command line `ledger` in a separate process, as a user starts it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]

PATIENTLY: Final = {
    "parallelism": 4,
    "connect_timeout_ms": 20_000,
    "call_timeout_ms": 20_000,
    "client_timeout_ms": 40_000,
    "unresponsive_after_s": 60,
}
"""`collect` settings for tests that need every answer: a whole cluster on one busy machine answers late."""


def ledger(folder: Path, *words: str) -> str:
    """Return the standard output of a command that runs in this folder and must succeed."""
    answer = subprocess.run(
        [ROOT / "setup" / "in-environment", "ledger", *words],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert answer.returncode == 0, f"{words}: {answer.returncode}\n{answer.stdout}\n{answer.stderr}"
    return answer.stdout


def ask(folder: Path, query: str, *, warehouse: str) -> list[dict[str, Any]]:
    """Return the rows of a query of the published tables."""
    answer = ledger(folder, "sql", query, "--format", "json", "--warehouse", warehouse)
    rows: list[dict[str, Any]] = json.loads(answer)
    return rows
