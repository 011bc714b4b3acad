"""The same DAG and code on a real Spark cluster: one day, then a backfilled day during which a worker is lost, and the day after."""

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
_DAY, _DAY_OF_LOSS, _DAY_AFTER = "2026-11-16", "2026-11-17", "2026-11-18"


def test_a_wrong_password_is_rejected(deployment: Deployment) -> None:
    assert deployment.airflow.log_in("admin") == 401


def test_a_day_computed_on_the_cluster_equals_a_day_of_one_machine(
    deployment: Deployment, single_machine_fingerprint: list[str]
) -> None:
    conf = json.dumps({"cluster": CLUSTER, "ds": _DAY})
    deployment.in_scheduler("python", "/opt/rebalance-ledger/deploy/run_dag.py", "cluster_ledger", conf)
    assert list(deployment.airflow.states().values()) == ["success"]
    assert fingerprint(deployment.warehouse, deployment.store) == _of_days(single_machine_fingerprint, _DAY)


def test_a_backfill_survives_a_lost_worker_and_publishes_the_same_rows(
    deployment: Deployment, single_machine_fingerprint: list[str]
) -> None:
    lost = 0
    deployment.airflow.backfill(_DAY_OF_LOSS, _DAY_OF_LOSS)
    wait_until(lambda: _until_in_the_middle(deployment, lost), 600)
    deployment.kill_worker(lost)
    run_id = run_of(_DAY_OF_LOSS)
    assert deployment.airflow.wait_for([run_id]) == ["success"]
    assert sorted(spark_workers(deployment)) == ["ALIVE", "DEAD"]
    # Spark itself continued with the remaining executor: the build had no second try.
    build = deployment.airflow.task(run_id, "build")
    assert build["try_number"] == 1
    assert "Lost executor" in deployment.airflow.log(build)
    assert fingerprint(deployment.warehouse, deployment.store) == _of_days(
        single_machine_fingerprint, _DAY, _DAY_OF_LOSS
    )


def test_the_history_server_shows_every_day_that_was_computed(deployment: Deployment) -> None:
    """The history server looks for new logs every ten seconds."""

    def missing() -> str | None:
        shown = finished_applications(deployment)
        unseen = [day for day in (_DAY, _DAY_OF_LOSS) if not any(day in name for name in shown)]
        return f"{unseen} among {shown}" if unseen else None

    wait_until(missing, 60)


@pytest.mark.nightly
def test_the_next_day_is_computed_by_the_remaining_worker(
    deployment: Deployment, single_machine_fingerprint: list[str]
) -> None:
    deployment.airflow.backfill(_DAY_AFTER, _DAY_AFTER)
    assert deployment.airflow.wait_for([run_of(_DAY_AFTER)]) == ["success"]
    assert sorted(spark_workers(deployment)) == ["ALIVE", "DEAD"]
    assert fingerprint(deployment.warehouse, deployment.store) == single_machine_fingerprint


def _of_days(fingerprints: list[str], *days: str) -> list[str]:
    return [line for line in fingerprints if line.startswith(days)]


def _until_in_the_middle(deployment: Deployment, worker: int) -> str | None:
    """Return what is missing until the day's tables are partly staged and the worker has an executor."""
    if not deployment.computes(worker):
        return "the worker has no executor"
    files = set(deployment.staged(_DAY_OF_LOSS))
    for attempt in {file.partition("/")[0] for file in files}:
        has_a_table = any(fnmatch(file, f"{attempt}/gold.*/_SUCCESS") for file in files)
        if has_a_table and f"{attempt}/build.json" not in files:
            return None
    return "the day is not partly staged"
