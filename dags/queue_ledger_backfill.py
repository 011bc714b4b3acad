"""# Compute a range of past days.

Trigger this DAG with the first and the last day (`ds`, UTC, both included), the clusters (none for all clusters in the settings), and
whether to skip or recompute days that are published already.

| task | action | on failure |
|---|---|---|
| `clusters` | checks the requested clusters against the settings file | a name is unknown, or the settings file is wrong |
| `backfill` | runs `ledger backfill` for one cluster: each day with an export is verified, built, judged and published in one Spark application, then the later days whose baseline has changed | the log and the XCom list each day with its outcome; the days that have not failed are published |

**Baseline.** Each day is compared with the newest earlier published day, as in `queue_ledger`.

**Retries.** A task that is retried or cleared continues: by default it skips days that are published and up to date.

**Concurrency.** Each task takes a slot of the pool `ledger_build`. The warehouse lock serializes publications.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import Param, dag, get_current_context, task

from rebalance_ledger.operators.backfill import RUN_PUBLISHED, SKIP_PUBLISHED, BackfillOperator
from rebalance_ledger.operators.flow import BUILD_EXECUTOR, clusters_param
from rebalance_ledger.operators.ledger import configured_clusters, requested_clusters, retry_policy


@dag(
    dag_id="queue_ledger_backfill",
    description="Compute and publish a range of past days.",
    doc_md=__doc__,
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params={
        "clusters": clusters_param("all"),
        "first_day": Param("", type="string", format="date", title="First day", description="UTC, included."),
        "last_day": Param("", type="string", format="date", title="Last day", description="UTC, included."),
        "published_days": Param(
            SKIP_PUBLISHED,
            type="string",
            enum=[SKIP_PUBLISHED, RUN_PUBLISHED],
            title="Published days",
            description="What to do with days that are published.",
        ),
    },
    default_args=retry_policy(),
    tags=["rocketmq", "ledger"],
)
def queue_ledger_backfill() -> None:
    """Wire the backfill of each cluster."""

    @task(doc_md="Checks the requested clusters against the settings file.")
    def clusters() -> list[str]:
        return requested_clusters(get_current_context(), default=configured_clusters)

    BackfillOperator.partial(
        task_id="backfill",
        map_index_template="{{ task.cluster }}",
        execution_timeout=timedelta(days=2),
        pool="ledger_build",
        executor=BUILD_EXECUTOR,
        doc_md="Runs `ledger backfill` for one cluster; the log has a line for each day.",
    ).expand(cluster=clusters())


queue_ledger_backfill()
