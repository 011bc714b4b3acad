"""Find the published day for a report or an explanation, by cluster, day and group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rebalance_ledger.report.queries import report_query
from rebalance_ledger.suggestion import did_you_mean
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.query import open_tables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from rebalance_ledger.warehouse.snapshot import Snapshot

_MOST_NAMES: Final = 10


def find_day(snapshot: Snapshot, cluster: str | None, ds: date | None) -> ClusterDay:
    """Return the published day of a cluster.

    Args:
        snapshot: The warehouse as one reader sees it.
        cluster: Name of the cluster; None if only one has published days.
        ds: UTC day; None for the newest published day.

    Raises:
        QueryError: There is no such published day, or several clusters have published days; the message lists them.
    """
    days = snapshot.days
    clusters = sorted({day.cluster for day in days})
    if not clusters:
        raise QueryError(
            f"No day is published in {snapshot.root}: run `make run`, or `ledger run` for one day."
        )
    if cluster is None and len(clusters) > 1:
        raise QueryError(f"There are {len(clusters)} clusters: name one with --cluster: {_names(clusters)}.")
    name = cluster if cluster is not None else clusters[0]
    published = sorted(day for day in days if day.cluster == name)
    if not published:
        suggestion = did_you_mean(name, clusters, most=1, cutoff=0.5)
        raise QueryError(
            f"No day of cluster {name!r} is published: {suggestion or f'published clusters are {_names(clusters)}.'}"
        )
    if ds is None:
        return published[-1]
    if ClusterDay(name, ds) not in published:
        first, last = published[0].ds, published[-1].ds
        shown = (
            f"are {len(published)} published days, {first} to {last}"
            if len(published) > 1
            else f"is one published day, {first}"
        )
        raise QueryError(f"{ds} of {name} is not published; there {shown}.")
    return ClusterDay(name, ds)


def check_group(snapshot: Snapshot, day: ClusterDay, group: str) -> None:
    """Check that a published day has a group, including groups with findings only, quarantined groups, and groups without members and progress.

    Raises:
        QueryError: The day does not have the group; the message suggests similar names.
    """
    text = report_query("day/group_names").text({"cluster": day.cluster, "ds": day.ds})
    with open_tables(snapshot, [text]) as tables:
        names = [row["consumer_group"] for row in tables.rows(text)]
    if group not in names:
        suggestion = did_you_mean(group, names, most=3, cutoff=0.6)
        raise QueryError(
            f"There is no group {group!r} in {day.cluster} on {day.ds}: {suggestion or f'there are {len(names)} groups.'}"
        )


def _names(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - _MOST_NAMES} more" if len(shown) > _MOST_NAMES else ""
    return ", ".join(shown[:_MOST_NAMES]) + more
