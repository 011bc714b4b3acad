"""Merges the files of all days of a warehouse, also if they are few and new."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.warehouse import maintenance
from rebalance_ledger.warehouse.maintenance import RetentionPolicy, maintain

if TYPE_CHECKING:
    from rebalance_ledger.warehouse.layout import Warehouse


def merge_and_remove(warehouse: Warehouse) -> None:
    """Merge the files of the days of each month, and remove the files that were merged."""
    keep = RetentionPolicy(timedelta(0), *[timedelta(days=36500)] * 2, separate_days=timedelta(0))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(maintenance, "_MANY_FILES", 2)
        actions = maintain(warehouse, keep, now=datetime(2027, 1, 1, tzinfo=UTC), is_applied=True)
    assert {action.what for action in actions} == {"merge", "vacuum"}
