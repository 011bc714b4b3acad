"""A staged day and its baseline (the newest earlier published day), for SQL without a JVM.

Belongs here: which day that is, and how the rows of both are shown to duckdb. Does not belong here: what is compared.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa

from rebalance_ledger.tables import QUARANTINED_GROUP, TABLES_OF_GROUPS
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
    *,
    counted: Iterable[Table],
    read: Iterable[Table],
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
        counted: the tables whose rows the statement compares, as `row_count (table_name, staged, earlier)`.
        read: the tables that the statement reads, as `staged_<layer>_<table>` and `earlier_<layer>_<table>`.
        statement: duckdb SQL over these.
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
    earlier_rows: list[pads.Dataset] = []

    def rows_of(table: Table) -> dict[str, pads.Dataset]:
        earlier = snapshot.published(table).dataset({newest})
        earlier_rows.append(earlier)
        return {
            "staged": without_groups(staged_rows(stage, table), table, groups),
            "earlier": without_groups(earlier, table, groups),
        }

    # Opening every published table takes longer than the comparison, and the publication records the rows of each.
    contents = snapshot.named_contents(newest)

    def row_counts_of(table: Table) -> dict[str, int]:
        if groups and table in TABLES_OF_GROUPS:
            return {day: rows.count_rows() for day, rows in rows_of(table).items()}
        named = contents.get(table.qualified_name)
        return {"staged": staged_rows(stage, table).count_rows(), "earlier": named.row_count if named else 0}

    with (
        closing(duckdb.connect(":memory:", config=SANDBOX_CONFIG)) as connection,
        naming_damage(f"The rows of {newest.ds} in {warehouse.root}", earlier_rows),
    ):
        row_counts = [{"table_name": table.name, **row_counts_of(table)} for table in counted]
        connection.from_arrow(pa.Table.from_pylist(row_counts)).create_view("row_count")
        for table in read:
            for day, rows in rows_of(table).items():
                connection.from_arrow(rows).create_view(f"{day}_{table.layer}_{table.name}")
        return Comparison(newest.ds, connection.execute(statement).fetchall())
