"""The deployment as the containers of docker-compose.yml, each from an image that is built here or pulled.

Exports and tables are in the deployment's own object store, and Spark's history server runs in addition.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import obstore
from obstore.store import S3Store

from tests.e2e_cluster.deployment import CLUSTER, EXPORTS, ROOT, SETTINGS, project
from tests.e2e_cluster.images import LEDGER_IMAGE, object_store_image, postgres_image
from tests.object_store.server import on_loopback
from tests.real_cluster.processes import FreePorts
from tests.support.airflow_api import AirflowApi

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tests.e2e_cluster.engine import Docker

_PROJECT = "ledger-e2e"
_BUCKET = "ledger"
_EXPORTS = f"s3a://{_BUCKET}/exports"


class ClusterOfContainers:
    """The Compose project, up and healthy; exports and tables are in its object store.

    Args:
        docker: The engine.
        folder: The folder for its secrets and settings.
        ports: The ports that this machine connects to.
    """

    def __init__(self, docker: Docker, folder: Path, ports: FreePorts) -> None:
        self.warehouse = f"s3a://{_BUCKET}/warehouse"
        self._docker = docker
        env_file = folder / "deployment.env"
        self._compose = [
            "compose",
            f"--project-name={_PROJECT}",
            f"--file={ROOT / 'docker-compose.yml'}",
            f"--env-file={env_file}",
        ]
        page, history, api, objects = (f"127.0.0.1:{ports.block(1)}" for _ in range(4))
        self.spark_master = f"http://{page}"
        self.spark_history = f"http://{history}"
        # The settings that an installation would write into .env.
        with env_file.open("w") as settings:
            settings.write(
                "COMPOSE_PROFILES=object-store,history\n"
                f"AIRFLOW_LISTEN={api}\n"
                f"SPARK_MASTER_LISTEN={page}\n"
                f"SPARK_HISTORY_LISTEN={history}\n"
                f"OBJECT_STORE_LISTEN={objects}\n"
                f"BASE_IMAGE={docker.base_image}\n"
                f"LEDGER_IMAGE={LEDGER_IMAGE}\n"
                f"POSTGRES_IMAGE={postgres_image(docker)}\n"
                f"OBJECT_STORE_IMAGE={object_store_image(docker)}\n"
                f"LEDGER_EXPORTS_AT={_EXPORTS}\n"
                f"LEDGER_WAREHOUSE_AT={self.warehouse}\n"
                f"LEDGER_SETTINGS_FROM={SETTINGS}\n"
            )
        # Generate the secrets before the deployment starts, so that the test has them.
        self.compose("build")
        self.compose("run", "--rm", "secrets-init")
        self.airflow = AirflowApi(f"http://{api}", self._secret("admin/password"))
        self.store = on_loopback(
            f"http://{objects}",
            self._secret("object-store/access-key-id"),
            self._secret("object-store/secret-access-key"),
        )

    def up(self) -> None:
        """Start every service, wait until all are healthy, and upload the exports."""
        self.compose("up", "--detach", "--wait")
        for export in sorted((EXPORTS / CLUSTER).iterdir()):
            project("ledger", "exports", "upload", str(export), f"--exports={_EXPORTS}", **self.store)

    def down(self) -> None:
        """End the deployment, and remove its volumes."""
        self.compose("down", "--volumes", "--timeout=5")

    def compose(self, *words: str) -> str:
        """Run `docker compose` on the project, and return its output."""
        return self._docker.run(*self._compose, *words)

    def _secret(self, file: str) -> str:
        return self.compose("run", "--rm", "secrets-init", "cat", f"/run/ledger-secrets/{file}")

    def in_scheduler(self, *command: str) -> str:
        return self.compose("exec", "--no-TTY", "airflow-scheduler", *command)

    def staged(self, day: str) -> Iterable[str]:
        bucket = S3Store(
            _BUCKET,
            config={
                "endpoint": self.store["AWS_ENDPOINT_URL"],
                "region": self.store["AWS_REGION"],
                "access_key_id": self.store["AWS_ACCESS_KEY_ID"],
                "secret_access_key": self.store["AWS_SECRET_ACCESS_KEY"],
            },
            client_options={"allow_http": True},
        )
        stage = f"warehouse/staging/{CLUSTER}/{day}/"
        return [found["path"].removeprefix(stage) for page in obstore.list(bucket, stage) for found in page]

    def computes(self, worker: int) -> bool:
        return self._docker.succeeds(
            "exec", _container(worker), "pgrep", "-f", "CoarseGrainedExecutorBackend"
        )

    def kill_worker(self, worker: int) -> None:
        self._docker.run("kill", _container(worker))


def _container(worker: int) -> str:
    return f"{_PROJECT}-spark-worker-{worker + 1}"


@contextmanager
def cluster_of_containers(docker: Docker, folder: Path) -> Iterator[ClusterOfContainers]:
    """Start the deployment, and leave nothing but images behind."""
    cluster = ClusterOfContainers(docker, folder, FreePorts())
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.down()
