"""A staged day and its baseline (the newest earlier published day), for SQL without a JVM.

Belongs here: which day that is, and how the rows of both are shown to duckdb. Does not belong here: what is compared.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb

from rebalance_ledger.tables import QUARANTINED_GROUP
from rebalance_ledger.warehouse.damage import naming_damage
from rebalance_ledger.warehouse.errors import NoWarehouseError
from rebalance_ledger.warehouse.exclude_groups import without_groups
from rebalance_ledger.warehouse.sandbox import SANDBOX_CONFIG
from rebalance_ledger.warehouse.snapshot import Snapshot
from rebalance_ledger.warehouse.staged_files import staged_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import date

    import pyarrow.dataset as pads

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import StagingArea, Warehouse


class Comparison(NamedTuple):
    """What was asked of two days.

    Attributes:
        baseline_ds: the earlier day.
        rows: the answer.
    """

    baseline_ds: date
    rows: list[tuple[Any, ...]]


def compare(
    warehouse: Warehouse,
    cluster: str,
    ds: date,
    stage: StagingArea,
    tables: Iterable[Table],
    statement: str,
    excluded_groups: Collection[str] = (),
) -> Comparison | None:
    """Ask about a staged day and the newest earlier published day of the cluster.

    Exclude a group from both days if either day lacks it: its absence is no evidence of a change.

    Args:
        warehouse: where the earlier day is.
        cluster: the cluster's name.
        ds: the staged day.
        stage: its rows, as they would be published.
        tables: the tables that the statement reads.
        statement: duckdb SQL over `staged_<layer>_<table>` and `earlier_<layer>_<table>`.
        excluded_groups: the groups that the staged day is judged without.

    Returns:
        The answer; None where no earlier day is published.

    Raises:
        QueryError: a published table cannot be read.
    """
    try:
        snapshot = Snapshot(warehouse.root)
    except NoWarehouseError:
        return None
    newest = snapshot.newest_day_before(cluster, ds)
    if newest is None:
        return None
    left_out_before = snapshot.published(QUARANTINED_GROUP).rows({newest}, ["consumer_group"])
    groups = {*excluded_groups, *(row["consumer_group"] for row in left_out_before)}
    read: list[pads.Dataset] = []
    with closing(duckdb.connect(":memory:", config=SANDBOX_CONFIG)) as connection:
        for table in tables:
            name = f"{table.layer}_{table.name}"
            of_days = {
                "staged": staged_rows(stage, table),
                "earlier": snapshot.published(table).dataset({newest}),
            }
            read.append(of_days["earlier"])
            for day, rows in of_days.items():
                connection.from_arrow(without_groups(rows, table, groups)).create_view(f"{day}_{name}")
        with naming_damage(f"The rows of {newest.ds} in {warehouse.root}", read):
            return Comparison(newest.ds, connection.execute(statement).fetchall())
