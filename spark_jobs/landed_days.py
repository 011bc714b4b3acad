"""Choose the landed exports that an application stages together with the requested one.

Belongs here: the choice, and whether a day is already staged or published. Does not belong here: the computation (`side_by_side`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from rebalance_ledger.driver_options import SIDE_BY_SIDE_BYTES
from rebalance_ledger.exports.catalog import compared_exports
from rebalance_ledger.exports.manifest import ExportError, export_directory, load_manifest
from rebalance_ledger.progress import LOGGER
from rebalance_ledger.tables import PUBLICATION
from rebalance_ledger.warehouse.baseline import COMPARED_TABLES, newest_earlier_day, write_baseline
from rebalance_ledger.warehouse.data_files import PublishedDay
from rebalance_ledger.warehouse.errors import NoWarehouseError, QueryError, StagingError
from rebalance_ledger.warehouse.snapshot import Snapshot
from rebalance_ledger.warehouse.staging import check_inventory, is_being_computed, newest_stage, read_build
from spark_jobs.side_by_side import MOST_DAYS
from spark_jobs.staged_day import StageResult, identity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.settings import ClusterSettings
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.baseline import EarlierDay
    from rebalance_ledger.warehouse.layout import Warehouse
    from spark_jobs.side_by_side import DayKey


def staged_result(
    exports: Location, warehouse: Warehouse, settings: ClusterSettings, day: DayKey
) -> StageResult | None:
    """Return the result of the whole stage that a build of the day would repeat; None if there is none.

    The stage gets the record of the published day that it was compared with: it may have been staged before that day was published.

    Raises:
        ExportError: The day has no sealed export.
        QueryError: The earlier published day cannot be read.
    """
    manifest = load_manifest(export_directory(exports, day[0], day[1]), cluster=day[0], ds=day[1])
    before = newest_earlier_day(warehouse, *day, COMPARED_TABLES)
    staged = _staged(warehouse, day, _run_id(exports, settings, manifest, before))
    if staged is not None and before is not None:
        write_baseline(warehouse, newest_stage(warehouse, *day), before)
    return staged


def _staged(warehouse: Warehouse, day: DayKey, run_id: str) -> StageResult | None:
    """Return the result of the newest whole stage of a day if it has this run id."""
    try:
        stage = newest_stage(warehouse, *day)
        if read_build(stage).run_id != run_id:
            return None
        return StageResult.of(run_id, check_inventory(stage))
    except StagingError:
        return None


def landed_beside(
    exports: Location,
    warehouse: Warehouse,
    settings: Mapping[str, ClusterSettings],
    day: DayKey,
    reserve: Callable[[DayKey], bool],
    *,
    through: date | None = None,
) -> list[DayKey]:
    """Reserve and return the other days that have landed and are not yet staged, published or being computed.

    These are the same day of other clusters, and the following days of all clusters up to `through`. The days of a cluster end at one that
    another application computes or that does not fit, because it is the baseline of the next one. A damaged export is skipped: its own build
    reports the error.

    Args:
        exports: Folder of all clusters.
        warehouse: Where days are staged and published.
        settings: The clusters, with their settings.
        day: Cluster and ds of the day that is computed anyway.
        reserve: Reserves a day for this application; false if another one has it.
        through: The last day; None for the same day only.
    """
    cluster, ds = day
    room_bytes = SIDE_BY_SIDE_BYTES - _size_bytes(load_manifest(export_directory(exports, cluster, ds)))
    days = [ds + timedelta(days=number) for number in range(((through or ds) - ds).days + 1)]
    beside: list[DayKey] = []
    for other in [cluster, *sorted(settings.keys() - {cluster})]:
        for other_day in days:
            key = (other, other_day)
            if key == day:
                continue
            try:
                manifest = load_manifest(export_directory(exports, *key), cluster=other, ds=other_day)
                size_bytes = _size_bytes(manifest)
                is_full = size_bytes > room_bytes or len(beside) + 1 == MOST_DAYS
                if is_full or is_being_computed(warehouse, *key):
                    break
                before = newest_earlier_day(warehouse, *key, COMPARED_TABLES)
                run_id = _run_id(exports, settings[other], manifest, before)
                if _is_published(warehouse, key, run_id):
                    continue
                if _staged(warehouse, key, run_id) or not reserve(key):
                    break
                # Again: the application that had reserved it may have staged it meanwhile.
                if _staged(warehouse, key, run_id):
                    break
            except (ExportError, QueryError) as error:
                LOGGER.info("%s %s is not computed beside: %s", *key, error)
                continue
            room_bytes -= size_bytes
            beside.append(key)
    return beside


def _size_bytes(manifest: Manifest) -> int:
    return sum(file.size_bytes for file in manifest.files)


def _run_id(
    exports: Location, settings: ClusterSettings, manifest: Manifest, before: EarlierDay | None
) -> str:
    """Return the id that a build of the day would have now."""
    return identity_of(manifest, settings.sha256, compared_exports(exports, manifest), before).run_id


def _is_published(warehouse: Warehouse, day: DayKey, run_id: str) -> bool:
    try:
        published = Snapshot(warehouse.root).published(PUBLICATION).rows([PublishedDay(*day)], ["run_id"])
    except NoWarehouseError:
        return False
    return any(row["run_id"] == run_id for row in published)
