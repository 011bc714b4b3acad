"""Expected results from one machine, and the deployments, each started once for all tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from setup.steps import SetUpError
from tests.e2e_cluster.containers import cluster_of_containers
from tests.e2e_cluster.deployment import CLUSTER, EXPORTS, SETTINGS, fingerprint, project
from tests.e2e_cluster.engine import docker_engine
from tests.e2e_cluster.processes import cluster_of_processes
from tests.real_cluster.processes import Processes, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e_cluster.deployment import Deployment
    from tests.e2e_cluster.engine import Docker

DAYS = ("2026-11-16", "2026-11-17", "2026-11-18")


@pytest.fixture(scope="session")
def single_machine_fingerprint(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the fingerprint of the sample's three days, computed side by side by `ledger backfill`."""
    warehouse = tmp_path_factory.mktemp("one-machine") / "warehouse"
    project(
        "ledger", "backfill", f"--cluster={CLUSTER}", f"--from={DAYS[0]}", f"--to={DAYS[-1]}",
        f"--exports={EXPORTS}", f"--settings={SETTINGS}", f"--warehouse={warehouse}",
    )  # fmt: skip
    return fingerprint(str(warehouse), {})


@pytest.fixture(scope="session")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docker]:
    """Yield a Docker engine with Compose; images are built once and reused by later tests."""
    processes = Processes()
    try:
        with docker_engine(processes, tmp_path_factory.mktemp("docker")) as engine:
            yield engine
    except SetUpError as error:
        pytest.fail(f"Nothing can be started here as containers. {error}", pytrace=False)
    finally:
        processes.close()


@pytest.fixture(scope="module", params=[pytest.param("processes", marks=pytest.mark.e2e), "containers"])
def deployment(
    request: pytest.FixtureRequest,
    single_machine_fingerprint: list[str],  # first, so that it does not run in parallel with the deployment
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployment]:
    kind: str = request.param
    folder = tmp_path_factory.mktemp(kind)
    try:
        with (
            cluster_of_processes(folder)
            if kind == "processes"
            else cluster_of_containers(request.getfixturevalue("docker"), folder)
        ) as cluster:
            wait_until(cluster.airflow.knows_dag, 120)
            cluster.airflow.unpause()
            yield cluster
    except SetUpError as error:
        pytest.fail(f"The deployment cannot be started here as {kind}. {error}", pytrace=False)
