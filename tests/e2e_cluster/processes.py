"""The deployment as processes on loopback: the services of docker-compose.yml with its own settings, without containers."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.error import HTTPError

import psutil

from setup import spark_conf
from tests.e2e_cluster.compose_file import service
from tests.e2e_cluster.deployment import CLUSTER, EXPORTS, ROOT, SETTINGS, project, spark_workers
from tests.e2e_cluster.postgresql import postgresql
from tests.real_cluster.processes import FreePorts, Processes, Started, descendants, wait_until
from tests.support.airflow_api import AirflowApi

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_VENV = ROOT / ".venv"
_START_SECONDS = 300
_WORKERS = 2
# As on one machine (see conf/spark), because the days are small. The containers use both compilers of the JVM, as deployed.
_FOR_FEW_ROWS = """
spark.driver.extraJavaOptions     -Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m
spark.executor.extraJavaOptions   -Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m
"""


class Installation(NamedTuple):
    """The choices of an installation.

    Attributes:
        exports: Folder of all clusters' exports.
        settings: The settings file.
        variables: Variables of the services that differ from docker-compose.yml.
    """

    exports: Path = EXPORTS
    settings: Path = SETTINGS
    variables: Mapping[str, str] = MappingProxyType({})


AS_SHIPPED = Installation()


class ClusterOfProcesses:
    """One process for each container that the Compose file would start.

    Args:
        processes: The set of processes that they start in, and that ends them with the test.
        folder: The folder for everything that the containers store in volumes.
        metadata: The address of Airflow's database, for SQLAlchemy.
        installation: Exports, settings and variables.
    """

    def __init__(
        self, processes: Processes, folder: Path, ports: FreePorts, metadata: str, installation: Installation
    ) -> None:
        self.warehouse = str(folder / "warehouse")
        self.store: dict[str, str] = {}
        self._processes = processes
        self._folder = folder
        page, history, rpc, api, health = (ports.block(1) for _ in range(5))
        drawn = draw_secrets(folder / "secrets", metadata)
        self._master = f"spark://127.0.0.1:{rpc}"
        self.spark_master = f"http://127.0.0.1:{page}"
        self.spark_history = f"http://127.0.0.1:{history}"
        self.airflow = AirflowApi(f"http://127.0.0.1:{api}", (drawn / "admin" / "password").read_text())
        self._here = {
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{api}/execution/",
            "AIRFLOW__EDGE__API_URL": f"http://127.0.0.1:{api}/edge_worker/v1/rpcapi",
            "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{api}",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(api),
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_HOST": "127.0.0.1",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(health),
            "LEDGER_EXPORTS": str(installation.exports),
            "LEDGER_SETTINGS": str(installation.settings),
            "LEDGER_WAREHOUSE": self.warehouse,
            "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
            "SPARK_HISTORY_OPTS": f"-Dspark.history.ui.port={history}",
            "AIRFLOW_CONN_SPARK_DEFAULT": f'{{"conn_type": "spark", "host": "spark://127.0.0.1", "port": {rpc}}}',
            **installation.variables,
        }
        spark_conf.write(spark_conf.OF_A_CLUSTER, folder / "spark-conf")
        with (folder / "spark-conf" / "spark-defaults.conf").open("a") as defaults:
            defaults.write(_FOR_FEW_ROWS)
        for place in ("airflow", "spark-events"):
            (folder / place).mkdir()
        self._start_spark(page, rpc, history)
        self._start_airflow()

    def in_scheduler(self, *command: str) -> str:
        program, *arguments = map(self._local, command)
        return subprocess.run(
            [_VENV / "bin" / program, *arguments],
            env=self._environment("airflow-scheduler"),
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def staged(self, day: str) -> Iterable[str]:
        stage = Path(self.warehouse, "staging", CLUSTER, day)
        # Spark removes its temporary folders meanwhile, and `os.walk` skips missing folders.
        return [
            str(Path(folder, name).relative_to(stage))
            for folder, folders, files in os.walk(stage)
            for name in (*folders, *files)
        ]

    def computes(self, worker: int) -> bool:
        return bool(self._executors(worker))

    def kill_worker(self, worker: int) -> None:
        executors = self._executors(worker)
        self._workers[worker].kill()
        _kill(executors)

    def _executors(self, worker: int) -> list[psutil.Process]:
        return descendants(self._workers[worker].pid, "CoarseGrainedExecutorBackend")

    def _start_spark(self, page: int, rpc: int, history: int) -> None:
        spark = "org.apache.spark.deploy"
        properties = ["--properties-file", str(self._folder / "secrets" / "spark" / "rpc.conf")]
        master = self._start(
            "spark-master", "spark-class", f"{spark}.master.Master",
            "--host", "127.0.0.1", "--port", str(rpc), "--webui-port", str(page), *properties,
            like="spark-master",
        )  # fmt: skip
        wait_until(lambda: None if master.listens_on(page) else "the master has no page", _START_SECONDS)
        self._workers = [
            self._start(
                f"spark-worker-{number}", "python", str(ROOT / "deploy" / "local_address.py"), self._master,
                "spark-class", f"{spark}.worker.Worker", "--webui-port", "0",
                "--work-dir", str(self._folder / f"work-{number}"), *properties, self._master,
                like="spark-worker",
            )
            for number in range(_WORKERS)
        ]  # fmt: skip
        wait_until(self._missing_worker, _START_SECONDS)
        pages = self._start(
            "spark-history", "spark-class", f"{spark}.history.HistoryServer", like="spark-history"
        )
        wait_until(lambda: None if pages.listens_on(history) else "there is no history yet", _START_SECONDS)

    def _missing_worker(self) -> str | None:
        try:
            states = spark_workers(self)
        except (ValueError, HTTPError):
            return "the master's pages are not all there yet"  # it listens before its pages are registered
        return None if states == ["ALIVE"] * _WORKERS else f"the workers are {states}"

    def _start_airflow(self) -> None:
        done = self._start_service("airflow-init")
        assert done.process.wait(_START_SECONDS) == 0, done.last_output()
        api_server = self._start_service("airflow-api-server")
        # The log servers would listen on every interface; the API server reads the files.
        self.scheduler = self._start_service("airflow-scheduler", "--skip-serve-logs")
        parts = [
            api_server,
            self.scheduler,
            self._start_service("airflow-dag-processor"),
            self._start_service("airflow-triggerer", "--skip-serve-logs"),
        ]

        def unwell() -> str | None:
            for part in parts:
                assert part.is_alive(), part.last_output()
            return self.airflow.is_healthy()

        wait_until(unwell, _START_SECONDS)
        self.airflow_worker = worker = self._start_service("airflow-worker")
        registered = self._folder / "airflow" / "worker.pid"

        def unregistered() -> str | None:
            assert worker.is_alive(), worker.last_output()
            return None if registered.exists() else "Airflow's worker has not registered"

        wait_until(unregistered, _START_SECONDS)

    def _start_service(self, name: str, *more: str) -> Started:
        program, *arguments = (self._local(word) for word in service(name)["command"])
        return self._start(name, program, *arguments, *more, like=name)

    def _start(self, name: str, program: str, *arguments: str, like: str) -> Started:
        return self._processes.start(
            [_VENV / "bin" / program, *arguments], self._folder / name, environment=self._environment(like)
        )

    def _environment(self, name: str) -> dict[str, str]:
        """Return the environment of a service, with addresses and paths of this machine."""
        of_service = {
            variable: self._local(value) for variable, value in service(name).get("environment", {}).items()
        }
        return {**_like_the_image(self._folder), **of_service, **self._here}

    def _local(self, text: str) -> str:
        """Replace the folders of the containers by those of this machine."""
        places = {
            "/opt/rebalance-ledger": ROOT,
            "/run/ledger-secrets": self._folder / "secrets",
            "/var/lib/airflow": self._folder / "airflow",
            "spark://spark-master:7077": self._master,
        }
        for there, here in places.items():
            text = text.replace(there, str(here))
        return text


def draw_secrets(folder: Path, metadata: str) -> Path:
    """Generate secrets as the service `secrets-init` does, for a database at another address; return the folder."""
    folder.mkdir()
    subprocess.run([sys.executable, ROOT / "deploy" / "draw_secrets.py", folder], check=True)
    url = folder / "metadata" / "url"
    url.unlink()
    url.write_text(metadata)
    return folder


@contextmanager
def cluster_of_processes(
    folder: Path, installation: Installation = AS_SHIPPED
) -> Iterator[ClusterOfProcesses]:
    """Start the deployment, and leave nothing behind."""
    processes = Processes()
    ports = FreePorts()
    with ExitStack() as ends:
        ends.callback(_end, processes)
        metadata = ends.enter_context(postgresql(processes, ports.block(1), secrets.token_hex(8)))
        yield ClusterOfProcesses(processes, folder, ports, metadata.address, installation)


def _end(processes: Processes) -> None:
    """End a process and its children, because those of Airflow's scheduler and of Spark's workers must not outlive them."""
    families = [
        child for started in processes.started if started.is_alive() for child in descendants(started.pid)
    ]
    processes.close()
    _kill(families)


def _kill(family: list[psutil.Process]) -> None:
    for process in family:
        with suppress(psutil.NoSuchProcess):  # it may have ended with its parent
            process.kill()


def _like_the_image(folder: Path) -> dict[str, str]:
    """Return the environment that deploy/Dockerfile sets, with the paths of this checkout."""
    java_home = (ROOT / ".local" / "java-home").read_text().strip()
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AIRFLOW", "SPARK", "LEDGER"))
    }
    return {
        **own,
        "PATH": os.pathsep.join([str(_VENV / "bin"), f"{java_home}/bin", os.environ["PATH"]]),
        "JAVA_HOME": java_home,
        "LEDGER_ROOT": str(ROOT),
        "LEDGER_SPARK_EVENTS": str(folder / "spark-events"),
        "PYSPARK_PYTHON": str(_VENV / "bin" / "python"),
        "PYSPARK_DRIVER_PYTHON": str(_VENV / "bin" / "python"),
        "SPARK_HOME": project("printenv", "SPARK_HOME").strip(),
        "SPARK_CONF_DIR": str(folder / "spark-conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "NO_PROXY": "127.0.0.1,localhost",
        "GX_ANALYTICS_ENABLED": "false",
    }
