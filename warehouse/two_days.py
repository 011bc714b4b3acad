"""A staged day beside the newest earlier published one, for SQL without a JVM.

Belongs here: which day that is, and how the rows of both are shown to duckdb. Does not belong here: what is compared.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb

from warehouse.closed_duckdb import CLOSED_CONFIG
from warehouse.errors import NoWarehouseError
from warehouse.publish import staged_rows
from warehouse.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from tables import Table
    from warehouse.layout import Stage, Warehouse


class Comparison(NamedTuple):
    """What was asked of two days.

    Attributes:
        compared_ds: the earlier day.
        rows: the answer.
    """

    compared_ds: date
    rows: list[tuple[Any, ...]]


def compare(
    warehouse: Warehouse, cluster: str, ds: date, stage: Stage, tables: Iterable[Table], statement: str
) -> Comparison | None:
    """Ask about a staged day and the newest earlier published day of the cluster.

    Args:
        warehouse: where the earlier day is.
        cluster: the cluster's name.
        ds: the staged day.
        stage: its rows, as they would be published.
        tables: the tables that the statement reads.
        statement: duckdb SQL over `staged_<layer>_<table>` and `earlier_<layer>_<table>`.

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
    with closing(duckdb.connect(":memory:", config=CLOSED_CONFIG)) as connection:
        for table in tables:
            name = f"{table.layer}_{table.name}"
            connection.from_arrow(staged_rows(stage, table)).create_view(f"staged_{name}")
            connection.from_arrow(snapshot.published(table).dataset({newest})).create_view(f"earlier_{name}")
        return Comparison(newest.ds, connection.execute(statement).fetchall())
