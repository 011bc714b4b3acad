"""# Cluster export: collect the daily export of live clusters.

Once a day, this DAG queries the name servers, brokers and clients of every cluster with `collect:` in its settings, and lands the
answers as that day's sealed export. The landed export starts the cluster's run of the DAG `cluster_ledger`.

| task | action | on failure |
|---|---|---|
| `clusters` | the requested clusters, or all with `collect:` in the settings file; skipped if there are none | a name is unknown, or the settings file is wrong |
| `collect` | lands today's export, unless a complete one has landed already | see below |
| `prune` | lists the exports that are older than the retention period and whose days are published; removes them only with `dry_run: false` | the message names the export that could not be removed |

**Failures of `collect`.** If a cluster cannot be reached, the task is retried, its message names the sources that did not answer, and no
partial export is left. A degraded or failed capture lands, and each retry asks again for the missing answers. After the last retry a
degraded export is accepted, and a failed one fails the task.

**Sources that do not answer.** One name server, broker or client that does not answer does not fail the run: the export contains the
error, and the values that depend on the answer are unknown in the ledger.

**Which day.** `ds` is the day of the trigger form, else the UTC day of the run's logical date. **A run for a past day never queries a live
cluster**: it uses the export that landed on that day, or fails with a message that names the missing export. Clearing a run with a complete
export changes nothing. A degraded or failed export is completed if the run is cleared on the same UTC day.

**By hand.** The trigger form has the clusters and the day. A requested cluster needs no `collect:` if its export of the day has landed: the
run announces it.

**Credentials and load.** Credentials are in an Airflow connection, which the settings name. The slots of the pool `cluster_export` limit
how many clusters are queried at a time.

Each landed export emits an event of the asset `ledger://exports` with the partition key `<cluster>|<ds>`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import CronTriggerTimetable, dag, get_current_context, task, task_group

from rebalance_ledger.operators.collection import CollectExportOperator, PruneExportsOperator
from rebalance_ledger.operators.flow import EXPORT_DAG_ID, EXPORTS, clusters_param, day_param
from rebalance_ledger.operators.ledger import collected_clusters, requested_clusters, retry_policy


@dag(
    dag_id=EXPORT_DAG_ID,
    description="Daily answers of the name servers, brokers and clients of each cluster, landed as one sealed export.",
    doc_md=__doc__,
    # Early, so that the rest of the day remains for retries; without an interval, so that `ds` is the day of the run.
    schedule=CronTriggerTimetable("0 1 * * *", timezone="UTC"),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    # Two runs of one day would only wait for each other.
    max_active_runs=1,
    params={
        "clusters": clusters_param("all that the settings collect"),
        "ds": day_param(
            "Day",
            "UTC; by default the day of the logical date. A past day's landed exports are announced again.",
        ),
    },
    default_args=retry_policy(),
    tags=["rocketmq", "ledger"],
)
def cluster_export() -> None:
    """Define the tasks of one day: collect and prune, for each cluster."""

    @task(
        doc_md="Reads the requested clusters, or the collected ones from the settings file that `LEDGER_SETTINGS` names."
    )
    def clusters() -> list[str]:
        return requested_clusters(get_current_context(), default=collected_clusters)

    @task_group
    def cluster_day(cluster: str) -> None:
        name = "{{ task.cluster }}"
        collect = CollectExportOperator(
            task_id="collect",
            cluster=cluster,
            map_index_template=name,
            execution_timeout=timedelta(hours=3),
            pool="cluster_export",
            outlets=[EXPORTS],
            doc_md="Queries the live cluster and lands today's export. For a past day it only looks for the landed export.",
        )
        prune = PruneExportsOperator(
            task_id="prune",
            cluster=cluster,
            map_index_template=name,
            # Start even after a failed `collect`, and fail then: Airflow renders `map_index_template` only for tasks that start.
            trigger_rule="none_skipped",
            doc_md="Names old exports; removes them only if the settings say `dry_run: false`.",
        )
        collect >> prune

    cluster_day.expand(cluster=clusters())


cluster_export()
