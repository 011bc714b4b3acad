"""Fingerprints of the published days of a cluster, to compare two warehouses or two states of one.

The hashes are computed from the rows that a reader sees, and not taken from `gold.publication`, so that rows that differ from their
publication are reported. They do not depend on table versions and the order of publications.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.tables import ALL_TABLES, PUBLICATION
from rebalance_ledger.warehouse.content import content_of
from rebalance_ledger.warehouse.damage import naming_damage
from rebalance_ledger.warehouse.sandbox import connect
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
        ds: The day.
        table_name: Name with the layer.
        row_count: Number of rows that a reader sees.
        content_hash: Hash of these rows, independent of their order.
        is_as_published: Whether count and hash are equal to those of the day's publication; a table that it does not record must
            have no rows.
    """

    ds: date
    table_name: str
    row_count: int
    content_hash: str
    is_as_published: bool


def fingerprint(root: str, cluster: str, ds: date | None = None) -> Iterator[TableDay]:
    """Yield every published table of a cluster's days, days in order, tables in the order of `ALL_TABLES`.

    Args:
        root: Root of the warehouse.
        cluster: Name of the cluster.
        ds: UTC day; None for all days.

    Raises:
        QueryError: There is no warehouse, or a table cannot be read.
    """
    snapshot = Snapshot(root)
    days = sorted(day for day in snapshot.days if day.cluster == cluster and (ds is None or day.ds == ds))
    published = {table: snapshot.published(table) for table in ALL_TABLES}
    with closing(connect()) as connection:
        for day in days:
            content_hashes = snapshot.named_contents(day)
            for table, published_rows in published.items():
                columns = WHAT_COUNTS_OF_A_PUBLICATION if table is PUBLICATION else None
                dataset = published_rows.dataset([day])
                with naming_damage(f"{root}: {table.qualified_name}", [dataset]):
                    content = content_of(connection, table, dataset, day, columns)
                    expected = content if table is PUBLICATION else content_hashes.get(table.qualified_name)
                    is_as_published = content == expected if expected else content.row_count == 0
                    # A release that defined the table with other columns may have published the day.
                    if not is_as_published and (written := published_rows.as_written(day)):
                        is_as_published = (
                            content_of(connection, table, written[0], day, written[1]) == expected
                        )
                yield TableDay(day.ds, table.qualified_name, *content, is_as_published)
