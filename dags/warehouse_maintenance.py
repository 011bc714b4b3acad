"""# Warehouse maintenance, once a week.

It merges the small files of published days, and removes files that no publication references and the staging areas and gate pages of
old days. Published rows are never removed. The retention periods are in the settings, below `maintenance:`.

| task | action | on failure |
|---|---|---|
| `maintain` | lists the files to remove; removes them only with `dry_run: false` | the message names the table that could not be written. The next run continues from there |

Days can be published meanwhile: a publication waits while one table is written. Readers are not affected.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import CronTriggerTimetable, dag

from rebalance_ledger.operators.ledger import MaintainWarehouseOperator, retry_policy


@dag(
    dag_id="warehouse_maintenance",
    description="Merge small files and remove unreferenced data, according to the settings.",
    doc_md=__doc__,
    # On Sunday evening: the day is published by then, and the next one has not begun.
    schedule=CronTriggerTimetable("0 20 * * 0", timezone="UTC"),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=retry_policy(),
    tags=["rocketmq", "ledger"],
)
def warehouse_maintenance() -> None:
    """Define the only task, `maintain`."""
    MaintainWarehouseOperator(
        task_id="maintain",
        execution_timeout=timedelta(hours=6),
        doc_md="Runs `ledger maintain`; with `--apply` only if the settings say `dry_run: false`.",
    )


warehouse_maintenance()
