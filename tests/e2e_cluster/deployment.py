"""What the tests ask of a deployment, whatever it is made of: Airflow by its API, Spark's master by its page, files.

Belongs here: asking. Does not belong here: how its parts are started (`processes`, `containers`).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.request import ProxyHandler, build_opener

if TYPE_CHECKING:
    from tests.airflow_api import AirflowApi

ROOT = Path(__file__).resolve().parents[2]
EXPORTS = ROOT / "samples" / "exports"
SETTINGS = ROOT / "conf" / "ledger.yaml"
CLUSTER = "shop-prod"


class Deployment(Protocol):
    """PostgreSQL, Airflow and Spark, running."""

    airflow: AirflowApi
    spark_master: str
    """The address of the master's page."""
    warehouse: Path
    """Where this process finds the tables."""

    def computes(self, worker: int) -> bool:
        """Whether this worker, 0 or 1, has an executor."""

    def kill_worker(self, worker: int) -> None:
        """End a worker and its executors as a machine ends that loses its power."""


def spark_workers(deployment: Deployment) -> list[str]:
    """The state of each worker by the master's word: ALIVE, DEAD."""
    with build_opener(ProxyHandler({})).open(f"{deployment.spark_master}/json/", timeout=30) as answer:
        return [worker["state"] for worker in json.loads(answer.read())["workers"]]


def fingerprint(warehouse: Path) -> list[str]:
    """A line for each published day and table, with a hash of its rows."""
    return project("ledger", "fingerprint", f"--cluster={CLUSTER}", f"--warehouse={warehouse}").splitlines()


def project(*words: str) -> str:
    """Run a program of this checkout as its user does, and give what it said."""
    answer = subprocess.run(
        [ROOT / "setup" / "in-environment", *words],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert answer.returncode == 0, f"{words}: {answer.returncode}\n{answer.stdout}\n{answer.stderr}"
    return answer.stdout
