"""A client of Airflow's REST API, for servers that tests have started.

Belongs here: requests to Airflow and waiting for results. Does not belong here: starting Airflow.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from tests.real_cluster.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

DAG_ID = "cluster_ledger"
DAY_DAG_ID = "queue_ledger"
CLUSTER = "shop-prod"
APPROVAL_DAG_ID = "queue_ledger_approval"
# On a busy machine with two cores, a day takes one to two minutes.
_DAY_S = 600


class AirflowApi:
    """Airflow's REST API, called as the administrator.

    Args:
        address: Such as `http://127.0.0.1:8080`.
        password: The administrator's; None if every user is an administrator.
    """

    def __init__(self, address: str, password: str | None) -> None:
        self._address = address
        self._password = password
        self._token = ""

    def log_in(self, password: str | None) -> int:
        """Return the HTTP status of a login with a password; store the token if the password is correct."""
        method, body = (
            ("GET", None) if password is None else ("POST", {"username": "admin", "password": password})
        )
        status, answer = self._send(method, "/auth/token", body)
        self._token = answer.get("access_token", "")
        return status

    def is_healthy(self) -> str | None:
        """Return a description of the parts that are not healthy, or None."""
        try:
            _, parts = self._send("GET", "/api/v2/monitor/health")
        except OSError as error:
            return str(error)
        unwell = [name for name, part in parts.items() if (part or {}).get("status") != "healthy"]
        return f"not healthy: {unwell}" if unwell else None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer to a request that must succeed; `path` begins after `/api/v2/`."""
        if not self._token:
            assert self.log_in(self._password) == 201
        status, answer = self._send(method, f"/api/v2/{path}", body)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def unpause(self) -> None:
        """Unpause the DAGs, that of one cluster first: a run of all clusters triggers its runs."""
        for dag_id in (DAG_ID, DAY_DAG_ID):
            self.ask("PATCH", f"dags/{dag_id}", {"is_paused": False})

    def knows_dag(self) -> str | None:
        """Return a description of what is missing until the DAG processor has loaded the DAGs, or None."""
        known = {dag["dag_id"] for dag in self.ask("GET", "dags")["dags"]}
        return None if {DAG_ID, DAY_DAG_ID, APPROVAL_DAG_ID} <= known else f"the DAGs are {known}"

    def trigger(self, day: str, cluster: str = CLUSTER, *, force: bool = False) -> str:
        """Trigger a run of a cluster and day, as the form does; return its id."""
        conf = {"cluster": cluster, "ds": day, "force": force}
        run = self.ask("POST", f"dags/{DAG_ID}/dagRuns", {"logical_date": None, "conf": conf})
        run_id: str = run["dag_run_id"]
        return run_id

    def give_up(self, run_id: str) -> None:
        """Mark a run as failed, which ends its tasks."""
        self.ask("PATCH", f"dags/{DAG_ID}/dagRuns/{quote(run_id, safe='')}", {"state": "failed"})

    def announce_export(self, cluster: str, day: str) -> None:
        """Emit the asset event of an uploaded export, as an external collector does."""
        key = f"{cluster}|{day}"
        self.ask(
            "POST", "assets/events", {"asset_id": self._asset_id("ledger://exports"), "partition_key": key}
        )

    def events_of(self, uri: str) -> list[dict[str, Any]]:
        """Return the events of an asset."""
        answer = self.ask("GET", f"assets/events?asset_id={self._asset_id(uri)}")
        events: list[dict[str, Any]] = answer["asset_events"]
        return events

    def _asset_id(self, uri: str) -> int:
        [asset] = self.ask("GET", f"assets?uri_pattern={quote(uri, safe='')}")["assets"]
        asset_id: int = asset["id"]
        return asset_id

    def runs(self, dag_id: str = DAG_ID) -> list[dict[str, Any]]:
        """Return the runs of a DAG."""
        found: list[dict[str, Any]] = self.ask("GET", f"dags/{dag_id}/dagRuns")["dag_runs"]
        return found

    def backfill(self, first: str, last: str) -> None:
        """Start a backfill that runs some days sequentially."""
        dates = {"from_date": f"{first}T00:00:00Z", "to_date": f"{last}T00:00:00Z"}
        self.ask("POST", "backfills", {"dag_id": DAY_DAG_ID, "max_active_runs": 1, **dates})

    def start_approval(self, cluster: str, ds: str) -> str:
        """Trigger the approval DAG, as its form does; return the run's id."""
        self.ask("PATCH", f"dags/{APPROVAL_DAG_ID}", {"is_paused": False})
        run = self.ask(
            "POST",
            f"dags/{APPROVAL_DAG_ID}/dagRuns",
            {"logical_date": None, "conf": {"cluster": cluster, "ds": ds}},
        )
        run_id: str = run["dag_run_id"]
        return run_id

    def required_action(self, run_id: str) -> dict[str, Any]:
        """Wait until a run of the approval DAG requires an action; return its subject, body and parameters."""
        path = f"dags/{APPROVAL_DAG_ID}/dagRuns/{quote(run_id, safe='')}/hitlDetails"

        def missing() -> str | None:
            details = self.ask("GET", path)["hitl_details"]
            is_waiting = any(each["task_instance"]["state"] == "awaiting_input" for each in details)
            return None if is_waiting else f"nobody is asked yet; the run is {self.states(APPROVAL_DAG_ID)}"

        wait_until(missing, _DAY_S)
        [detail] = self.ask("GET", path)["hitl_details"]
        return dict(detail)

    def decide(self, run_id: str, option: str, **parameters: str) -> None:
        """Respond to the required action of a run of the approval DAG, wait for the task, and respond again if it asks again.

        An immediate response can be lost. Airflow's scheduler may process the exit of the process that created the action after it
        has queued the process that handles the response. It then treats the exit as an end of the task in a wrong state, and the
        next try creates the action again.
        """
        path = f"dags/{APPROVAL_DAG_ID}/dagRuns/{quote(run_id, safe='')}"
        answered_try = 0

        def missing() -> str | None:
            nonlocal answered_try
            task = self.ask("GET", f"{path}/taskInstances/approval")
            if task["state"] == "awaiting_input" and task["try_number"] > answered_try:
                answer = {"chosen_options": [option], "params_input": parameters}
                self.ask("PATCH", f"{path}/taskInstances/approval/-1/hitlDetails", answer)
                answered_try = task["try_number"]
            is_over = task["state"] in {"success", "failed"}
            return None if is_over else f"the task is {task['state']}, answered in try {answered_try}"

        wait_until(missing, _DAY_S)

    def task_page(self, dag_id: str, run_id: str, task_id: str) -> str:
        """Return the address of a task's page with details and buttons, for a browser."""
        return f"{self._address}/dags/{dag_id}/runs/{quote(run_id, safe='')}/tasks/{task_id}/details"

    def states(self, dag_id: str = DAG_ID) -> dict[str, str]:
        """Return the states by run id."""
        return {run["dag_run_id"]: run["state"] for run in self.runs(dag_id)}

    def wait_for(self, run_ids: Sequence[str], day_s: float = _DAY_S, dag_id: str = DAG_ID) -> list[str]:
        """Wait until these runs have ended, with a timeout for each, and return their states."""

        def running() -> str | None:
            states = self.states(dag_id)
            still = [run_id for run_id in run_ids if states.get(run_id) not in {"success", "failed"}]
            return f"still running: {still}" if still else None

        wait_until(running, day_s * len(run_ids), between_looks_s=2)
        states = self.states(dag_id)
        return [states[run_id] for run_id in run_ids]

    def tasks(self, run_id: str, dag_id: str = DAG_ID) -> list[dict[str, Any]]:
        """Return the task instances of a run."""
        found: list[dict[str, Any]] = self.ask("GET", _tasks_of(run_id, dag_id))["task_instances"]
        return found

    def task(self, run_id: str, task_id: str) -> dict[str, Any]:
        """Return a task instance of a run."""
        return next(task for task in self.tasks(run_id) if task["task_id"] == task_id)

    def log(self, task: dict[str, Any], try_number: int = 1) -> str:
        """Return the log of a try of a task instance, including the output of a Spark driver."""
        return "\n".join(self._log_events(task, try_number))

    def last_shown(self, task: dict[str, Any]) -> str:
        """Return the last message in the log of a task instance; the page does not show group markers."""
        return next(event for event in reversed(self._log_events(task, 1)) if not event.startswith("::"))

    def _log_events(self, task: dict[str, Any], try_number: int) -> list[str]:
        path = f"{_tasks_of(task['dag_run_id'])}/{task['task_id']}/logs/{try_number}"
        answer = self.ask("GET", f"{path}?map_index={task['map_index']}&full_content=true")
        return [str(entry.get("event")) for entry in answer["content"]]

    def why_failed(self, run_id: str) -> str:
        """Return the logs of the failed tasks of a run."""
        failed = [task for task in self.tasks(run_id) if task["state"] == "failed"]
        return "\n".join(f"{task['task_id']}:\n{self.log(task, task['try_number'])}" for task in failed)

    def buttons(self, run_id: str, task_id: str) -> dict[str, str]:
        """Return the addresses of a task's buttons by label."""
        links: dict[str, str] = self.ask("GET", f"{_tasks_of(run_id)}/{task_id}/links")["extra_links"]
        return links

    def page(self, address: str) -> str:
        """Return the page at an address on the same server, requested as by a logged-in browser."""
        assert address.startswith("/"), address
        request = Request(f"{self._address}{address}", headers={"Cookie": f"_token={self._token}"})  # noqa: S310  # http on loopback
        with build_opener(ProxyHandler({})).open(request, timeout=60) as response:
            text: str = response.read().decode("utf-8")
        return text

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


def run_of(day: str, cluster: str = CLUSTER) -> str:
    """Return the id of the run that a backfill starts for a cluster and day."""
    return f"backfill__{day}T00:00:00+00:00__{cluster}"


def _tasks_of(run_id: str, dag_id: str = DAG_ID) -> str:
    return f"dags/{dag_id}/dagRuns/{quote(run_id, safe='')}/taskInstances"
