"""`ledger verify`: published days compared with what `gold.publication` records of them.

Belongs here: which days are read, and the sentences. Does not belong here: how rows are hashed (`rebalance_ledger.warehouse.content`).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.fingerprint import fingerprint
from rebalance_ledger.warehouse.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date

    from rebalance_ledger.warehouse.cluster_day import ClusterDay


def published_days(root: str, cluster: str | None = None, ds: date | None = None) -> list[ClusterDay]:
    """Return the published days of a warehouse, of one cluster or one date if these are given.

    Raises:
        QueryError: there is no such day, or the warehouse cannot be read.
    """
    days = sorted(
        day for day in Snapshot(root).days if cluster in {None, day.cluster} and ds in {None, day.ds}
    )
    if not days:
        wanted = " ".join(str(part) for part in (cluster, ds) if part is not None)
        raise QueryError(
            f"{root} has no published day{f' of {wanted}' if wanted else ''}: nothing was verified."
        )
    return days


def sample_of(days: Iterable[ClusterDay], count: int, on: date) -> list[ClusterDay]:
    """Return some of the days: others on each date, the same on one date.

    Args:
        days: all days.
        count: how many at most.
        on: the date.
    """

    def rank(day: ClusterDay) -> str:
        return hashlib.sha256(f"{on}\0{day.cluster}\0{day.ds}".encode()).hexdigest()

    return sorted(sorted(days, key=rank)[:count])


def verify_days(root: str, days: Iterable[ClusterDay]) -> Iterator[str]:
    """Read the rows of published days and compare them with the record of their publication.

    Yields:
        A line for each day.

    Raises:
        QueryError: some rows are not those that were published; raised after the last day, and names all of them.
    """
    differing = []
    for day in days:
        tables = list(fingerprint(root, day.cluster, day.ds))
        others = [table.table_name for table in tables if not table.is_as_published]
        rows = sum(table.row_count for table in tables)
        yield (
            f"{day.cluster} {day.ds}: {', '.join(others)} not as published"
            if others
            else (f"{day.cluster} {day.ds}: {rows} rows in {len(tables)} tables are as published")
        )
        differing += [f"{day.cluster} {day.ds} {name}" for name in others]
    if differing:
        raise QueryError(
            f"The rows of {', '.join(differing)} are not those that were published. Another program or a damaged disk has changed them, or a "
            "commit of before 22 November 2026 published them, which hashed rows in another way: publish the days again (`ledger backfill`)."
        )
