"""Complete runs as a user starts them, each with its own warehouse and Airflow home."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.pipeline.airflow_server import free_port
from setup.airflow_home import POOLS
from tests.real_cluster.processes import wait_until
from tests.support.airflow_api import DAY_DAG_ID, AirflowApi

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "exports"


class Project:
    """The checkout's programs, run in the environment that `make` uses.

    Args:
        folder: The folder for the warehouse and Airflow's home.
        environment: Additional environment variables.

    Attributes:
        api: A client of the Airflow that `airflow` starts.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        self.warehouse = folder / "warehouse"
        self.environment = {
            **os.environ,
            "LEDGER_WAREHOUSE": str(self.warehouse),
            "LEDGER_EXPORTS": str(SAMPLE),
            "LEDGER_AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW_PORT": str(free_port()),
            **environment,
        }
        self.api = AirflowApi(f"http://127.0.0.1:{self.environment['AIRFLOW_PORT']}", password=None)
        self.run("airflow", "db", "migrate")
        for pool in POOLS:
            self.run("airflow", "pools", "set", *pool)

    def run(self, *words: str, expect: int = 0, **environment: str) -> str:
        """Run a program with additional environment variables, and return its standard output."""
        answer = subprocess.run(
            [ROOT / "setup" / "in-environment", *words],
            cwd=ROOT,
            env={**self.environment, **environment},
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert answer.returncode == expect, f"{words}: {answer.returncode}\n{answer.stdout}\n{answer.stderr}"
        return answer.stdout

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query of the published tables."""
        answer = self.run("ledger", "sql", query, "--format", "json", "--warehouse", str(self.warehouse))
        rows: list[dict[str, Any]] = json.loads(answer)
        return rows

    def backfill(self, first: str, last: str) -> list[str]:
        """Start a sequential backfill in a running Airflow, beside its scheduler; return the ids of the days' runs.

        The build of the first day stages the other days too.
        """
        wait_until(self.api.knows_dag, 120)
        self.api.unpause()
        dates = ["--from-date", first, "--to-date", last, "--max-active-runs", "1"]
        conf = json.dumps({"stage_through": last})
        self.run("airflow", "backfill", "create", "--dag-id", DAY_DAG_ID, *dates, "--dag-run-conf", conf)
        return [run_id for run_id in self.api.states(DAY_DAG_ID) if run_id.startswith("backfill__")]

    @contextmanager
    def airflow(self) -> Iterator[subprocess.Popen[str]]:
        """Run `make airflow`, and end it with Ctrl-C."""
        server = subprocess.Popen(
            [ROOT / "setup" / "in-environment", "python", "-m", "rebalance_ledger.pipeline.airflow_server"],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            assert f"http://127.0.0.1:{self.environment['AIRFLOW_PORT']}" in server.stdout.readline()
            yield server
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=60)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))
