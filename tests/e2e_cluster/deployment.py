"""What the tests ask of a deployment, whatever it is made of: Airflow by its API, Spark's master by its page, files.

Belongs here: asking and waiting. Does not belong here: how its parts are started (`processes`, `containers`).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from tests.real_cluster.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
EXPORTS = ROOT / "samples" / "exports"
SETTINGS = ROOT / "conf" / "ledger.yaml"
DAG_ID = "queue_ledger"
CLUSTER = "shop-prod"
# On two cores that other work shares, a day takes one to two minutes here.
_DAY_SECONDS = 600


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


class AirflowApi:
    """Airflow's REST API, logged in as the administrator.

    Args:
        address: Such as `http://127.0.0.1:8080`.
        password: The administrator's.
    """

    def __init__(self, address: str, password: str) -> None:
        self._address = address
        self._password = password
        self._token = ""

    def log_in(self, password: str) -> int:
        """The HTTP status that a password gets; the token is kept if it is the right one."""
        status, answer = self._send("POST", "/auth/token", {"username": "admin", "password": password})
        self._token = answer.get("access_token", "")
        return status

    def is_healthy(self) -> str | None:
        """What is still missing until every part is well, or None."""
        try:
            _, parts = self._send("GET", "/api/v2/monitor/health")
        except OSError as error:
            return str(error)
        unwell = [name for name, part in parts.items() if (part or {}).get("status") != "healthy"]
        return f"not healthy: {unwell}" if unwell else None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a call that must succeed; `path` begins after `/api/v2/`."""
        if not self._token:
            assert self.log_in(self._password) == 201
        status, answer = self._send(method, f"/api/v2/{path}", body)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def unpause(self) -> None:
        self.ask("PATCH", f"dags/{DAG_ID}", {"is_paused": False})

    def knows_dag(self) -> str | None:
        """What is missing until the DAG processor has brought the DAG, or None."""
        known = [dag["dag_id"] for dag in self.ask("GET", "dags")["dags"]]
        return None if DAG_ID in known else f"the DAGs are {known}"

    def trigger(self, day: str) -> str:
        """Start a run at noon of the day, so that a backfill does not take the day for done; gives its id."""
        run = self.ask("POST", f"dags/{DAG_ID}/dagRuns", {"logical_date": f"{day}T12:00:00Z"})
        run_id: str = run["dag_run_id"]
        return run_id

    def backfill(self, first: str, last: str) -> None:
        """Begin to run some days, one after the other."""
        dates = {"from_date": f"{first}T00:00:00Z", "to_date": f"{last}T00:00:00Z"}
        self.ask("POST", "backfills", {"dag_id": DAG_ID, "max_active_runs": 1, **dates})

    def states(self) -> dict[str, str]:
        """State by run id."""
        runs = self.ask("GET", f"dags/{DAG_ID}/dagRuns")["dag_runs"]
        return {run["dag_run_id"]: run["state"] for run in runs}

    def wait_for(self, run_ids: Sequence[str]) -> list[str]:
        """Wait until these runs have ended, and say how."""

        def running() -> str | None:
            states = self.states()
            still = [run_id for run_id in run_ids if states.get(run_id) not in {"success", "failed"}]
            return f"still running: {still}" if still else None

        wait_until(running, _DAY_SECONDS * len(run_ids), between_looks_s=2)
        states = self.states()
        return [states[run_id] for run_id in run_ids]

    def build(self, run_id: str) -> dict[str, Any]:
        """The task instance `build` of a run."""
        run = quote(run_id, safe="")
        tasks = self.ask("GET", f"dags/{DAG_ID}/dagRuns/{run}/taskInstances")["task_instances"]
        return next(task for task in tasks if task["task_id"] == "cluster_day.build")

    def build_log(self, run_id: str) -> str:
        """What the first try of `build` wrote, the Spark driver's own output included."""
        run = quote(run_id, safe="")
        path = f"dags/{DAG_ID}/dagRuns/{run}/taskInstances/cluster_day.build/logs/1?map_index=0&full_content=true"
        return "\n".join(str(entry.get("event")) for entry in self.ask("GET", path)["content"])

    def _send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        request = Request(  # noqa: S310  # http on loopback, or in a container's network
            f"{self._address}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json"},
        )
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as error:
            return error.code, {"detail": error.read().decode(errors="replace")}


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
