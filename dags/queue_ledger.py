"""# The daily queue ledger.

For every cluster in the settings and one UTC day: who owns each RocketMQ queue, and who should. One run is one day;
clusters are processed independently, so a missing export of one cluster does not delay another.

| task | action | on failure |
|---|---|---|
| `clusters` | reads the cluster names from the settings file | correct the settings file |
| `verify_export` | checks the landed export against its manifest; today's scheduled run waits for it | the export is missing or damaged: upload it again. A past day never queries a live cluster |
| `build` | one Spark application: computes and stages silver and gold, and measures what the gate evaluates | see the log; a crash is retried |
| `gate` | Great Expectations evaluates the staged day; the button *Data Docs* opens its pages | **nothing was published.** The message names table, expectation and examples; the staged day stays for inspection |
| `publish` | replaces exactly this cluster and day in the published tables | clear the task: publishing again gives the same rows |
| `notify` | notifies of new critical findings, of those that are gone, and of a refused day, each once; skipped without `LEDGER_NOTIFY_CONNECTION` | the next run notifies |
| `report` | writes the report of the day; the button *Report* opens it | the day is published all the same; clear the task |

**`ds`** is the UTC day of the run's logical date, and the UTC day of the export. The run of a day is created at its first
minute and waits for that day's export until the day is over.

**To compute a past day again**, clear its run, or

    airflow backfill create --dag-id queue_ledger --from-date 2026-11-16 --to-date 2026-11-18 --max-active-runs 1

Both dates are included. With one run at a time each day is compared with the previous day; see docs/airflow.md for
parallel runs. A refusal by the gate or a bad export is not retried, because the same input gives the same result.
The pool `ledger_publish` has one slot, because Delta tables on a local disk allow one writer. The slots of the pool
`ledger_build` limit concurrent Spark applications: one on a laptop, more with a cluster. Each publication is an event
of the asset `ledger://gold`, with `cluster` and `ds`.
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
    NotifyOperator,
    ReportOperator,
    VerifyExportSensor,
    places,
    retry_policy,
)

PUBLISHED = Asset(name="queue_ledger", uri="ledger://gold")


@dag(
    dag_id="queue_ledger",
    description="Who owns each RocketMQ queue, and who should.",
    doc_md=__doc__,
    # Midnight and no interval, so that logical date, run id, data interval and `ds` are all the same day, and so that
    # both dates of a backfill are included.
    schedule=CronTriggerTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    # Today's run waits for its export; two more leave room for days that somebody runs by hand.
    max_active_runs=3,
    default_args=retry_policy(),
    tags=["rocketmq", "ledger"],
)
def queue_ledger() -> None:
    """Wire the day's tasks."""

    @task(doc_md="Reads the clusters' names from the settings file that `LEDGER_SETTINGS` names.")
    def clusters() -> list[str]:
        from rebalance_ledger.settings import SettingsError, load_settings  # noqa: PLC0415  # at run time: settings change between runs

        try:
            names = sorted(load_settings(Path(places()["settings"])).clusters)
        except SettingsError as error:
            raise AirflowFailException(str(error)) from error
        if not names:
            raise AirflowFailException(
                f"{os.environ['LEDGER_SETTINGS']} names no cluster; add one below `clusters:`."
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
            doc_md="Computes silver, gold and the gate's measures in Spark. All of it staged: nothing is published here.",
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
        reported = ReportOperator(
            task_id="report",
            cluster=cluster,
            map_index_template=name,
            doc_md="Writes the report of the published day; the button *Report* opens it.",
        )
        notified = NotifyOperator(
            task_id="notify",
            cluster=cluster,
            map_index_template=name,
            trigger_rule="all_done",  # after a refusal too
            doc_md="Notifies of new critical findings, of those that are gone, and of a refused day, over `LEDGER_NOTIFY_CONNECTION`.",
        )
        verified >> built >> judged >> published >> [reported, notified]

    cluster_day.expand(cluster=clusters())


queue_ledger()
