"""# The daily queue ledger.

For every cluster in the settings and one UTC day: who owns each RocketMQ queue, who should, and whether that can
be believed. One run is one day; clusters are processed independently, so that the missing export of one cluster does
not delay another.

| task | does | when it fails |
|---|---|---|
| `clusters` | reads the clusters' names from the settings file | the settings file is wrong: fix it |
| `verify_export` | checks the landed export against its manifest; today's scheduled run waits for it to land | the export is missing or damaged: land it again. A past day never asks a live cluster |
| `build` | one Spark application: silver and gold computed and staged, and the metrics for the gate computed | see the log; a crash is retried |
| `gate` | Great Expectations judges the staged day; the button *Data Docs* opens its pages | **nothing was published.** The message names table, expectation and examples; the stage stays for inspection |
| `publish` | replaces exactly this cluster and day in the published tables | clear the task: publishing twice gives the same rows |

**Which date is `ds`?** The UTC day of the run's logical date, which is the UTC day on which the export was taken.
The run of a day is created at its first minute and waits for that day's export until the day is over.

**Recompute an old day**: clear its run, or

    airflow backfill create --dag-id queue_ledger --from-date 2026-11-16 --to-date 2026-11-18 --max-active-runs 1

Both dates are included. With one run at a time each day is compared with the day before it; see docs/airflow.md for
several. A refusal by the gate or a bad export is not retried: the same input gives the same answer.
Publication has one slot in the pool `ledger_publish`, because Delta tables on a local disk allow one writer. The
slots of the pool `ledger_build` are the Spark applications at a time: one on a laptop, more with a cluster.
Each publication is an event of the asset `ledger://gold`, with `cluster` and `ds`.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import Asset, CronTriggerTimetable, dag, task, task_group
from airflow.sdk.exceptions import AirflowFailException

from rebalance_ledger.operators.ledger import (
    GateOperator,
    LedgerBuildOperator,
    LedgerStepOperator,
    VerifyExportSensor,
    places,
    retry_policy,
)

PUBLISHED = Asset(name="queue_ledger", uri="ledger://gold")


@dag(
    dag_id="queue_ledger",
    description="Who owns each RocketMQ queue, who should own it, and whether that can be believed.",
    doc_md=__doc__,
    # Midnight and no interval, so that logical date, run id, data interval and `ds` are all the same day, and so that
    # both dates of a backfill are included.
    schedule=CronTriggerTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    # Today's run waits for its export; two more leave room for days that are triggered manually.
    max_active_runs=3,
    default_args=retry_policy(),
    tags=["rocketmq", "ledger"],
)
def queue_ledger() -> None:
    """Define the day's tasks and their dependencies."""

    @task(doc_md="Reads the clusters' names from the settings. `LEDGER_SETTINGS` says which file.")
    def clusters() -> list[str]:
        from rebalance_ledger.settings import SettingsError, load_settings  # noqa: PLC0415  # at run time: settings change between runs

        try:
            names = sorted(load_settings(Path(places()["settings"])).clusters)
        except SettingsError as error:
            raise AirflowFailException(str(error)) from error
        if not names:
            raise AirflowFailException(
                f"{os.environ['LEDGER_SETTINGS']} has no clusters; add one below `clusters:`."
            )
        return names

    @task_group
    def cluster_day(cluster: str) -> None:
        name = "{{ task.cluster }}"
        verified = VerifyExportSensor(
            task_id="verify_export",
            cluster=cluster,
            map_index_template=name,
            poke_interval=timedelta(minutes=10),
            timeout=timedelta(hours=25),
            doc_md="Checks the landed export against its manifest. Today's scheduled run waits for it.",
        )
        built = LedgerBuildOperator(
            task_id="build",
            cluster=cluster,
            map_index_template=name,
            execution_timeout=timedelta(hours=1),
            pool="ledger_build",
            doc_md="Computes silver, gold and the gate's metrics in Spark. All output is staged; nothing is published here.",
        )
        judged = GateOperator(
            task_id="gate",
            cluster=cluster,
            map_index_template=name,
            doc_md="Judges the staged day with Great Expectations. A refusal is final until the input changes.",
        )
        published = LedgerStepOperator(
            task_id="publish",
            stage="publish",
            cluster=cluster,
            map_index_template=name,
            pool="ledger_publish",
            outlets=[PUBLISHED],
            doc_md="Replaces the day in the published tables. The last write is its row of `publication`.",
        )
        verified >> built >> judged >> published

    cluster_day.expand(cluster=clusters())


queue_ledger()
