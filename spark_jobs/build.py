"""The Spark job of one day of one cluster: read the export, compute silver and gold, stage them.

`spark-submit spark_jobs/build.py --cluster C --ds D --exports DIR --warehouse DIR [--settings FILE]`
"""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    # spark-submit puts this file's folder on the path, not the project's.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.sql import functions as F

from rebalance_ledger.exports.catalog import compared_exports
from rebalance_ledger.exports.manifest import ExportError, check_unchanged, export_directory, load_manifest
from rebalance_ledger.gate.policy import GATE_NAMES
from rebalance_ledger.progress import heartbeat, logged_to
from rebalance_ledger.result_file import write_result
from rebalance_ledger.settings import ClusterSettings, SettingsError, load_settings
from rebalance_ledger.storage.location import InvalidLocationError, location_of
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
from rebalance_ledger.warehouse.baseline import COMPARED_TABLES, newest_earlier_day, write_baseline
from rebalance_ledger.warehouse.content import DayRows
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.identity import RunIdentity, code_version
from rebalance_ledger.warehouse.inventory import inventory_of_stage
from rebalance_ledger.warehouse.layout import OFFSET_READINGS, Warehouse
from rebalance_ledger.warehouse.staging import attempt, finish
from spark_jobs.assignment.allocation import SPREAD_BOUNDS
from spark_jobs.assignment.subscriptions import subscriptions
from spark_jobs.baseline import baseline_rows
from spark_jobs.findings.explanations import with_roots
from spark_jobs.gold.assignment_churn import assignment_churn
from spark_jobs.gold.assignment_fairness import assignment_fairness
from spark_jobs.gold.broadcast_offset import broadcast_offset
from spark_jobs.gold.broadcast_offset_file import broadcast_offset_file
from spark_jobs.gold.finding import finding
from spark_jobs.gold.ownership_drift import ownership_drift
from spark_jobs.gold.producer_spread import producer_spread
from spark_jobs.gold.queue_assignment import allocated, queue_assignment, route_missing
from spark_jobs.gold.queue_sharing import queue_sharing
from spark_jobs.gold.route_divergence import route_divergence
from spark_jobs.session import spark_session, suited_to, thread_pool, without_temp_views
from spark_jobs.silver.offset_file_snapshots import readings
from spark_jobs.silver.reader import read_silver
from spark_jobs.staging import write_table, write_tables, write_work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future, ThreadPoolExecutor

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.exports.catalog import EarlierExport
    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import StagingArea
    from spark_jobs.baseline import BaselineRows


def build(
    spark: SparkSession,
    *,
    exports: Location,
    warehouse: Warehouse,
    settings: ClusterSettings,
    cluster: str,
    ds: date,
) -> RunIdentity:
    """Stage one day: every silver table, the computed gold tables, and the record of what they were computed from.

    Raises:
        ExportError: the day has no sealed export, or it is not as it was sealed when all of it has been read.
        QueryError: the earlier published day cannot be read.
    """
    directory = export_directory(exports, cluster, ds)
    manifest = load_manifest(directory, cluster=cluster, ds=ds)
    looked_at = compared_exports(exports, manifest)
    earlier = tuple(export for export in looked_at or () if export.has_offset_files)
    compared = newest_earlier_day(warehouse, cluster, ds, COMPARED_TABLES)
    identity = RunIdentity(
        manifest.sha256,
        settings.sha256,
        code_version(),
        None if looked_at is None else tuple(export.reference for export in looked_at),
        compared.ds if compared else None,
        compared.content if compared else (),
    )
    export_bytes = sum(file.size_bytes for file in manifest.files)
    with (
        attempt(warehouse, cluster, ds) as stage,
        suited_to(spark, export_bytes),
        without_temp_views(spark),
    ):
        before = baseline_rows(spark, compared) if compared else None
        _stage_day(spark, stage, directory, manifest, earlier, before, settings)
        # If the export changed while it was read, the staged data is invalid.
        check_unchanged(directory, manifest)
        if compared:
            write_baseline(warehouse, stage, compared)
        inventory = inventory_of_stage(stage, DayRows(cluster, ds))
        finish(warehouse, cluster, ds, stage, identity.build, inventory)
        write_result(run_id=identity.run_id, row_counts={table.name: table.row_count for table in inventory})
    return identity


def _stage_day(
    spark: SparkSession,
    stage: StagingArea,
    directory: Location,
    manifest: Manifest,
    earlier: tuple[EarlierExport, ...],
    before: BaselineRows | None,
    settings: ClusterSettings,
) -> None:
    """Compute and write every table of a stage.

    Planning takes one core and most of a small day, so tables are computed side by side: each waits for those that it
    reads, which are begun before it.
    """
    day = {"cluster": F.lit(manifest.cluster), "ds": F.lit(manifest.ds)}
    silver = write_tables(spark, stage, SILVER_TABLES, read_silver(spark, str(directory), manifest, stage))
    begun: dict[Table, Future[DataFrame]] = {}

    def gold(table: Table) -> DataFrame:
        return begun[table].result()

    # Findings have threads of their own: most of them need few tables, and are planned while the others are computed.
    with thread_pool(spark) as pool, thread_pool(spark) as pool_of_findings:

        def work(
            name: str, rows: Callable[[], DataFrame], threads: ThreadPoolExecutor = pool
        ) -> Callable[[], DataFrame]:
            return threads.submit(lambda: write_work(spark, stage, name, rows())).result

        def begin(table: Table, rows: Callable[[], DataFrame]) -> None:
            begun[table] = pool.submit(lambda: write_table(spark, stage, table, rows().withColumns(day)))

        shared = work("subscription", lambda: subscriptions(silver, before))
        files_read = work(OFFSET_READINGS, lambda: readings(spark, silver, str(directory), manifest, earlier))
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
        findings = work("finding", lambda: finding(silver, shared(), gold), pool_of_findings)
        begin(FINDING, lambda: with_roots(findings()))
    for written in begun.values():
        written.result()


def _queue_assignment(
    silver: Mapping[str, DataFrame], shared: DataFrame, settings: ClusterSettings
) -> DataFrame:
    owners = queue_assignment(allocated(shared, settings))
    return owners.unionByName(route_missing(shared, silver["observed_owner"]))


def main() -> int:
    """Run the job from the command line; return the exit code (0 done, 2 bad input)."""
    parser = argparse.ArgumentParser(description="Compute and stage one day of one cluster.")
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--ds", required=True, type=date.fromisoformat)
    parser.add_argument("--exports", required=True)
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--settings", type=Path)
    given = parser.parse_args()
    try:
        clusters = load_settings(given.settings, GATE_NAMES).clusters if given.settings else {}
        with logged_to(sys.stdout), heartbeat():
            spark = spark_session(f"rebalance-ledger {given.cluster} {given.ds}")
            build(
                spark,
                exports=location_of(given.exports),
                warehouse=Warehouse.at(given.warehouse),
                settings=clusters.get(given.cluster, ClusterSettings()),
                cluster=given.cluster,
                ds=given.ds,
            )
    except (InvalidLocationError, ExportError, SettingsError, QueryError) as error:
        write_result(reason=str(error), is_refusal=True)
        print(error, file=sys.stderr)  # noqa: T201 - the reason, for the log of the task
        return 2
    except Exception as error:
        write_result(reason=f"{type(error).__name__}: {error}")
        raise
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
