"""With Airflow's real scheduler: a landed export starts its ledger run, a missing one raises an alert, and a killed scheduler leaves no processes."""

from __future__ import annotations

import json
import re
import shutil
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.e2e.conftest import SAMPLE, Project
from tests.real_cluster.processes import descendants, have_ended, wait_until
from tests.support.airflow_api import DAY_DAG_ID
from tests.support.computed_days import SETTINGS_FILE
from tests.support.notification_servers import webhook_server

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.support.notification_servers import WebhookServer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

CLUSTER, DAY = "shop-prod", "2026-11-16"
START_LIMIT_S = 60
ALARM_LIMIT_S = 300


class Flow:
    """A running Airflow with the sample's first day, a webhook, a cluster that never exports, and an export without an event.

    Attributes:
        project: Airflow's folders and its warehouse.
        server: The process of `make airflow`.
        webhook: The destination of notifications.
    """

    def __init__(self, project: Project, server: subprocess.Popen[str], webhook: WebhookServer) -> None:
        self.project = project
        self.server = server
        self.webhook = webhook

    def run_of(self, cluster: str, ds: str = DAY, *, number: int = 0) -> dict[str, Any]:
        """Return the run of an event for a day, once it exists; the earliest is number 0."""

        def runs() -> list[dict[str, Any]]:
            key = f"{cluster}|{ds}"
            of_key = [run for run in self.project.api.runs() if run["partition_key"] == key]
            return sorted(of_key, key=lambda run: str(run["run_after"]))

        wait_until(lambda: None if len(runs()) > number else f"{runs()}", START_LIMIT_S)
        return runs()[number]

    def states(self, run: dict[str, Any]) -> dict[str, str]:
        """Return the final state of each task of a run."""
        self.project.api.wait_for([run["dag_run_id"]])
        return {task["task_id"]: task["state"] for task in self.project.api.tasks(run["dag_run_id"])}


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    folder = tmp_path_factory.mktemp("flow")
    shutil.copytree(SAMPLE / CLUSTER / DAY, folder / "exports" / CLUSTER / DAY)
    dropped = folder / "exports" / "dropped" / f"{datetime.now(UTC):%Y-%m-%d}"
    dropped.mkdir(parents=True)
    (dropped / "manifest.json").write_text("{}")
    settings = folder / "ledger.yaml"
    settings.write_text(
        f"{SETTINGS_FILE.read_text(encoding='utf-8')}\n  dropped: {{}}\n  silent:\n    deadlines: {{export_by: '00:00', published_by: '00:00'}}\n",
        encoding="utf-8",
    )
    with ExitStack() as stack:
        webhook = stack.enter_context(webhook_server())
        project = Project(
            folder,
            LEDGER_SETTINGS=str(settings),
            LEDGER_EXPORTS=str(folder / "exports"),
            LEDGER_NOTIFY_CONNECTION="pager",
            AIRFLOW_CONN_PAGER=json.dumps({"conn_type": "http", "password": webhook.url}),
        )
        server = stack.enter_context(project.airflow())
        wait_until(project.api.knows_dag, 120)
        # Include the triggerer, so that the home page shows no unhealthy component.
        wait_until(project.api.is_healthy, 120)
        project.api.unpause()
        yield Flow(project, server, webhook)


def test_a_missing_export_raises_an_alert_within_five_minutes_of_its_deadline(flow: Flow) -> None:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    late = {"event": "deadline_missed", "cluster": "silent", "ds": today}

    def missing() -> str | None:
        alarms = [{name: message.get(name) for name in late} for message in flow.webhook.messages]
        return None if alarms.count(late) == 2 else f"the alarms are {alarms}"

    wait_until(missing, ALARM_LIMIT_S)
    assert {message["text"].partition(" by ")[0] for message in flow.webhook.messages} == {
        f"No export of silent for {today} has landed",
        f"silent {today} is not published",
    }
    [scheduled] = flow.project.api.runs(DAY_DAG_ID)
    assert scheduled["run_type"] == "scheduled"

    def unfinished() -> str | None:
        announced = announcements()
        return None if announced.get("silent") == "failed" else f"the announcements are {announced}"

    def announcements() -> dict[str, str]:
        tasks = flow.project.api.tasks(scheduled["dag_run_id"], DAY_DAG_ID)
        return {
            task["rendered_map_index"]: task["state"]
            for task in tasks
            if task["task_id"] == "cluster_day.announce_export"
        }

    # The task after the missed deadline fails too, and its map index shows the cluster.
    wait_until(unfinished, 120)


