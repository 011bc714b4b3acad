"""# The ledger of one cluster and day.

Who owns each RocketMQ queue of a cluster, and who should. **One run is one cluster and one UTC day (`ds`).** A landed export starts it: each
event of the asset `ledger://exports` with the partition key `<cluster>|<ds>` is one run.

| task | action | on failure |
|---|---|---|
| `verify_export` | checks the landed export against its manifest | the export is missing or damaged: upload it again. No task queries a live cluster |
| `build` | one Spark application: computes and stages silver and gold, also of other clusters whose exports of the day have landed. Skipped, with what follows, if the day is published from this export, settings and code already | see the log; a crash is retried |
| `gate` | DuckDB measures the staged day and Great Expectations evaluates the numbers; the button *Data Docs* opens its pages | **nothing was published.** The message names table, expectation and examples; the staged day stays. After a change of the gate's settings or rules, clear this task alone |
| `publish` | replaces exactly this cluster and day in the published tables | clear the task: publishing again gives the same rows |
| `announce` | emits the event of `ledger://gold` with partition key, run id, verdict and changed tables; skipped if no row changed | clear the task |
| `notify` | notifies of new critical findings, of those that are gone, and of a refused day, each once; skipped without `LEDGER_NOTIFY_CONNECTION` | the next run notifies |
| `report` | writes the report of the day; the button *Report* opens it | the day is published all the same; clear the task |

**To compute a day by hand**, trigger the DAG with a cluster and the day *on which the export was taken*; `force` computes it although nothing
has changed. For a range of days: `airflow backfill create --dag-id queue_ledger …`. A refusal by the gate or a bad export is not retried,
because the same input gives the same result. Numbers of each task are in its XCom.

The pool `ledger_publish` has one slot, because Delta tables on a local disk allow one writer. The slots of the pool `ledger_build` limit
concurrent Spark applications and gates, which need memory: one on a laptop, more with a cluster. A gate goes before the next build.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import Param, PartitionedAssetTimetable, dag

from rebalance_ledger.operators.build import LedgerBuildOperator
from rebalance_ledger.operators.flow import BUILD_EXECUTOR, EXPORTS, LEDGER_DAG_ID
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
    # Pools limit what is computed at a time; a day that waits for its turn takes no worker.
    max_active_runs=32,
    params={
        "cluster": Param(
            None, type=["null", "string"], minLength=1, title="Cluster", description="Name in the settings."
        ),
        "ds": Param(
            None,
            type=["null", "string"],
            format="date",
            title="Day",
            description="UTC day on which the export was taken, as in the export's path; not the day of this run.",
        ),
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
    """Wire the steps of a day."""
    verified = LedgerStepOperator(
        task_id="verify_export", stage="verify", doc_md="Checks the landed export against its manifest."
    )
    built = LedgerBuildOperator(
        task_id="build",
        verify_task_id="verify_export",
        execution_timeout=timedelta(hours=1),
        pool="ledger_build",
        executor=BUILD_EXECUTOR,
        weight_rule="absolute",
        doc_md="Computes silver and gold in Spark. All of it staged: nothing is published here.",
    )
    judged = GateOperator(
        task_id="gate",
        execution_timeout=timedelta(hours=1),
        pool="ledger_build",
        executor=BUILD_EXECUTOR,
        weight_rule="absolute",
        priority_weight=2,
        doc_md="Measures and evaluates the staged day. A refusal is final until the input or the gate's rules change.",
    )
    published = LedgerStepOperator(
        task_id="publish",
        stage="publish",
        pool="ledger_publish",
        doc_md="Replaces the day in the published tables. The last write is its row of `publication`.",
    )
    announced = AnnounceOperator(
        task_id="announce",
        publish_task_id="publish",
        doc_md="Emits the event of `ledger://gold`, unless no row changed.",
    )
    reported = ReportOperator(
        task_id="report", doc_md="Writes the report of the published day; the button *Report* opens it."
    )
    notified = NotifyOperator(
        task_id="notify",
        trigger_rule="all_done",  # after a refusal too
        doc_md="Notifies of new critical findings, of those that are gone, and of a refused day, over `LEDGER_NOTIFY_CONNECTION`.",
    )
    verified >> built >> judged >> published >> [announced, reported, notified]


cluster_ledger()
