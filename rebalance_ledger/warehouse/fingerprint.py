"""Fingerprints of the published days of a cluster, to compare two warehouses or two states of one.

The hashes are worked out from the rows that a reader sees, not taken from `gold.publication`: rows that are not what
their publication says are reported. Versions of tables and the order of publications do not count.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

import duckdb

from rebalance_ledger.tables import ALL_TABLES, PUBLICATION
from rebalance_ledger.warehouse.content import DayRows, content_of
from rebalance_ledger.warehouse.damage import naming_damage
from rebalance_ledger.warehouse.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

WHAT_COUNTS_OF_A_PUBLICATION: Final = (
    "run_id",
    "manifest_sha256",
    "settings_sha256",
    "code_version",
    "gate_verdict",
)
"""Fields for the inputs and the evaluation of a day. The other fields record the location and order of writes."""


class TableDay(NamedTuple):
    """One day of one published table.

    Attributes:
        ds: the day.
        table_name: with its layer.
        row_count: rows that a reader sees.
        content_hash: of these rows, independent of their order.
        is_as_published: whether count and hash are those that the day's publication names; a table that it does not name
            has no rows.
    """

    ds: date
    table_name: str
    row_count: int
    content_hash: str
    is_as_published: bool


def fingerprint(root: str, cluster: str, ds: date | None = None) -> Iterator[TableDay]:
    """Yield every published table of a cluster's days, days in order, tables in the order of `ALL_TABLES`.

    Args:
        root: the warehouse's root.
        cluster: the cluster's name.
        ds: this day alone.

    Raises:
        QueryError: there is no warehouse, or a table of it cannot be read.
    """
    snapshot = Snapshot(root)
    days = sorted(day for day in snapshot.days if day.cluster == cluster and (ds is None or day.ds == ds))
    published = {table: snapshot.published(table) for table in ALL_TABLES}
    with closing(duckdb.connect(":memory:")) as connection:
        for day in days:
            rows = DayRows(day.cluster, day.ds)
            content_hashes = snapshot.named_contents(day)
            for table, published_rows in published.items():
                columns = WHAT_COUNTS_OF_A_PUBLICATION if table is PUBLICATION else None
                dataset = published_rows.dataset([day])
                with naming_damage(f"{root}: {table.qualified_name}", [dataset]):
                    content = content_of(connection, table, dataset, rows, columns)
                expected = content if table is PUBLICATION else content_hashes.get(table.qualified_name)
                is_as_published = content == expected if expected else content.row_count == 0
                yield TableDay(day.ds, table.qualified_name, *content, is_as_published)
