"""The filter that excludes quarantined groups from the rows of a day.

Belongs here: the filter, which publication, comparison and the gate share. Does not belong here: the choice of the groups
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
    """Return a table's rows without those of the given groups; rows without a group, and tables without groups, are kept."""
    if not groups or table not in TABLES_OF_GROUPS:
        return rows
    return rows.filter(~pads.field("consumer_group").isin(sorted(groups)))
