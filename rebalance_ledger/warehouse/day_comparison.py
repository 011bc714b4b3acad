"""SQL over a staged day and its baseline, the newest earlier published day, without a JVM.

Belongs here: the choice of the baseline, and DuckDB's access to the rows of both days. Does not belong here: the comparisons.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from rebalance_ledger.tables import QUARANTINED_GROUP, TABLES_OF_GROUPS
from rebalance_ledger.warehouse.damage import naming_damage
from rebalance_ledger.warehouse.errors import NoWarehouseError
from rebalance_ledger.warehouse.exclude_groups import without_groups
from rebalance_ledger.warehouse.sandbox import connect
from rebalance_ledger.warehouse.snapshot import Snapshot
from rebalance_ledger.warehouse.staged_files import staged_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import date

    import pyarrow.dataset as pads

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import StagingArea, Warehouse


class Comparison(NamedTuple):
    """The result of a comparison.

    Attributes:
        baseline_ds: The baseline day.
        rows: Rows of the statement's result.
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
    """Run a statement over a staged day and its baseline.

    A group that is quarantined on one of the days is excluded from both, because its absence is no evidence of a change.

    Args:
        warehouse: The warehouse with the baseline.
        cluster: Name of the cluster.
        ds: The staged day.
        stage: Rows of the staged day, as they would be published.
        counted: Tables whose row counts the statement compares, as `row_count (table_name, staged, earlier)`.
        read: Tables that the statement reads, as `staged_<layer>_<table>` and `earlier_<layer>_<table>`.
        statement: DuckDB SQL over these tables.
        excluded_groups: Quarantined groups of the staged day.

    Returns:
        The result; None if there is no baseline.

    Raises:
        QueryError: A published table cannot be read.
    """
    try:
        snapshot = Snapshot(warehouse.root)
    except NoWarehouseError:
        return None
    baseline_day = snapshot.newest_day_before(cluster, ds)
    if baseline_day is None:
        return None
    quarantined_before = snapshot.published(QUARANTINED_GROUP).rows({baseline_day}, ["consumer_group"])
    groups = {*excluded_groups, *(row["consumer_group"] for row in quarantined_before)}
    earlier_rows: list[pads.Dataset] = []

    def rows_of(table: Table) -> dict[str, pads.Dataset]:
        earlier = snapshot.published(table).dataset({baseline_day})
        earlier_rows.append(earlier)
        return {
            "staged": without_groups(staged_rows(stage, table), table, groups),
            "earlier": without_groups(earlier, table, groups),
        }

    # Opening every published table takes longer than the comparison, and the publication records the rows of each.
    contents = snapshot.named_contents(baseline_day)

    def row_counts_of(table: Table) -> dict[str, int]:
        if groups and table in TABLES_OF_GROUPS:
            return {day: rows.count_rows() for day, rows in rows_of(table).items()}
        named = contents.get(table.qualified_name)
        return {"staged": staged_rows(stage, table).count_rows(), "earlier": named.row_count if named else 0}

    with (
        closing(connect()) as connection,
        naming_damage(f"The rows of {baseline_day.ds} in {warehouse.root}", earlier_rows),
    ):
        row_counts = [{"table_name": table.name, **row_counts_of(table)} for table in counted]
        connection.from_arrow(pa.Table.from_pylist(row_counts)).create_view("row_count")
        for table in read:
            for day, rows in rows_of(table).items():
                connection.from_arrow(rows).create_view(f"{day}_{table.layer}_{table.name}")
        return Comparison(baseline_day.ds, connection.execute(statement).fetchall())
