"""`ledger summary`: the published days, a line each."""

from __future__ import annotations

import sys
from pathlib import Path

from rebalance_ledger.cli.sql import run_sql_by_cluster

_QUERY = Path(__file__).resolve().parents[2] / "sql" / "summary.sql"


def show_summary(warehouse: str) -> None:
    """Write each published day on standard output: groups, queues, assignments, problems, the gate's verdict.

    Raises:
        QueryError: there is no warehouse, or it cannot be read.
    """
    run_sql_by_cluster(_QUERY.read_text(encoding="utf-8"), warehouse)
    sys.stdout.flush()
