"""# Queue ledger: watch the deadlines of a day, or backfill days, for all clusters.

One run is one UTC day (`ds`, the day of the logical date and of the exports) of all clusters in the settings. The ledger of each cluster is
computed by the DAG `cluster_ledger`, which a landed export starts.

- **A scheduled run** watches the deadlines of its day. It computes nothing.
- **A backfill, or a run by hand,** starts the run of `cluster_ledger` for each cluster and waits until it has ended.

| task | action | on failure |
|---|---|---|
| `clusters_to_compute`, `clusters_to_watch` | read the clusters from the settings file; one of the two is always skipped | correct the settings file |
| `compute` | starts the cluster's run of `cluster_ledger` and waits until it has ended | see that run (button *Triggered DAG*), or unpause `cluster_ledger` |
| `export_landed` | waits for the day's export until the deadline `export_by` of the settings; by default until the end of the day | **the export is late**: `LEDGER_NOTIFY_CONNECTION` was notified. An export that lands later still starts its ledger |
| `announce_export` | emits the event of an export that landed without one | clear the task |
| `published` | waits for the publication until the deadline `published_by` of the settings; skipped without this setting | **the day is late**: `LEDGER_NOTIFY_CONNECTION` was notified |

**Backfill.** Both dates are included:

    airflow backfill create --dag-id queue_ledger --from-date 2026-11-16 --to-date 2026-11-18 --max-active-runs 1

With one run at a time each day is compared with the previous day; see docs/airflow.md for parallel runs. With
`--dag-run-conf '{"stage_through": "2026-11-18"}'`, the first day's Spark application stages the following days too.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, dag, task, task_group
from airflow.sdk.exceptions import AirflowSkipException

from rebalance_ledger.operators.day import ComputeDayOperator
from rebalance_ledger.operators.deadlines import (
    AnnounceExportOperator,
    ExportDeadlineOperator,
    PublicationDeadlineOperator,
)
from rebalance_ledger.operators.flow import STAGE_THROUGH
from rebalance_ledger.operators.ledger import configured_clusters, retry_policy

_NAME = "{{ task.cluster }}"


@dag(
    dag_id="queue_ledger",
    description="A day of all clusters: deadlines, backfills.",
    doc_md=__doc__,
    # The data interval is empty: it starts and ends at the logical date, midnight. So logical date, run-after date, run id
    # and `ds` are the same day, and both dates of a backfill are included.
    schedule=CronTriggerTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    # Today's run waits for its deadlines, and yesterday's run may still wait; the rest is for backfills and runs by hand.
    max_active_runs=4,
    params={
        "stage_through": STAGE_THROUGH,
        "force": Param(
            False,  # noqa: FBT003  # the default of the form
            type="boolean",
            title="Force",
            description="Compute days although they are published from their export, settings and code.",
        ),
    },
    default_args=retry_policy(),
    tags=["rocketmq", "ledger"],
)
def queue_ledger() -> None:
    """Wire the two branches: `compute` for backfills and manual runs, deadlines for scheduled runs."""

    @task(doc_md="Reads the clusters' names from the settings file; skipped in scheduled runs.")
    def clusters_to_compute(dag_run: Any = None) -> list[str]:  # noqa: ANN401  # Airflow passes it by its name
        if dag_run.run_type == "scheduled":
            raise AirflowSkipException("A landed export starts the run of its cluster and day.")
        return configured_clusters()

    @task(doc_md="Reads the clusters' names from the settings file; skipped unless the run is scheduled.")
    def clusters_to_watch(dag_run: Any = None) -> list[str]:  # noqa: ANN401  # as above
        if dag_run.run_type != "scheduled":
            raise AirflowSkipException("Deadlines are those of scheduled runs.")
        return configured_clusters()

    @task_group
    def cluster_day(cluster: str) -> None:
        export_landed = ExportDeadlineOperator(
            task_id="export_landed",
            cluster=cluster,
            map_index_template=_NAME,
            doc_md="Waits for the day's export until the deadline `export_by`.",
        )
        announce_export = AnnounceExportOperator(
            task_id="announce_export",
            cluster=cluster,
            map_index_template=_NAME,
            # Start even after a failed deadline, and fail then: Airflow renders `map_index_template` only for tasks that start.
            trigger_rule="none_skipped",
            doc_md="Emits the event of an export that landed without one.",
        )
        export_landed >> announce_export
        PublicationDeadlineOperator(
            task_id="published",
            cluster=cluster,
            map_index_template=_NAME,
            doc_md="Waits for the publication until the deadline `published_by`.",
        )

    ComputeDayOperator.partial(
        task_id="compute",
        map_index_template=_NAME,
        # The triggered run has timeouts of its own.
        execution_timeout=timedelta(days=7),
        doc_md="Starts the cluster's run of `cluster_ledger`, and waits for its end.",
    ).expand(cluster=clusters_to_compute())
    cluster_day.expand(cluster=clusters_to_watch())


queue_ledger()
