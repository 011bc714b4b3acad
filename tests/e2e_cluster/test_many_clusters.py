"""Many clusters in parallel on a Spark cluster: drivers run on Airflow's workers, and the scheduler's memory stays small."""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import date
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import psutil
import pytest
import yaml

from rebalance_ledger.exports.sealing import seal
from tests.e2e_cluster.deployment import CLUSTER, EXPORTS, SETTINGS, fingerprint, project
from tests.e2e_cluster.processes import Installation, cluster_of_processes
from tests.real_cluster.processes import descendants, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e_cluster.processes import ClusterOfProcesses

pytestmark = [pytest.mark.e2e_cluster, pytest.mark.timeout(3600)]

_ALONE, _TOGETHER = "2026-11-16", "2026-11-17"
_COUNT = int(os.environ.get("LEDGER_TEST_CLUSTERS", "10"))
_CLUSTERS = [f"shop-{number}" for number in range(_COUNT)]
_SCHEDULER_BYTES_PER_CLUSTER = 500 * 1024 * 1024


class Observed(NamedTuple):
    """The observed maxima.

    Attributes:
        drivers: Concurrent Spark drivers below Airflow's worker.
        drivers_of_scheduler: Concurrent drivers below the scheduler.
        scheduler_bytes: Memory of the scheduler and all its children; shared memory counts once.
    """

    drivers: int = 0
    drivers_of_scheduler: int = 0
    scheduler_bytes: int = 0


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the exports of many clusters, copies of two days of the sample, and their settings."""
    folder = tmp_path_factory.mktemp("many")
    exports = folder / "exports"
    for cluster, ds in product(_CLUSTERS, (_ALONE, _TOGETHER)):
        day = exports / cluster / ds
        shutil.copytree(EXPORTS / CLUSTER / ds, day)
        for lines in day.glob("*.jsonl"):
            records = [json.loads(line) | {"cluster": cluster} for line in lines.read_text().splitlines()]
            lines.write_text("".join(f"{json.dumps(record)}\n" for record in records))
        seal(day, cluster=cluster, ds=date.fromisoformat(ds), replace=True)
    settings = yaml.safe_load(SETTINGS.read_text())
    settings["clusters"] = dict.fromkeys(_CLUSTERS, settings["clusters"][CLUSTER])
    # At first a separate application computes each of them.
    settings["build"] = {"beside_landed": False}
    (folder / "ledger.yaml").write_text(yaml.safe_dump(settings))
    return exports, folder / "ledger.yaml"


@pytest.fixture(scope="module")
def single_machine_fingerprints(
    places: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    exports, settings = places
    warehouse = tmp_path_factory.mktemp("one-machine") / "warehouse"
    project(
        "ledger", "backfill", *(f"--cluster={cluster}" for cluster in _CLUSTERS), f"--from={_ALONE}", f"--to={_TOGETHER}",
        f"--exports={exports}", f"--settings={settings}", f"--warehouse={warehouse}",
    )  # fmt: skip
    return {cluster: fingerprint(str(warehouse), {}, cluster) for cluster in _CLUSTERS}


@pytest.fixture(scope="module")
def deployment(
    places: tuple[Path, Path],
    single_machine_fingerprints: dict[
        str, list[str]
    ],  # first, so that it does not run in parallel with the deployment
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ClusterOfProcesses]:
    exports, settings = places
    # One core and one executor for each application, and enough resources for all of them.
    variables = {
        "AIRFLOW_WORKER_SLOTS": str(_COUNT),
        "AIRFLOW__EDGE__WORKER_CONCURRENCY": str(_COUNT),
        "SPARK_MASTER_OPTS": "-Dspark.deploy.defaultCores=1",
        "SPARK_WORKER_CORES": str(_COUNT),
        "SPARK_WORKER_MEMORY": f"{_COUNT}g",
        "SPARK_DRIVER_MEMORY": "1g",
    }
    installation = Installation(exports, settings, variables)
    with cluster_of_processes(tmp_path_factory.mktemp("processes"), installation) as cluster:
        wait_until(cluster.airflow.knows_dag, 120)
        cluster.airflow.unpause()
        yield cluster


def test_all_clusters_are_computed_in_parallel_and_no_driver_runs_beside_the_scheduler(
    deployment: ClusterOfProcesses, single_machine_fingerprints: dict[str, list[str]]
) -> None:
    runs = [deployment.airflow.trigger(_ALONE, cluster) for cluster in _CLUSTERS]
    seen = Observed()

    def running() -> str | None:
        nonlocal seen
        seen = Observed(*map(max, seen, _look(deployment)))
        states = deployment.airflow.states()
        still = [run for run in runs if states.get(run) not in {"success", "failed"}]
        return f"still running: {still}" if still else None

    wait_until(running, 600 * _COUNT, between_looks_s=2)
    sys.stderr.write(f"{_COUNT} clusters: {seen}\n")
    assert {deployment.airflow.states()[run] for run in runs} == {"success"}
    assert seen.drivers == _COUNT
    assert seen.drivers_of_scheduler == 0
    assert seen.scheduler_bytes < _COUNT * _SCHEDULER_BYTES_PER_CLUSTER
    assert _published(deployment) == _of_day(single_machine_fingerprints, _ALONE)


def test_concurrent_builds_divide_the_landed_days_and_compute_nothing_twice(
    deployment: ClusterOfProcesses,
    places: tuple[Path, Path],
    single_machine_fingerprints: dict[str, list[str]],
) -> None:
    _, settings = places
    settings.write_text(settings.read_text().replace("beside_landed: false", "beside_landed: true"))
    slots = {"name": "ledger_build", "slots": 2, "include_deferred": False}
    deployment.airflow.ask("PATCH", "pools/ledger_build?update_mask=slots", slots)

    runs = [deployment.airflow.trigger(_TOGETHER, cluster) for cluster in _CLUSTERS]

    assert set(deployment.airflow.wait_for(runs)) == {"success"}
    logs = [deployment.airflow.log(deployment.airflow.task(run, "build")) for run in runs]
    computing = [log for log in logs if "Staged by another application" not in log]
    assert len(computing) < _COUNT
    assert len(computing) + sum(log.count("is staged as well") for log in computing) == _COUNT
    assert _published(deployment) == single_machine_fingerprints


def _published(deployment: ClusterOfProcesses) -> dict[str, list[str]]:
    return {cluster: fingerprint(deployment.warehouse, {}, cluster) for cluster in _CLUSTERS}


def _of_day(of_clusters: dict[str, list[str]], ds: str) -> dict[str, list[str]]:
    return {
        cluster: [line for line in lines if line.startswith(ds)] for cluster, lines in of_clusters.items()
    }


def _look(deployment: ClusterOfProcesses) -> Observed:
    scheduler = deployment.scheduler.pid
    return Observed(
        _driver_count(deployment.airflow_worker.pid),
        _driver_count(scheduler),
        sum(_own_bytes(process) for process in [psutil.Process(scheduler), *descendants(scheduler)]),
    )


def _driver_count(pid: int) -> int:
    """Count the Spark drivers below a process, without Spark's launcher, which writes their command lines."""
    begun = descendants(pid, "org.apache.spark.deploy.SparkSubmit")
    launchers = {process.pid for process in descendants(pid, "org.apache.spark.launcher.Main")}
    return sum(process.pid not in launchers and _name(process) == "java" for process in begun)


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return ""  # it has just ended


def _own_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0  # it has just ended
