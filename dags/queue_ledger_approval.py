"""# Approve a refused day.

Trigger this DAG with a cluster and a UTC day (`ds`) that the gate has refused. It shows the failed expectations and waits until a person
approves or rejects the day in the task `approval` (*Required Actions*).

| task | action | on failure |
|---|---|---|
| `refusal` | reads the failed expectations of the day's newest computation | the gate has not refused this day, or has never evaluated it |
| `approval` | waits up to seven days for a person, who approves with a reason or rejects | without an answer nothing is published |
| `record` | stores name and reason for exactly this computation | the day was computed again meanwhile: read the new refusal |
| `gate` | measures and evaluates the day again; its verdict is `approved` | an expectation fails that was not approved |
| `publish`, `announce`, `report`, `notify` | as in `cluster_ledger` | as in `cluster_ledger` |

**What an approval covers.** One computation, and the expectations that had failed. After another export, other settings or other code the
gate refuses the day again. Name and reason are in `gate_result` (`approved_by`, `approval_reason`), in Data Docs and in the report.

**Afterwards,** clear the task `gate` of the day's run of `cluster_ledger`, so that this run succeeds too.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param, dag

from rebalance_ledger.operators.approval import ApproveOperator, RefusalOperator
from rebalance_ledger.operators.flow import BUILD_EXECUTOR
from rebalance_ledger.operators.ledger import (
    AnnounceOperator,
    GateOperator,
    LedgerStepOperator,
    NotifyOperator,
    ReportOperator,
    retry_policy,
)

CLUSTER = "{{ params.cluster }}"


@dag(
    dag_id="queue_ledger_approval",
    description="Publish a refused day with a person's approval.",
    doc_md=__doc__,
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    params={
        "cluster": Param(
            "", type="string", minLength=1, title="Cluster", description="Name in the settings."
        ),
        "ds": Param("", type="string", format="date", title="Day", description="UTC day of the export."),
    },
    default_args=retry_policy(),
    tags=["rocketmq", "ledger"],
)
def queue_ledger_approval() -> None:
    """Wire the approval of one day."""
    refusal = RefusalOperator(
        task_id="refusal", cluster=CLUSTER, doc_md="Reads why the gate refused the day."
    )
    approval = ApprovalOperator(
        task_id="approval",
        subject="Publish {{ params.cluster }} {{ params.ds }} although the gate refused it?",
        body="{{ ti.xcom_pull(task_ids='refusal')['text'] }}",
        params={
            "reason": Param(
                "", type="string", title="Reason", description="Needed to approve; kept in gate_result."
            )
        },
        execution_timeout=None,
        response_timeout=timedelta(days=7),
        doc_md="Waits for a person's decision.",
    )
    record = ApproveOperator(
        task_id="record",
        cluster=CLUSTER,
        approved_by="{{ ti.xcom_pull(task_ids='approval')['responded_by_user']['name'] }}",
        reason="{{ ti.xcom_pull(task_ids='approval')['params_input']['reason'] }}",
        run_id="{{ ti.xcom_pull(task_ids='refusal')['run_id'] }}",
        doc_md="Stores name and reason for this computation.",
    )
    gate = GateOperator(
        task_id="gate",
        cluster=CLUSTER,
        execution_timeout=timedelta(hours=1),
        pool="ledger_build",
        executor=BUILD_EXECUTOR,
        weight_rule="absolute",
        priority_weight=2,
        doc_md="Measures and evaluates the day again, with the approval.",
    )
    publish = LedgerStepOperator(
        task_id="publish",
        step="publish",
        cluster=CLUSTER,
        pool="ledger_publish",
        doc_md="Replaces the day in the published tables.",
    )
    announce = AnnounceOperator(
        task_id="announce",
        cluster=CLUSTER,
        publish_task_id="publish",
        doc_md="Emits the event of `ledger://gold`, unless no row changed.",
    )
    report = ReportOperator(task_id="report", cluster=CLUSTER, doc_md="Writes the report of the day.")
    notify = NotifyOperator(
        task_id="notify", cluster=CLUSTER, doc_md="Notifies over `LEDGER_NOTIFY_CONNECTION`."
    )
    refusal >> approval >> record >> gate >> publish >> [announce, report, notify]


queue_ledger_approval()