def test_an_export_that_lands_without_an_event_starts_its_day_too(flow: Flow) -> None:
    run = flow.run_of("dropped", f"{datetime.now(UTC):%Y-%m-%d}")

    # Its manifest is empty, and only the run of its own cluster and day fails for it.
    assert flow.states(run)["verify_export"] == "failed"


def test_a_landed_export_starts_its_day_within_a_minute_and_publishes_it(flow: Flow) -> None:
    begin = time.monotonic()
    flow.project.api.announce_export(CLUSTER, DAY)
    run = flow.run_of(CLUSTER)
    assert time.monotonic() - begin < START_LIMIT_S
    states = flow.states(run)

    assert states["publish"] == "success", flow.project.api.why_failed(run["dag_run_id"])
    [event] = flow.project.api.events_of("ledger://gold")
    [published] = flow.project.rows("SELECT run_id, gate_verdict FROM publication")
    assert event["partition_key"] == f"{CLUSTER}|{DAY}"
    assert event["extra"]["run_id"] == published["run_id"]
    assert event["extra"]["verdict"] == published["gate_verdict"]
    assert "gold.finding" in event["extra"]["changed_tables"]

    build = flow.project.api.log(flow.project.api.task(run["dag_run_id"], "build"))
    for table in ("gold.queue_assignment", "gold.finding", "silver.topic_route"):
        assert any(f"{table}: " in line and " rows, " in line for line in build.splitlines()), build


def test_landing_the_same_export_again_computes_nothing_and_emits_no_event(flow: Flow) -> None:
    flow.project.api.announce_export(CLUSTER, DAY)
    states = flow.states(flow.run_of(CLUSTER, number=1))

    assert states["verify_export"] == "success"
    assert states["build"] == "skipped"
    assert len(flow.project.api.events_of("ledger://gold")) == 1


def test_a_failing_cluster_fails_only_its_own_run(flow: Flow) -> None:
    flow.project.api.announce_export("silent", DAY)
    run = flow.run_of("silent")

    assert flow.states(run)["verify_export"] == "failed"
    # The last message is the reason, without a traceback after it.
    reason = flow.project.api.last_shown(flow.project.api.task(run["dag_run_id"], "verify_export"))
    assert reason.startswith(f"{flow.project.environment['LEDGER_EXPORTS']}/silent/{DAY} is not an export:")
    assert "there is no such directory" in reason


def test_replay_runs_the_whole_flow_of_landed_exports(flow: Flow) -> None:
    program = ("python", "-m", "rebalance_ledger.pipeline.replay")
    collecting = flow.project.warehouse.with_name("collecting.yaml")
    collecting.write_text(
        "clusters: {shop-prod: {collect: {nameservers: ['127.0.0.1:1']}}}\n", encoding="utf-8"
    )

    # It unpauses no DAG that would query a live cluster.
    flow.project.run(*program, expect=2, LEDGER_SETTINGS=str(collecting))
    assert flow.project.api.ask("GET", "dags/cluster_export")["is_paused"]

    [published, _] = flow.project.run(*program, CLUSTER).splitlines()
    [failed, _] = flow.project.run(*program, "dropped", expect=1).splitlines()

    progress = r"cluster_export … success; cluster_ledger … started after \d+ s … {} after \d+ s"
    assert re.fullmatch(f"{CLUSTER} {DAY}: {progress.format('success')}", published)
    assert re.fullmatch(f"dropped [0-9-]+: {progress.format('failed')}", failed)


def test_a_killed_scheduler_leaves_no_worker_and_no_build(flow: Flow) -> None:
    server = flow.server.pid
    flow.project.api.trigger(DAY, force=True)
    wait_until(lambda: None if descendants(server, "spark_jobs/day_job.py") else "there is no build yet", 300)
    family = descendants(server)
    # The scheduler's child processes that wait for tasks have the same name.
    min(descendants(server, "scheduler"), key=psutil.Process.create_time).kill()

    assert flow.server.wait(timeout=120) == 1
    assert have_ended(family) is None
