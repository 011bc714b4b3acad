"""The Spark job of one day of one cluster: read the export, compute silver and gold, stage them, measure the stage.

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

from settings import ClusterSettings, SettingsError, load_settings
from spark_jobs.allocation import SPREAD_BOUNDS
from spark_jobs.fairness import assignment_fairness
from spark_jobs.finding import finding
from spark_jobs.queue_assignment import allocated, kept_without_route, queue_assignment
from spark_jobs.session import spark_session
from spark_jobs.silver import read_silver
from spark_jobs.stage import clear_stage, write_build, write_measures, write_tables, write_work
from spark_jobs.subscriptions import subscriptions
from tables import ASSIGNMENT_FAIRNESS, FINDING, QUEUE_ASSIGNMENT, SILVER_TABLES
from topology.manifest import ExportError, export_directory, load_manifest
from warehouse.identity import RunIdentity, code_version
from warehouse.layout import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tables import Table


def build(
    spark: SparkSession,
    *,
    exports: Path,
    warehouse: Warehouse,
    settings: ClusterSettings,
    cluster: str,
    ds: date,
) -> RunIdentity:
    """Stage one day: every silver table, the computed gold tables, the gate's measures, the record of the build.

    Raises:
        ExportError: the day has no sealed export.
    """
    directory = export_directory(exports, cluster, ds)
    manifest = load_manifest(directory)
    identity = RunIdentity(manifest.sha256, settings.sha256, code_version())
    stage = warehouse.stage(cluster, ds)
    clear_stage(spark, stage)
    parsed = read_silver(spark, str(directory), manifest, cluster, ds)
    silver = write_tables(spark, stage, SILVER_TABLES, parsed)
    shared = write_work(spark, stage, "subscription", subscriptions(silver))

    def write(table: Table, rows: DataFrame) -> dict[str, DataFrame]:
        whole = rows.withColumns({"cluster": F.lit(cluster), "ds": F.lit(ds)})
        return write_tables(spark, stage, [table], {table.name: whole})

    owners = queue_assignment(allocated(shared, settings))
    kept = kept_without_route(shared, silver["observed_owner"])
    gold = write(QUEUE_ASSIGNMENT, owners.unionByName(kept))
    gold |= write(ASSIGNMENT_FAIRNESS, assignment_fairness(gold["queue_assignment"], shared, SPREAD_BOUNDS))
    gold |= write(FINDING, finding(silver, shared, gold["queue_assignment"], gold["assignment_fairness"]))
    write_measures(spark, stage, silver | gold, manifest, cluster, ds)
    write_build(spark, stage, identity)
    return identity


def main() -> int:
    """Run the job from the command line; returns the exit code (0 done, 2 bad input)."""
    parser = argparse.ArgumentParser(description="Compute and stage one day of one cluster.")
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--ds", required=True, type=date.fromisoformat)
    parser.add_argument("--exports", required=True, type=Path)
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--settings", type=Path)
    given = parser.parse_args()
    try:
        clusters = load_settings(given.settings).clusters if given.settings else {}
        spark = spark_session(f"rebalance-ledger {given.cluster} {given.ds}")
        build(
            spark,
            exports=given.exports.resolve(),
            warehouse=Warehouse.at(given.warehouse),
            settings=clusters.get(given.cluster, ClusterSettings()),
            cluster=given.cluster,
            ds=given.ds,
        )
    except (ExportError, SettingsError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - the reason, for the log of the task
        return 2
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
