"""The deployment as the containers of deploy/docker-compose.yml, each from an image that is built here or pulled."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from setup import deployment_secrets
from tests.airflow_api import AirflowApi
from tests.e2e_cluster.deployment import EXPORTS, ROOT, SETTINGS
from tests.e2e_cluster.images import LEDGER_IMAGE, postgres_image
from tests.real_cluster.processes import FreePorts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e_cluster.engine import Docker

_PROJECT = "ledger-e2e"


class ClusterOfContainers:
    """The Compose project, up and healthy.

    Args:
        docker: The engine.
        folder: For what the containers share with this test: secrets, exports, warehouse.
        ports: For the two pages that the test asks.
    """

    def __init__(self, docker: Docker, folder: Path, ports: FreePorts) -> None:
        self.warehouse = folder / "warehouse"
        self._docker = docker
        secrets = folder / "deployment.env"
        deployment_secrets.write(secrets)
        self._compose = [
            "compose",
            f"--project-name={_PROJECT}",
            f"--file={ROOT / 'deploy' / 'docker-compose.yml'}",
            f"--env-file={secrets}",
        ]
        page, api = ports.block(1), ports.block(1)
        self.spark_master = f"http://127.0.0.1:{page}"
        self.airflow = AirflowApi(f"http://127.0.0.1:{api}", _secret(secrets, "AIRFLOW_ADMIN_PASSWORD"))
        # What an installation would write into deploy/.env.
        with secrets.open("a") as settings:
            settings.write(
                f"AIRFLOW_LISTEN=127.0.0.1:{api}\n"
                f"SPARK_MASTER_LISTEN=127.0.0.1:{page}\n"
                f"BASE_IMAGE={docker.base_image}\n"
                f"LEDGER_IMAGE={LEDGER_IMAGE}\n"
                f"POSTGRES_IMAGE={postgres_image(docker)}\n"
                f"LEDGER_EXPORTS_FROM={shutil.copytree(EXPORTS, folder / 'exports')}\n"
                f"LEDGER_WAREHOUSE_FROM={self.warehouse}\n"
                f"LEDGER_SETTINGS_FROM={SETTINGS}\n"
            )
        self.warehouse.mkdir()
        self.warehouse.chmod(0o777)  # for user 50000 of the containers

    def up(self) -> None:
        """Build the image and start every service; returns when all are healthy."""
        self.compose("build")
        self.compose("up", "--detach", "--wait")

    def down(self) -> None:
        """End it, and remove its volumes."""
        self.compose("down", "--volumes", "--timeout=5")

    def compose(self, *words: str) -> str:
        """Run `docker compose` on the project; gives what it said."""
        return self._docker.run(*self._compose, *words)

    def computes(self, worker: int) -> bool:
        return self._docker.says("exec", _container(worker), "pgrep", "-f", "CoarseGrainedExecutorBackend")

    def kill_worker(self, worker: int) -> None:
        self._docker.run("kill", _container(worker))


def _container(worker: int) -> str:
    return f"{_PROJECT}-spark-worker-{worker + 1}"


@contextmanager
def cluster_of_containers(docker: Docker, folder: Path) -> Iterator[ClusterOfContainers]:
    """Start it all, and leave nothing behind but images."""
    cluster = ClusterOfContainers(docker, folder, FreePorts())
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.down()


def _secret(file: Path, name: str) -> str:
    lines = (line.partition("=") for line in file.read_text().splitlines())
    return next(value for variable, _, value in lines if variable == name)
