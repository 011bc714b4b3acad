"""# The daily export of live clusters.

For every cluster with `collect:` in its settings: queries its name servers, brokers and clients once a
day, and lands the answers as that day's sealed export, which starts the cluster's run of the DAG `cluster_ledger`.

| task | does | when it fails |
|---|---|---|
| `clusters` | reads from the settings file which clusters are collected | the settings file is wrong: correct it. Skipped where no cluster is collected |
| `collect` | lands today's export, unless a complete one is there already | a cluster out of reach is tried again; the message names who did not answer, and nothing that looks like an export is left. A degraded or failed capture has landed; each retry asks again what it lacks. After the last one a degraded export is taken as it is, and a failed one fails the task |
| `prune` | names the exports that are older than the settings keep; removes them only with `dry_run: false` | an export could not be removed: see the message |

**Which date is `ds`?** The UTC day of the run's logical date. **A run for a past day never queries a live cluster**: it
uses the export that landed on that day, or fails with a message that names the missing export.

A name server, broker or client that does not answer does not fail the run: its answers are errors in the export, and values that
depend on them are unknown in the ledger. Clearing a run whose export has landed and is complete changes nothing; while the day
(UTC) lasts, a degraded or failed one is completed.

Credentials are an Airflow connection, named in the settings. The slots of the pool `cluster_export` limit how many
clusters are queried at a time. Each landed export is an event of the asset `ledger://exports` with the partition key `<cluster>|<ds>`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import CronTriggerTimetable, dag, task, task_group
from airflow.sdk.exceptions import AirflowSkipException

from rebalance_ledger.operators.collection import CollectExportOperator, PruneExportsOperator
from rebalance_ledger.operators.flow import EXPORTS
from rebalance_ledger.operators.ledger import retry_policy, settings_now


@dag(
    dag_id="cluster_export",
    description="Daily answers of the name servers, brokers and clients of each cluster, landed as one sealed export.",
    doc_md=__doc__,
    # Early, so that the whole day remains for retries; without an interval, so that `ds` is the day of the run itself.
    schedule=CronTriggerTimetable("0 1 * * *", timezone="UTC"),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    # Two runs of a day would only wait for each other.
    max_active_runs=1,
    default_args=retry_policy(),
    tags=["rocketmq", "ledger"],
)
def cluster_export() -> None:
    """Define the day's tasks and their dependencies."""

    @task(doc_md="Reads the collected clusters from the settings file that `LEDGER_SETTINGS` names.")
    def clusters() -> list[str]:
        collected = [name for name, settings in settings_now().clusters.items() if settings.collect]
        if not collected:
            raise AirflowSkipException(
                "No cluster in the settings has `collect:`, so there is nothing to do."
            )
        return sorted(collected)

    @task_group
    def cluster_day(cluster: str) -> None:
        name = "{{ task.cluster }}"
        landed = CollectExportOperator(
            task_id="collect",
            cluster=cluster,
            map_index_template=name,
            execution_timeout=timedelta(hours=3),
            pool="cluster_export",
            outlets=[EXPORTS],
            doc_md="Queries the live cluster and lands today's export. For a past day it only looks for the landed export.",
        )
        pruned = PruneExportsOperator(
            task_id="prune",
            cluster=cluster,
            map_index_template=name,
            # A task that never starts has no name; after a failure this one starts, and fails by itself.
            trigger_rule="none_skipped",
            doc_md="Names old exports; removes them only if the settings say `dry_run: false`.",
        )
        landed >> pruned

    cluster_day.expand(cluster=clusters())


cluster_export()
