"""Airflow's scheduler or metadata database fails while a day is computed, and recovers."""

from __future__ import annotations

import os
import secrets
import sys
from typing import TYPE_CHECKING, Final

import psutil
import pytest

from tests.e2e.conftest import Project
from tests.e2e_cluster.deployment import CLUSTER, EXPORTS, SETTINGS, fingerprint
from tests.e2e_cluster.postgresql import postgresql
from tests.real_cluster.processes import FreePorts, Processes, descendants, have_ended, wait_until
from tests.support.airflow_api import run_of

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

TIMEOUT_S = 900
RESTART_COUNT: Final = int(os.environ.get("LEDGER_TEST_RESTARTS", "2"))

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800 + 300 * RESTART_COUNT)]

DAY = "2026-11-16"
RUN = run_of(DAY)
# Airflow takes five minutes to detect that a task is dead; the tests use shorter limits.
IMPATIENT: Final = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "5",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
}


def test_a_scheduler_killed_with_its_tasks_publishes_the_day_once_after_a_restart(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path, **IMPATIENT)
    with project.airflow() as server:
        project.backfill(DAY, DAY)
        for process in [*wait_for_the_computation(server), scheduler_of(server)]:
            process.kill()
        server.wait(timeout=TIMEOUT_S)
    assert not (project.warehouse / "gold").exists()

    with project.airflow():
        assert project.api.wait_for([RUN], TIMEOUT_S) == ["success"]
    assert_published_once_and_as_without_airflow(project, tmp_path)


def test_a_day_computed_during_an_outage_of_the_metadata_database_is_published_once(tmp_path: Path) -> None:
    processes = Processes()
    try:
        with postgresql(processes, FreePorts().block(1), secrets.token_hex(8)) as metadata:
            project = Project(
                tmp_path,
                AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=metadata.address,
                AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC=metadata.address,
                **IMPATIENT,
            )
            with project.airflow() as server:
                project.backfill(DAY, DAY)
                computation = wait_for_the_computation(server)
                with metadata.gone():
                    # A scheduler without a database ends, and its supervisor starts it again.
                    assert server.wait(timeout=TIMEOUT_S) == 1
                    # The computation ends without anyone to report its result to.
                    wait_until(lambda: have_ended(computation), TIMEOUT_S)
            with project.airflow():
                assert project.api.wait_for([RUN], TIMEOUT_S) == ["success"]
            assert_published_once_and_as_without_airflow(project, tmp_path)
    finally:
        processes.close()


def test_a_restart_under_load_costs_an_interrupted_build_only_one_try(tmp_path: Path) -> None:
    """The next try waits for the missing heartbeats and for the delay between tries, one minute each."""
    processes = Processes()
    try:
        for core in range(os.cpu_count() or 1):
            (tmp_path / f"core-{core}").mkdir()
            processes.start([sys.executable, "-c", "while True: pass"], tmp_path / f"core-{core}")
        project = Project(tmp_path, **IMPATIENT)
        interrupted = None
        tries = []
        for _ in range(RESTART_COUNT + 1):
            with project.airflow() as server:
                if interrupted is None:
                    wait_until(project.api.knows_dag, 300)
                    project.api.unpause()
                else:
                    tries.append(next_tries(project, interrupted))
                    if project.api.task(interrupted, "build")["state"] == "running":
                        # Otherwise the next run's computation would be indistinguishable from this one's.
                        wait_for_the_computation(server)
                    project.api.give_up(interrupted)
                    wait_until(
                        lambda: have_ended(descendants(server.pid, "spark_jobs/day_job.py")), TIMEOUT_S
                    )
                interrupted = project.api.trigger(DAY, force=True)
                wait_for_the_computation(server)
        assert len(tries) == RESTART_COUNT
        assert all(of_run["verify_export"] == 1 and of_run["build"] <= 2 for of_run in tries), tries
        assert any(of_run["build"] == 2 for of_run in tries), tries
    finally:
        processes.close()


def next_tries(project: Project, run_id: str) -> dict[str, int]:
    """Return the try numbers of a run that was interrupted in its build, as soon as the build runs again.

    A build that ended before its scheduler needs no other try.
    """

    def missing() -> str | None:
        build = project.api.task(run_id, "build")
        assert build["state"] != "failed", project.api.why_failed(run_id)
        is_again = build["state"] == "running" and build["try_number"] > 1
        return None if is_again or build["state"] == "success" else f"the build is {build['state']}"

    wait_until(missing, TIMEOUT_S)
    started = (task for task in project.api.tasks(run_id) if task["state"] in {"success", "running"})
    return {task["task_id"]: task["try_number"] for task in started}


def scheduler_of(server: subprocess.Popen[str]) -> psutil.Process:
    # The scheduler's child processes that wait for tasks have the same name.
    return min(descendants(server.pid, "scheduler"), key=psutil.Process.create_time)


def wait_for_the_computation(server: subprocess.Popen[str]) -> list[psutil.Process]:
    """Wait until the scheduler has started the day's Spark application, and return all processes that it has started."""

    def missing() -> str | None:
        is_there = descendants(server.pid, "spark_jobs/day_job.py")
        return None if is_there else "no task has started the Spark application yet"

    wait_until(missing, TIMEOUT_S)
    return descendants(scheduler_of(server).pid)


def assert_published_once_and_as_without_airflow(project: Project, folder: Path) -> None:
    [published] = project.rows("SELECT ds, replaced_version FROM publication")
    assert published == {"ds": DAY, "replaced_version": None}
    day = [f"--cluster={CLUSTER}", f"--ds={DAY}", f"--exports={EXPORTS}", f"--settings={SETTINGS}"]
    project.run("ledger", "run", *day, f"--warehouse={folder / 'clean'}")
    assert fingerprint(str(project.warehouse), {}) == fingerprint(str(folder / "clean"), {})
