"""Choose the landed exports that an application stages together with the requested one.

Belongs here: the choice. Does not belong here: the computation (`side_by_side`), and whether a day is already staged (`staged_day`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_ledger.driver_options import SIDE_BY_SIDE_BYTES
from rebalance_ledger.exports.catalog import landed_days
from rebalance_ledger.exports.manifest import ExportError, export_directory, load_manifest
from rebalance_ledger.progress import LOGGER
from rebalance_ledger.tables import PUBLICATION
from rebalance_ledger.warehouse.baseline import COMPARED_TABLES, newest_earlier_day
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.errors import NoWarehouseError, QueryError
from rebalance_ledger.warehouse.snapshot import Snapshot
from rebalance_ledger.warehouse.staging import is_being_computed
from spark_jobs.side_by_side import MOST_DAYS
from spark_jobs.staged_day import run_id_of, stage_of_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from rebalance_ledger.settings import ClusterSettings
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.layout import Warehouse
    from spark_jobs.side_by_side import DayKey


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

    These are the same day of other clusters, and the following days of all clusters up to `through`. The days of a cluster end at a day
    that another application computes or that does not fit, because it is the baseline of the next day. A damaged export is skipped,
    because its own build reports the error.

    Args:
        exports: Location of all clusters' exports.
        warehouse: The warehouse.
        settings: Cluster -> its settings.
        day: Cluster and ds of the requested day.
        reserve: Reserves a day for this application; returns false if another application has reserved it.
        through: The last day; None for the same day only.
    """
    cluster, ds = day
    room_bytes = SIDE_BY_SIDE_BYTES - load_manifest(export_directory(exports, cluster, ds)).size_bytes
    beside: list[DayKey] = []
    for other in [cluster, *sorted(settings.keys() - {cluster})]:
        for other_day in (ds, *_following_days(exports, other, ds, through)):
            key = (other, other_day)
            if key == day:
                continue
            try:
                manifest = load_manifest(export_directory(exports, *key), cluster=other, ds=other_day)
                size_bytes = manifest.size_bytes
                is_full = size_bytes > room_bytes or len(beside) + 1 == MOST_DAYS
                if is_full or is_being_computed(warehouse, *key):
                    break
                baseline = newest_earlier_day(warehouse, *key, COMPARED_TABLES)
                run_id = run_id_of(exports, settings[other], manifest, baseline)
                if _is_published(warehouse, key, run_id):
                    continue
                if stage_of_run(warehouse, key, run_id) or not reserve(key):
                    break
                # Check again, because the application that had reserved the day may have staged it in the meantime.
                if stage_of_run(warehouse, key, run_id):
                    break
            except (ExportError, QueryError) as error:
                LOGGER.info("%s %s is not computed beside: %s", *key, error)
                continue
            room_bytes -= size_bytes
            beside.append(key)
    return beside


def _following_days(exports: Location, cluster: str, ds: date, through: date | None) -> list[date]:
    """Return the landed days after `ds` up to `through`; none for a cluster whose name is not a valid folder name."""
    try:
        return [day for day in landed_days(exports, cluster) if through and ds < day <= through]
    except ExportError:
        return []


def _is_published(warehouse: Warehouse, day: DayKey, run_id: str) -> bool:
    try:
        published = Snapshot(warehouse.root).published(PUBLICATION).rows([ClusterDay(*day)], ["run_id"])
    except NoWarehouseError:
        return False
    return any(row["run_id"] == run_id for row in published)
