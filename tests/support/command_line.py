"""Runs the `ledger` command line in the test process, because a new process would import everything again."""

from __future__ import annotations

import sys
from unittest.mock import patch

from rebalance_ledger.cli.app import main


def ledger(*words: str) -> int:
    """Run a command, and return its exit code. pytest's `capsys` captures its output."""
    with patch.object(sys, "argv", ["ledger", *words]):
        try:
            main()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
