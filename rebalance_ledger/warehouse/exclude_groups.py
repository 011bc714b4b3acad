"""Rows of a day without those of some groups.

Belongs here: that one filter, the same for what is published and for what is compared. Does not belong here: which groups
(`rebalance_ledger.gate.quarantine`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.dataset as pads

from rebalance_ledger.tables import TABLES_OF_GROUPS

if TYPE_CHECKING:
    from collections.abc import Collection

    from rebalance_ledger.tables import Table


def without_groups(rows: pads.Dataset, table: Table, groups: Collection[str]) -> pads.Dataset:
    """Return a table's rows without those of some groups; rows of no group, and tables that no group has rows in, stay whole."""
    if not groups or table not in TABLES_OF_GROUPS:
        return rows
    return rows.filter(~pads.field("consumer_group").isin(sorted(groups)))
