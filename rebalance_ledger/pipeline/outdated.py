"""Which published days are out of date.

They were compared with something that has changed since (the view `outdated_day`), or computed from an export that is replaced.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.exports.manifest import ExportError, export_directory, load_manifest
from rebalance_ledger.warehouse.errors import NoWarehouseError
from rebalance_ledger.warehouse.identity import code_version
from rebalance_ledger.warehouse.query import query

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from rebalance_ledger.pipeline.day import Day
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.layout import Warehouse

EXPORT_REPLACED: Final = "export_replaced"
"""Reason: the day's own export is another one now. A further attempt at a capture has completed it."""


class StaleDay(NamedTuple):
    """A published day that is out of date.

    Attributes:
        cluster: the cluster's name.
        ds: the day.
        reasons: see the view; and `EXPORT_REPLACED`.
    """

    cluster: str
    ds: date
    reasons: tuple[str, ...]


def stale_days(warehouse: Warehouse, cluster: str, exports: Location | None = None) -> tuple[StaleDay, ...]:
    """Return the days of a cluster that are out of date, the earliest first; none where nothing is published.

    Args:
        warehouse: Where the days are published.
        cluster: The cluster.
        exports: Where its exports are; None if they are not looked at.

    Raises:
        QueryError: the warehouse cannot be read.
    """
    try:
        with query(
            warehouse.root, "SELECT ds, reasons FROM outdated_day ORDER BY ds", cluster=cluster
        ) as result:
            reasons = {ds: tuple(of_day) for ds, of_day in result.rows}
        with query(warehouse.root, "SELECT ds, manifest_sha256 FROM publication", cluster=cluster) as result:
            published = dict(result.rows)
    except NoWarehouseError:
        return ()
    for ds in replaced_exports(published, cluster, exports):
        reasons[ds] = (*reasons.get(ds, ()), EXPORT_REPLACED)
    return tuple(StaleDay(cluster, ds, of_day) for ds, of_day in sorted(reasons.items()))


def is_up_to_date(day: Day) -> bool:
    """Return whether the published day comes from the present export, settings and code, and from an unchanged baseline.

    Args:
        day: The day, with a sealed export.

    Raises:
        ExportError: The day has no sealed export.
        QueryError: The warehouse cannot be read.
        SettingsError: The settings file is wrong.
    """
    manifest = load_manifest(export_directory(day.exports, day.cluster, day.ds))
    wanted = (manifest.sha256, day.settings.sha256, code_version())
    columns = "manifest_sha256, settings_sha256, code_version"
    try:
        with query(
            day.warehouse.root,
            f"SELECT {columns}, cluster, ds FROM publication",  # noqa: S608  # constants
            conditions={"cluster": day.cluster, "ds": day.ds},
            cluster=day.cluster,
        ) as result:
            published = [row[:3] for row in result.rows]
    except NoWarehouseError:
        return False
    return published == [wanted] and all(
        stale.ds != day.ds for stale in stale_days(day.warehouse, day.cluster)
    )


def replaced_exports(published: Mapping[date, str], cluster: str, exports: Location | None) -> list[date]:
    """Return the published days whose export is there and is not the one that they were computed from.

    Those in an object store are not looked at: no export there is replaced.

    Args:
        published: Day -> SHA-256 of the manifest that it was computed from.
        cluster: The cluster.
        exports: Where its exports are.
    """
    if not isinstance(exports, Path):
        return []
    replaced = []
    for ds, sha256 in published.items():
        try:
            manifest = load_manifest(export_directory(exports, cluster, ds))
        except ExportError:
            continue  # It is gone, or the next run says what is wrong with it.
        if manifest.sha256 != sha256:
            replaced.append(ds)
    return replaced
