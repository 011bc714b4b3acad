"""Find published days that are out of date: their baseline has changed (view `outdated_day`), or their export was replaced."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.exports.manifest import ExportError, export_directory, load_manifest
from rebalance_ledger.warehouse.errors import NoWarehouseError
from rebalance_ledger.warehouse.identity import code_version
from rebalance_ledger.warehouse.query import open_tables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from rebalance_ledger.pipeline.day import Day
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.layout import Warehouse

EXPORT_REPLACED: Final = "export_replaced"
"""Reason: the day's export was replaced, because a further attempt at its capture completed it."""

_CHECKED_DAYS_IN_STORE: Final = 7

_SOURCES: Final = "SELECT ds, manifest_sha256, settings_sha256, code_version FROM publication"
_OUTDATED: Final = "SELECT ds, reasons FROM outdated_day ORDER BY ds"


class StaleDay(NamedTuple):
    """A published day that is out of date.

    Attributes:
        cluster: Name of the cluster.
        ds: The day.
        reasons: Reasons of the view, and `EXPORT_REPLACED`.
    """

    cluster: str
    ds: date
    reasons: tuple[str, ...]


class PublishedDays(NamedTuple):
    """The published days of a cluster at one snapshot of the warehouse.

    Attributes:
        sources: Day -> SHA-256 of its manifest, SHA-256 of its settings and version of the code.
        outdated: Day -> reasons of the view `outdated_day`, for the days that it has; the earliest first.
    """

    sources: dict[date, tuple[str, str, str]]
    outdated: dict[date, tuple[str, ...]]


def published_days(warehouse: Warehouse, cluster: str) -> PublishedDays:
    """Return the published days of a cluster; none if the warehouse has no published day.

    Raises:
        QueryError: The warehouse cannot be read.
    """
    try:
        with open_tables(warehouse.root, (_SOURCES, _OUTDATED), cluster=cluster) as tables:
            sources = {ds: tuple(of_day) for ds, *of_day in tables.query(_SOURCES).rows}
            outdated = {ds: tuple(reasons) for ds, reasons in tables.query(_OUTDATED).rows}
    except NoWarehouseError:
        return PublishedDays({}, {})
    return PublishedDays(sources, outdated)


def stale_days(warehouse: Warehouse, cluster: str, exports: Location | None = None) -> tuple[StaleDay, ...]:
    """Return the days of a cluster that are out of date, the earliest first.

    Args:
        warehouse: The warehouse.
        cluster: Name of the cluster.
        exports: Location of the exports; None to ignore replaced exports.

    Raises:
        QueryError: The warehouse cannot be read.
    """
    published = published_days(warehouse, cluster)
    reasons = dict(published.outdated)
    manifests = {ds: manifest for ds, (manifest, _, _) in published.sources.items()}
    for ds in replaced_exports(manifests, cluster, exports):
        reasons[ds] = (*reasons.get(ds, ()), EXPORT_REPLACED)
    return tuple(StaleDay(cluster, ds, of_day) for ds, of_day in sorted(reasons.items()))


def is_up_to_date(day: Day, published: PublishedDays | None = None) -> bool:
    """Return whether a day is published from the current export, settings and code, and from an unchanged baseline.

    Args:
        day: The day, with a sealed export.
        published: The published days of its cluster; None to read them.

    Raises:
        ExportError: The day has no sealed export.
        QueryError: The warehouse cannot be read.
        SettingsError: The settings file is wrong.
    """
    manifest = load_manifest(export_directory(day.exports, day.cluster, day.ds))
    present = (manifest.sha256, day.settings.sha256, code_version())
    if published is None:
        published = published_days(day.warehouse, day.cluster)
    return published.sources.get(day.ds) == present and day.ds not in published.outdated


def replaced_exports(published: Mapping[date, str], cluster: str, exports: Location | None) -> list[date]:
    """Return the published days whose export was replaced since they were computed, the earliest first.

    In an object store, each manifest is a request, so only the newest days are checked: a capture is repeated on its own day only, and
    exports there are never redacted afterwards.

    Args:
        published: Day -> SHA-256 of the manifest from which it was computed.
        cluster: Name of the cluster.
        exports: Location of the exports; None to check nothing.
    """
    if exports is None:
        return []
    days = sorted(published)
    if not isinstance(exports, Path):
        days = days[-_CHECKED_DAYS_IN_STORE:]
    replaced = []
    for ds in days:
        try:
            manifest = load_manifest(export_directory(exports, cluster, ds))
        except ExportError:
            continue  # It was removed, or the next run reports the error.
        if manifest.sha256 != published[ds]:
            replaced.append(ds)
    return replaced
