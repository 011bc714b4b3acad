"""Build days in Spark: read the sealed exports, compute the silver and gold tables, and stage them.

Belongs here: which table is computed from which. Does not belong here: which days are computed together (`side_by_side`), and the
program that Airflow submits (`day_job`).
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
)
from rebalance_ledger.warehouse.baseline import COMPARED_TABLES, EarlierDay, newest_earlier_day
from rebalance_ledger.warehouse.staging import attempt
from spark_jobs.assignment.allocation import SPREAD_BOUNDS
from spark_jobs.assignment.routes import client_routes
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
from spark_jobs.silver.reader import stage_silver
from spark_jobs.staged_day import StagedDay
from spark_jobs.staging import write_readings, write_table, write_work

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
    """Stage one day: all silver tables, the computed gold tables, and a record of their inputs.

    Raises:
        ExportError: The day has no sealed export, or the export changed while it was read.
        QueryError: The earlier published day cannot be read.
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
    """Compute several days in one Spark plan; the result of each is the same as if it were computed alone.

    The baseline of a day is the newest earlier day, among the published days and the days that are computed with it.

    Args:
        spark: The session.
        exports: Location of all clusters' exports.
        warehouse: Location of the staging areas and published tables.
        settings: The settings of each cluster; all have the same hypothetical strategies.
        days: Cluster and ds of each day.

    Yields:
        The computed days, in order. Call `StagedDay.finish` to complete a stage. Stages are locked within the block.

    Raises:
        ExportError: A day has no sealed export.
        QueryError: An earlier published day cannot be read.
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
    """Return the newest earlier day of a cluster, published or in `earlier`, which is in ascending order of days."""
    published = newest_earlier_day(warehouse, cluster, ds, COMPARED_TABLES)
    computed = [day for (day_cluster, _), day in earlier.items() if day_cluster == cluster]
    if computed and (published is None or published.ds <= computed[-1].export.manifest.ds):
        return computed[-1]
    return published


def _stage_days(
    spark: SparkSession,
    warehouse: Warehouse,
    days: Mapping[tuple[str, date], StagedDay],
    settings: Mapping[str, ClusterSettings],
) -> None:
    """Compute and write every table of the days' stages: silver first, then gold, then findings.

    Planning takes one core and most of the time of a small day, so gold tables are computed in concurrent threads. A
    table waits for the tables that it reads, which must be submitted before it.
    """
    exports = [day.export for day in days.values()]
    stages = {key: day.stage for key, day in days.items()}
    write_intermediate = partial(write_work, spark, stages)
    silver = stage_silver(spark, exports, stages)
    submitted: dict[Table, Future[DataFrame]] = {}

    def gold(table: Table) -> DataFrame:
        """Return a gold table as it was written; wait until it is."""
        return submitted[table].result()

    baseline = BaselineRows(
        spark,
        warehouse,
        {key: day.baseline for key, day in days.items() if isinstance(day.baseline, EarlierDay)},
        {
            key: day.baseline.export.manifest.ds
            for key, day in days.items()
            if isinstance(day.baseline, StagedDay)
        },
        lambda table: gold(table) if table in submitted else silver[table.name],
    )
    # Findings have a thread pool of their own: most need few tables, and are planned while the others are computed.
    with thread_pool(spark) as table_pool, thread_pool(spark) as finding_pool:

        def submit(table: Table, rows: Callable[[], DataFrame]) -> None:
            submitted[table] = table_pool.submit(lambda: write_table(spark, stages, table, rows()))

        # Intermediate results that several tables read. Each call waits until the result is written.
        routes = table_pool.submit(lambda: write_intermediate("route", client_routes(silver))).result
        subscription_rows = table_pool.submit(
            lambda: write_intermediate(
                "subscription", subscriptions(silver, routes, baseline, write_intermediate)
            )
        ).result
        offset_readings = table_pool.submit(
            lambda: write_readings(spark, stages, readings(spark, silver, exports))
        ).result

        # Tables that read no other gold table.
        submit(ROUTE_DIVERGENCE, lambda: route_divergence(silver))
        submit(PRODUCER_SPREAD, lambda: producer_spread(silver))
        submit(QUEUE_ASSIGNMENT, lambda: _queue_assignment(silver, subscription_rows(), settings))
        submit(QUEUE_SHARING, lambda: queue_sharing(silver, subscription_rows()))
        submit(
            BROADCAST_OFFSET_FILE,
            lambda: broadcast_offset_file(silver, subscription_rows(), offset_readings()),
        )

        # Tables that read the ones above.
        submit(
            ASSIGNMENT_FAIRNESS,
            lambda: assignment_fairness(gold(QUEUE_ASSIGNMENT), subscription_rows(), SPREAD_BOUNDS),
        )
        submit(
            OWNERSHIP_DRIFT,
            lambda: ownership_drift(
                silver,
                subscription_rows(),
                {table.name: gold(table) for table in (QUEUE_ASSIGNMENT, QUEUE_SHARING, ROUTE_DIVERGENCE)},
                settings,
            ),
        )
        submit(
            BROADCAST_OFFSET,
            lambda: broadcast_offset(
                silver, routes(), subscription_rows(), offset_readings(), gold(BROADCAST_OFFSET_FILE)
            ),
        )
        submit(
            ASSIGNMENT_CHURN,
            lambda: assignment_churn(
                gold(QUEUE_ASSIGNMENT),
                gold(ASSIGNMENT_FAIRNESS),
                silver["consumer_connection"],
                gold(OWNERSHIP_DRIFT),
                baseline,
            ),
        )

        # Findings, from the input and from all tables.
        input_findings = finding_pool.submit(
            lambda: write_intermediate(
                "finding_of_inputs", findings_of_inputs(silver, subscription_rows(), gold, baseline)
            )
        ).result
        result_findings = finding_pool.submit(
            lambda: write_intermediate(
                "finding_of_results", findings_of_results(silver, subscription_rows(), gold)
            )
        ).result
        submit(
            FINDING, lambda: with_roots(input_findings().unionByName(result_findings()), write_intermediate)
        )
    # Raise the error of a table that failed.
    for table in submitted.values():
        table.result()


def _queue_assignment(
    silver: Mapping[str, DataFrame], subscription_rows: DataFrame, settings: Mapping[str, ClusterSettings]
) -> DataFrame:
    """Return the assignment of topics with a route, and of topics without one whose queues clients still hold."""
    owners = queue_assignment(allocated(subscription_rows, settings))
    return owners.unionByName(route_missing(subscription_rows, silver["observed_owner"]))
