"""The newest earlier published day, for comparisons.

Belongs here: which day that is, what its tables hold by hash, and where its rows lie. Does not belong here: what is
compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rebalance_ledger.warehouse.errors import NoWarehouseError
from rebalance_ledger.warehouse.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import Warehouse


class EarlierDay(NamedTuple):
    """A published day, as one snapshot shows it.

    Attributes:
        ds: the day.
        content: for each table that was asked for, its qualified name, `=`, and the hash of the day's rows.
        files: the Parquet files with the day's rows of each table; they do not hold cluster and ds.
    """

    ds: date
    content: tuple[str, ...]
    files: Mapping[Table, tuple[str, ...]]


def newest_earlier_day(
    warehouse: Warehouse, cluster: str, ds: date, tables: Iterable[Table]
) -> EarlierDay | None:
    """Return the newest published day of a cluster before a day; None if there is none.

    Args:
        warehouse: the warehouse.
        cluster: the cluster's name.
        ds: the day before which it is.
        tables: what will be read of it.

    Raises:
        QueryError: a table cannot be read.
    """
    try:
        snapshot = Snapshot(warehouse.root)
    except NoWarehouseError:
        return None
    newest = snapshot.newest_day_before(cluster, ds)
    if newest is None:
        return None
    contents = snapshot.named_contents(newest)
    read = tuple(tables)
    hashes = (
        (table.qualified_name, contents[table.qualified_name].content_hash)
        for table in read
        if table.qualified_name in contents
    )
    return EarlierDay(
        newest.ds,
        tuple(f"{name}={content_hash}" for name, content_hash in hashes),
        {table: snapshot.published(table).file_uris([newest]) for table in read},
    )
