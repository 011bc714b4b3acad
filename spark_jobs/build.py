"""Computing days in Spark: read the exports, compute silver and gold, stage them.

Belongs here: which table is computed from which. Does not belong here: which days are computed together (`side_by_side`), and the program
that Airflow submits (`day_job`).
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from rebalance_ledger.exports.catalog import compared_exports
from rebalance_ledger.exports.manifest import export_directory, load_manifest
from rebalance_ledger.tables import (
    ASSIGNMENT_CHURN,
    ASSIGNMENT_FAIRNESS,
    BROADCAST_OFFSET,
    BROADCAST_OFFSET_FILE,
    FINDING,
    OWNERSHIP_DRIFT,
    PRODUCER_SPREAD,
    QUEUE_ASSIGNMENT,
    QUEUE_SHARING,
    ROUTE_DIVERGENCE,
    SILVER_TABLES,
)
from rebalance_ledger.warehouse.baseline import COMPARED_TABLES, EarlierDay, newest_earlier_day
from rebalance_ledger.warehouse.staging import attempt
from spark_jobs.assignment.allocation import SPREAD_BOUNDS
from spark_jobs.assignment.subscriptions import subscriptions
from spark_jobs.baseline import BaselineRows
from spark_jobs.findings.explanations import with_roots
from spark_jobs.gold.assignment_churn import assignment_churn
from spark_jobs.gold.assignment_fairness import assignment_fairness
from spark_jobs.gold.broadcast_offset import broadcast_offset
from spark_jobs.gold.broadcast_offset_file import broadcast_offset_file
from spark_jobs.gold.finding import findings_of_inputs, findings_of_results
from spark_jobs.gold.ownership_drift import ownership_drift
from spark_jobs.gold.producer_spread import producer_spread
from spark_jobs.gold.queue_assignment import allocated, queue_assignment, route_missing
from spark_jobs.gold.queue_sharing import queue_sharing
from spark_jobs.gold.route_divergence import route_divergence
from spark_jobs.session import suited_to, thread_pool, without_temp_views
from spark_jobs.silver.day_export import DayExport
from spark_jobs.silver.offset_file_snapshots import readings
from spark_jobs.silver.reader import read_silver
from spark_jobs.staged_day import StagedDay
from spark_jobs.staging import write_readings, write_table, write_tables, write_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from concurrent.futures import Future
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.settings import ClusterSettings
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import Warehouse
    from spark_jobs.staged_day import StageResult


def build(
    spark: SparkSession,
    *,
    exports: Location,
    warehouse: Warehouse,
    settings: ClusterSettings,
    cluster: str,
    ds: date,
) -> StageResult:
    """Stage one day: every silver table, the computed gold tables, and the record of what they were computed from.

    Raises:
        ExportError: the day has no sealed export, or it is not as it was sealed when all of it has been read.
        QueryError: the earlier published day cannot be read.
    """
    with build_days(
        spark, exports=exports, warehouse=warehouse, settings={cluster: settings}, days=[(cluster, ds)]
    ) as staged:
        return staged[cluster, ds].finish()


@contextmanager
def build_days(
    spark: SparkSession,
    *,
    exports: Location,
    warehouse: Warehouse,
    settings: Mapping[str, ClusterSettings],
    days: Iterable[tuple[str, date]],
) -> Iterator[dict[tuple[str, date], StagedDay]]:
    """Compute some days side by side, each as it is computed alone.

    A day is compared with the newest earlier one: of those that are published, and of those that are computed with it.

    Args:
        spark: the session.
        exports: folder of all clusters.
        warehouse: where the stages are.
        settings: those of each cluster; all have the same hypothetical strategies.
        days: cluster and ds of each day.

    Yields:
        The days, in order, whose stages are not whole before `finish`. Stages are locked as long as the block.

    Raises:
        ExportError: a day has no sealed export.
        QueryError: an earlier published day cannot be read.
    """
    with ExitStack() as attempts:
        staged: dict[tuple[str, date], StagedDay] = {}
        for cluster, ds in sorted(days):
            directory = export_directory(exports, cluster, ds)
            manifest = load_manifest(directory, cluster=cluster, ds=ds)
            looked_at = compared_exports(exports, manifest)
            earlier = tuple(export for export in looked_at or () if export.has_offset_files)
            staged[cluster, ds] = StagedDay(
                warehouse,
                attempts.enter_context(attempt(warehouse, cluster, ds)),
                DayExport(directory, manifest, earlier),
                settings_sha256=settings[cluster].sha256,
                looked_at=looked_at,
                baseline=_baseline(warehouse, cluster, ds, staged),
            )
        largest_bytes = max(day.export.size_bytes for day in staged.values())
        with suited_to(spark, largest_bytes), without_temp_views(spark):
            _stage_days(spark, warehouse, staged, settings)
        yield staged


def _baseline(
    warehouse: Warehouse, cluster: str, ds: date, earlier: Mapping[tuple[str, date], StagedDay]
) -> EarlierDay | StagedDay | None:
    """Return the newest earlier day of a cluster: published, or one of `earlier`, whose last day is the newest."""
    published = newest_earlier_day(warehouse, cluster, ds, COMPARED_TABLES)
    computed = [day for (of_cluster, _), day in earlier.items() if of_cluster == cluster]
    if computed and (published is None or published.ds <= computed[-1].export.manifest.ds):
        return computed[-1]
    return published


def _stage_days(
    spark: SparkSession,
    warehouse: Warehouse,
    days: Mapping[tuple[str, date], StagedDay],
    settings: Mapping[str, ClusterSettings],
) -> None:
    """Compute and write every table of the days' stages.

    Planning takes one core and most of a small day, so tables are computed side by side: each waits for those that it
    reads, which are begun before it.
    """
    exports = [day.export for day in days.values()]
    stages = {key: day.stage for key, day in days.items()}
    keep = partial(write_work, spark, stages)
    silver = write_tables(spark, stages, SILVER_TABLES, read_silver(spark, exports, stages))
    begun: dict[Table, Future[DataFrame]] = {}

    def gold(table: Table) -> DataFrame:
        return begun[table].result()

    before = BaselineRows(
        spark,
        warehouse,
        {key: day.baseline for key, day in days.items() if isinstance(day.baseline, EarlierDay)},
        {
            key: day.baseline.export.manifest.ds
            for key, day in days.items()
            if isinstance(day.baseline, StagedDay)
        },
        lambda table: gold(table) if table in begun else silver[table.name],
    )
    # Findings have threads of their own: most of them need few tables, and are planned while the others are computed.
    with thread_pool(spark) as pool, thread_pool(spark) as pool_of_findings:

        def begin(table: Table, rows: Callable[[], DataFrame]) -> None:
            begun[table] = pool.submit(lambda: write_table(spark, stages, table, rows()))

        shared = pool.submit(lambda: keep("subscription", subscriptions(silver, before, keep))).result
        files_read = pool.submit(
            lambda: write_readings(spark, stages, readings(spark, silver, exports))
        ).result
        begin(ROUTE_DIVERGENCE, lambda: route_divergence(silver))
        begin(PRODUCER_SPREAD, lambda: producer_spread(silver))
        begin(QUEUE_ASSIGNMENT, lambda: _queue_assignment(silver, shared(), settings))
        begin(QUEUE_SHARING, lambda: queue_sharing(silver, shared()))
        begin(BROADCAST_OFFSET_FILE, lambda: broadcast_offset_file(silver, shared(), files_read()))
        begin(
            ASSIGNMENT_FAIRNESS,
            lambda: assignment_fairness(gold(QUEUE_ASSIGNMENT), shared(), SPREAD_BOUNDS),
        )
        begin(
            OWNERSHIP_DRIFT,
            lambda: ownership_drift(
                silver,
                shared(),
                {table.name: gold(table) for table in (QUEUE_ASSIGNMENT, QUEUE_SHARING, ROUTE_DIVERGENCE)},
                settings,
            ),
        )
        begin(
            BROADCAST_OFFSET,
            lambda: broadcast_offset(silver, shared(), files_read(), gold(BROADCAST_OFFSET_FILE)),
        )
        begin(
            ASSIGNMENT_CHURN,
            lambda: assignment_churn(
                gold(QUEUE_ASSIGNMENT),
                gold(ASSIGNMENT_FAIRNESS),
                silver["consumer_connection"],
                gold(OWNERSHIP_DRIFT),
                before,
            ),
        )
        of_inputs = pool_of_findings.submit(
            lambda: keep("finding_of_inputs", findings_of_inputs(silver, shared(), gold, before))
        ).result
        of_results = pool_of_findings.submit(
            lambda: keep("finding_of_results", findings_of_results(silver, shared(), gold))
        ).result
        begin(FINDING, lambda: with_roots(of_inputs().unionByName(of_results())))
    for written in begun.values():
        written.result()


def _queue_assignment(
    silver: Mapping[str, DataFrame], shared: DataFrame, settings: Mapping[str, ClusterSettings]
) -> DataFrame:
    owners = queue_assignment(allocated(shared, settings))
    return owners.unionByName(route_missing(shared, silver["observed_owner"]))
