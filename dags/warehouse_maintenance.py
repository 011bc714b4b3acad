"""# The warehouse's weekly maintenance.

Merges small files of published days, removes files that no publication needs any more, and the stages and gate pages of old
days. Published rows never go. How long things are kept is in the settings, below `maintenance:`.

| task | does | when it fails |
|---|---|---|
| `maintain` | names what would go; does it only with `dry_run: false` | a table could not be written: see the message. Running it again goes on where it ended |

It takes the one slot of the pool `ledger_publish`: nobody publishes meanwhile, and readers notice nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import CronTriggerTimetable, dag

from rebalance_ledger.operators.ledger import MaintainWarehouseOperator, retry_policy


@dag(
    dag_id="warehouse_maintenance",
    description="Small files merged, and what no reader needs any more removed, as the settings say.",
    doc_md=__doc__,
    # On Sunday, when the day has been published and before the next one begins.
    schedule=CronTriggerTimetable("0 20 * * 0", timezone="UTC"),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=retry_policy(),
    tags=["rocketmq", "ledger"],
)
def warehouse_maintenance() -> None:
    """Wire the one task."""
    MaintainWarehouseOperator(
        task_id="maintain",
        execution_timeout=timedelta(hours=6),
        pool="ledger_publish",
        doc_md="Runs `ledger maintain`; with `--apply` only if the settings say `dry_run: false`.",
    )


warehouse_maintenance()
