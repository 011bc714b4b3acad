"""Access to any kind of deployment: Airflow by its API, Spark by its pages, files or objects.

Belongs here: queries. Does not belong here: starting its parts (`processes`, `containers`).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.request import ProxyHandler, build_opener

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.support.airflow_api import AirflowApi

ROOT = Path(__file__).resolve().parents[2]
EXPORTS = ROOT / "samples" / "exports"
SETTINGS = ROOT / "conf" / "ledger.yaml"
CLUSTER = "shop-prod"


class Deployment(Protocol):
    """A running PostgreSQL, Airflow and Spark."""

    airflow: AirflowApi
    spark_master: str
    """The address of the master's page."""
    spark_history: str
    """The address of the history server's pages."""
    warehouse: str
    """The location of the tables for programs of this machine: a folder, or a prefix in an object store."""
    store: Mapping[str, str]
    """The environment variables for that object store; empty for a folder."""

    def in_scheduler(self, *command: str) -> str:
        """Run a command in the scheduler's environment; return its output."""

    def staged(self, day: str) -> Iterable[str]:
        """Return the files of a day's stage by their relative paths: attempt, table, file."""

    def computes(self, worker: int) -> bool:
        """Return whether this worker, 0 or 1, has an executor."""

    def kill_worker(self, worker: int) -> None:
        """Kill a worker and its executors as a power failure would."""


def spark_workers(deployment: Deployment) -> list[str]:
    """Return the state of each worker according to the master: ALIVE, DEAD."""
    with build_opener(ProxyHandler({})).open(f"{deployment.spark_master}/json/", timeout=30) as answer:
        return [worker["state"] for worker in json.loads(answer.read())["workers"]]


def finished_applications(deployment: Deployment) -> list[str]:
    """Return the names of the applications that the history server lists as completed."""
    address = f"{deployment.spark_history}/api/v1/applications?status=completed"
    with build_opener(ProxyHandler({})).open(address, timeout=30) as answer:
        return [application["name"] for application in json.loads(answer.read())]


def fingerprint(warehouse: str, store: Mapping[str, str], cluster: str = CLUSTER) -> list[str]:
    """Return a line for each published day and table, with a hash of its rows."""
    place = [f"--cluster={cluster}", f"--warehouse={warehouse}"]
    return project("ledger", "fingerprint", *place, **store).splitlines()


def project(*words: str, **more: str) -> str:
    """Run a program of this checkout as a user does, with additional variables, and return its output."""
    answer = subprocess.run(
        [ROOT / "setup" / "in-environment", *words],
        cwd=ROOT,
        env={**os.environ, **more},
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert answer.returncode == 0, f"{words}: {answer.returncode}\n{answer.stdout}\n{answer.stderr}"
    return answer.stdout
