"""# Cluster ledger: compute, check and publish one cluster and day.

The ledger records the owner of each RocketMQ queue and the owner that it should have. **One run is one cluster and one UTC day (`ds`).**
A landed export starts it: each event of the asset `ledger://exports` with the partition key `<cluster>|<ds>` is one run.

| task | action | on failure |
|---|---|---|
| `verify_export` | checks the landed export against its manifest | the export is missing or damaged: upload it again. No task queries a live cluster |
| `build` | computes and stages silver and gold in one Spark application, which may also stage other clusters whose exports of the day have landed, and the days up to `stage_through`. A day that another application has staged needs none | see the log; a crash is retried |
| `gate` | measures the staged day with DuckDB and evaluates the numbers with Great Expectations; the button *Data Docs* opens its pages | **nothing was published.** The message names table, expectation and examples; the staged day is kept. After a change of the gate's settings or rules, clear only this task |
| `publish` | replaces exactly this cluster and day in the published tables | clear the task: publishing again gives the same rows |
| `announce` | emits the event of `ledger://gold` with partition key, run id, verdict and changed tables; skipped if no row changed; after a retry of `publish`, only if the computation has an event | clear the task |
| `notify` | notifies of new and resolved critical findings and of a refused day, each once; skipped without `LEDGER_NOTIFY_CONNECTION` | the next run notifies |
| `report` | writes the report of the day; the button *Report* opens it | the day is published nevertheless; clear the task |

**Skipped runs.** If the day is already published from the same export, settings and code, `build` and all later tasks are skipped.

**Compute a day by hand.** Trigger the DAG with a cluster and the day *on which the export was taken*; with `force` the day is computed
although nothing has changed. For a range of days: the DAG `queue_ledger_backfill`, or `airflow backfill
create --dag-id queue_ledger …`.

**Retries.** A refusal by the gate and a bad export are not retried, because the same input gives the same result. The numbers of each
task are in its XCom.

**Pools.** `ledger_publish` has one slot, because Delta tables on a local disk allow one writer. The slots of `ledger_build` limit
concurrent Spark applications and gates, which need memory: one on a laptop, more with a cluster. A waiting gate starts before a
waiting build.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import Param, PartitionedAssetTimetable, dag

from rebalance_ledger.operators.build import LedgerBuildOperator
from rebalance_ledger.operators.flow import BUILD_EXECUTOR, EXPORTS, LEDGER_DAG_ID, STAGE_THROUGH, day_param
from rebalance_ledger.operators.ledger import (
    AnnounceOperator,
    GateOperator,
    LedgerStepOperator,
    NotifyOperator,
    ReportOperator,
    retry_policy,
)


@dag(
    dag_id=LEDGER_DAG_ID,
    description="Who owns each RocketMQ queue of a cluster on one day, and who should.",
    doc_md=__doc__,
    schedule=PartitionedAssetTimetable(assets=EXPORTS),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    # Pools limit concurrent work; a task that waits for a slot occupies no worker.
    max_active_runs=32,
    params={
        "cluster": Param(
            None, type=["null", "string"], minLength=1, title="Cluster", description="Name in the settings."
        ),
        "ds": day_param(
            "Day", "UTC day on which the export was taken, as in the export's path; not the day of this run."
        ),
        "stage_through": STAGE_THROUGH,
        "force": Param(
            False,  # noqa: FBT003  # the default of the form
            type="boolean",
            title="Force",
            description="Compute the day although it is published from this export, settings and code.",
        ),
    },
    default_args=retry_policy(),
    tags=["rocketmq", "ledger"],
)
def cluster_ledger() -> None:
    """Wire the steps of a day; nothing is published unless the gate accepts the staged day."""
    verify = LedgerStepOperator(
        task_id="verify_export", step="verify", doc_md="Checks the landed export against its manifest."
    )
    build = LedgerBuildOperator(
        task_id="build",
        verify_task_id="verify_export",
        execution_timeout=timedelta(hours=1),
        pool="ledger_build",
        executor=BUILD_EXECUTOR,
        weight_rule="absolute",
        doc_md="Computes silver and gold in Spark and stages them. Nothing is published here.",
    )
    gate = GateOperator(
        task_id="gate",
        execution_timeout=timedelta(hours=1),
        pool="ledger_build",
        executor=BUILD_EXECUTOR,
        weight_rule="absolute",
        priority_weight=2,
        doc_md="Measures and evaluates the staged day. A refusal is final until the input or the gate's rules change.",
    )
    publish = LedgerStepOperator(
        task_id="publish",
        step="publish",
        pool="ledger_publish",
        doc_md="Replaces the day in the published tables. The row of `publication` is written last.",
    )
    announce = AnnounceOperator(
        task_id="announce",
        publish_task_id="publish",
        doc_md="Emits the event of `ledger://gold`, unless no row changed.",
    )
    report = ReportOperator(
        task_id="report", doc_md="Writes the report of the published day; the button *Report* opens it."
    )
    notify = NotifyOperator(
        task_id="notify",
        trigger_rule="all_done",  # also after a refusal
        doc_md="Notifies of new and resolved critical findings and of a refused day, over `LEDGER_NOTIFY_CONNECTION`.",
    )
    verify >> build >> gate >> publish >> [announce, report, notify]


cluster_ledger()
