"""The same DAG and code on a real Spark cluster: one day, then a backfill during which a worker is lost."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from typing import TYPE_CHECKING

import pytest

from tests.e2e_cluster.deployment import CLUSTER, fingerprint, finished_applications, spark_workers
from tests.real_cluster.processes import wait_until
from tests.support.airflow_api import run_of

if TYPE_CHECKING:
    from tests.e2e_cluster.deployment import Deployment

pytestmark = [pytest.mark.e2e_cluster, pytest.mark.timeout(2400)]

# Each day is compared with the day before, so the days run in order, as on one machine.
_DAY = "2026-11-16"
_BACKFILLED = ("2026-11-17", "2026-11-18")


def test_a_wrong_password_is_rejected(deployment: Deployment) -> None:
    assert deployment.airflow.log_in("admin") == 401


def test_a_day_computed_on_the_cluster_equals_a_day_of_one_machine(
    deployment: Deployment, single_machine_fingerprint: list[str]
) -> None:
    conf = json.dumps({"cluster": CLUSTER, "ds": _DAY})
    deployment.in_scheduler("python", "/opt/rebalance-ledger/deploy/run_dag.py", "cluster_ledger", conf)
    assert list(deployment.airflow.states().values()) == ["success"]
    assert fingerprint(deployment.warehouse, deployment.store) == [
        line for line in single_machine_fingerprint if line.startswith(_DAY)
    ]


def test_a_backfill_survives_a_lost_worker_and_publishes_the_same_rows(
    deployment: Deployment, single_machine_fingerprint: list[str]
) -> None:
    lost = 0
    deployment.airflow.backfill(*_BACKFILLED)
    wait_until(lambda: _until_in_the_middle(deployment, lost), 600)
    deployment.kill_worker(lost)
    runs = [run_of(day) for day in _BACKFILLED]
    assert deployment.airflow.wait_for(runs) == ["success"] * len(runs)
    assert sorted(spark_workers(deployment)) == ["ALIVE", "DEAD"]
    # Spark itself continued with the remaining executor: no build had a second try.
    builds = [deployment.airflow.task(run_id, "build") for run_id in runs]
    assert [build["try_number"] for build in builds] == [1, 1]
    assert any("Lost executor" in deployment.airflow.log(build) for build in builds)
    assert fingerprint(deployment.warehouse, deployment.store) == single_machine_fingerprint


def test_the_history_server_shows_every_day_that_was_computed(deployment: Deployment) -> None:
    """The history server looks for new logs every ten seconds."""
    days = [_DAY, *_BACKFILLED]

    def missing() -> str | None:
        shown = finished_applications(deployment)
        unseen = [day for day in days if not any(day in name for name in shown)]
        return f"{unseen} among {shown}" if unseen else None

    wait_until(missing, 60)


def _until_in_the_middle(deployment: Deployment, worker: int) -> str | None:
    """Return what is missing until a day's tables are partly staged and the worker has an executor."""
    if not deployment.computes(worker):
        return "the worker has no executor"
    for day in _BACKFILLED:
        files = set(deployment.staged(day))
        for attempt in {file.partition("/")[0] for file in files}:
            has_a_table = any(fnmatch(file, f"{attempt}/silver.*/_SUCCESS") for file in files)
            if has_a_table and f"{attempt}/build.json" not in files:
                return None
    return "no day is partly staged"
