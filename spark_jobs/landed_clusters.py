"""Choose the other clusters whose exports of a day an application stages together with the requested one.

Belongs here: the choice, and whether a day is already staged or published. Does not belong here: the computation (`side_by_side`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_ledger.driver_options import SIDE_BY_SIDE_BYTES
from rebalance_ledger.exports.catalog import compared_exports
from rebalance_ledger.exports.manifest import ExportError, export_directory, load_manifest
from rebalance_ledger.progress import LOGGER
from rebalance_ledger.tables import PUBLICATION
from rebalance_ledger.warehouse.baseline import COMPARED_TABLES, newest_earlier_day
from rebalance_ledger.warehouse.data_files import PublishedDay
from rebalance_ledger.warehouse.errors import NoWarehouseError, QueryError, StagingError
from rebalance_ledger.warehouse.snapshot import Snapshot
from rebalance_ledger.warehouse.staging import check_inventory, is_being_computed, newest_stage, read_build
from spark_jobs.staged_day import StageResult, identity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.settings import ClusterSettings
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.layout import Warehouse
    from spark_jobs.side_by_side import DayKey


def staged_result(
    exports: Location, warehouse: Warehouse, settings: ClusterSettings, day: DayKey
) -> StageResult | None:
    """Return the result of the whole stage that a build of the day would repeat; None if there is none.

    Raises:
        ExportError: The day has no sealed export.
        QueryError: The earlier published day cannot be read.
    """
    cluster, ds = day
    manifest = load_manifest(export_directory(exports, cluster, ds), cluster=cluster, ds=ds)
    return _staged(warehouse, day, _run_id(exports, warehouse, settings, manifest))


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
) -> list[DayKey]:
    """Reserve and return the same day of other clusters, if it has landed and is not yet staged, published or being computed.

    A damaged export is skipped: the cluster's own build reports the error.

    Args:
        exports: Folder of all clusters.
        warehouse: Where days are staged and published.
        settings: The clusters, with their settings.
        day: Cluster and ds of the day that is computed anyway.
        reserve: Reserves a day for this application; false if another one has it.
    """
    cluster, ds = day
    own = load_manifest(export_directory(exports, cluster, ds), cluster=cluster, ds=ds)
    total_bytes = sum(file.size_bytes for file in own.files)
    beside = []
    for other in sorted(settings.keys() - {cluster}):
        try:
            manifest = load_manifest(export_directory(exports, other, ds), cluster=other, ds=ds)
            size_bytes = sum(file.size_bytes for file in manifest.files)
            if total_bytes + size_bytes > SIDE_BY_SIDE_BYTES or is_being_computed(warehouse, other, ds):
                continue
            run_id = _run_id(exports, warehouse, settings[other], manifest)
            key = (other, ds)
            is_done = _staged(warehouse, key, run_id) or _is_published(warehouse, key, run_id)
            if is_done or not reserve(key):
                continue
            # Again: the application that had reserved it may have staged it meanwhile.
            if _staged(warehouse, key, run_id):
                continue
        except (ExportError, QueryError) as error:
            LOGGER.info("%s is not computed beside: %s", other, error)
            continue
        total_bytes += size_bytes
        beside.append(key)
    return beside


def _run_id(exports: Location, warehouse: Warehouse, settings: ClusterSettings, manifest: Manifest) -> str:
    """Return the id that a build of the day would have now."""
    before = newest_earlier_day(warehouse, manifest.cluster, manifest.ds, COMPARED_TABLES)
    return identity_of(manifest, settings.sha256, compared_exports(exports, manifest), before).run_id


def _is_published(warehouse: Warehouse, day: DayKey, run_id: str) -> bool:
    try:
        published = Snapshot(warehouse.root).published(PUBLICATION).rows([PublishedDay(*day)], ["run_id"])
    except NoWarehouseError:
        return False
    return any(row["run_id"] == run_id for row in published)
