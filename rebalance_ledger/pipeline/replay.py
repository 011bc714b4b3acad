"""Repeat the days of landed exports in a running Airflow, from the export to the published day: `make replay`.

Each day is a run of `cluster_export`, which announces the landed export, and the run of `cluster_ledger` that its event starts, as on the day on
which the export was collected. A day is repeated when the one before has ended, because it is compared with the published day before it.

Belongs here: the runs and a line for each day. Does not belong here: starting Airflow (`airflow_server`), and the tasks of a run.
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from rebalance_ledger.exports.catalog import landed_days
from rebalance_ledger.exports.manifest import ExportError
from rebalance_ledger.operators.flow import EXPORT_DAG_ID, LEDGER_DAG_ID, partition_key
from rebalance_ledger.printable import visible
from rebalance_ledger.settings import SettingsError, load_settings
from rebalance_ledger.storage.location import InvalidLocationError, location_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date

    from rebalance_ledger.storage.location import Location

_DAG_SECONDS: Final = 120.0
"""How long a new scheduler may take to load the DAG."""
_START_SECONDS: Final = 120.0
_RUN_SECONDS: Final = 3600.0
_BETWEEN_LOOKS_S: Final = 2.0
_CALL_SECONDS: Final = 60.0
_FINAL_STATES: Final = frozenset({"success", "failed"})


class ReplayError(Exception):
    """The exports cannot be replayed; `str()` is one sentence."""


class AirflowApi:
    """The REST API of an Airflow on this machine on which everybody is an administrator, as `make airflow` starts it.

    Args:
        address: Address of the API server.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._token = ""

    def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401  # JSON
        """Return the answer to a request; `path` follows `/api/v2/`. None if Airflow has no such object.

        Raises:
            ReplayError: Airflow does not answer, or refuses the request.
        """
        try:
            self._token = self._token or self._send("GET", "/auth/token", None)["access_token"]
            return self._send(method, f"/api/v2/{path}", body)
        except HTTPError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise ReplayError(f"Airflow at {self._address} refuses {method} {path}: {error}.") from error

    def _send(self, method: str, path: str, body: object) -> Any:  # noqa: ANN401  # JSON
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._address}{path}", data, headers, method=method)  # noqa: S310  # http on loopback
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=_CALL_SECONDS) as answer:
                return json.loads(answer.read())
        except HTTPError:
            raise
        except OSError as error:
            raise ReplayError(
                f"No Airflow answers at {self._address} ({error}): run `make airflow` in another terminal, and try again when it has "
                "printed its address."
            ) from error


def main(arguments: Sequence[str]) -> int:
    """Replay the landed exports of some clusters, by default of all clusters in the settings.

    Returns:
        0 if each run has succeeded, 1 if one has failed, 2 if there is no export or no Airflow, or if live clusters would be queried, 130
        after Ctrl-C.
    """
    address = f"http://127.0.0.1:{os.environ['AIRFLOW_PORT']}"
    try:
        settings = load_settings(Path(os.environ["LEDGER_SETTINGS"])).clusters
        days = _landed(location_of(os.environ["LEDGER_EXPORTS"]), arguments or list(settings))
        api = AirflowApi(address)
        _unpause(api, sorted(cluster for cluster in settings if settings[cluster].collect))
        states = [_replay(api, cluster, f"{ds}") for ds, cluster in days]
    except (ExportError, InvalidLocationError, ReplayError, SettingsError) as error:
        sys.stderr.write(f"{visible(str(error), keep=chr(10))}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted. The run that was started goes on in Airflow.\n")
        return 130
    pages = " and ".join(f"{address}/dags/{dag_id}" for dag_id in (EXPORT_DAG_ID, LEDGER_DAG_ID))
    _say(f"The runs: {pages}. The published days: ledger summary")
    return 0 if set(states) == {"success"} else 1


def _landed(exports: Location, clusters: Sequence[str]) -> list[tuple[date, str]]:
    """Return the landed days of some clusters, the earliest first.

    Raises:
        ExportError: A cluster's name cannot be a folder's name.
        ReplayError: There is none.
    """
    days = sorted((ds, cluster) for cluster in clusters for ds in landed_days(exports, cluster))
    if not days:
        raise ReplayError(f"{exports} has no export of {', '.join(clusters) or 'a cluster'}: land one first.")
    return days


def _unpause(api: AirflowApi, collected: Sequence[str]) -> None:
    """Wait until the scheduler knows the DAGs, and unpause them: Airflow starts no run of a paused one, and drops the events for it.

    Raises:
        ReplayError: Unpausing `cluster_export` would start the collection of live clusters.
    """
    for dag_id in (LEDGER_DAG_ID, EXPORT_DAG_ID):
        found: dict[str, Any] = _wait(
            partial(api.ask, "GET", f"dags/{dag_id}"),
            _DAG_SECONDS,
            f"Airflow has not loaded the DAG {dag_id}",
        )
        if not found["is_paused"]:
            continue
        if dag_id == EXPORT_DAG_ID and collected:
            raise ReplayError(
                f"{EXPORT_DAG_ID} is paused, and unpausing it starts the daily collection of {', '.join(collected)}: unpause it, or remove "
                "`collect:` from the settings."
            )
        api.ask("PATCH", f"dags/{dag_id}", {"is_paused": False})


def _replay(api: AirflowApi, cluster: str, ds: str) -> str:
    """Repeat a day, wait for the ends of its two runs, and return the state of the last one."""
    key = partition_key(cluster, ds)
    earlier = {run["dag_run_id"] for run in _runs(api, key)}
    _say(f"{visible(cluster)} {ds}: {EXPORT_DAG_ID} … ", end="")
    request = {"logical_date": None, "conf": {"clusters": [cluster], "ds": ds}}
    export_run: str = api.ask("POST", f"dags/{EXPORT_DAG_ID}/dagRuns", request)["dag_run_id"]
    state = _end(api, EXPORT_DAG_ID, export_run)
    if state != "success":
        _say(state)
        return state
    begin = time.monotonic()
    _say(f"{state}; {LEDGER_DAG_ID} … ", end="")

    def started() -> str | None:
        new = (run["dag_run_id"] for run in _runs(api, key) if run["dag_run_id"] not in earlier)
        return next(new, None)

    run_id: str = _wait(started, _START_SECONDS, f"no run of {LEDGER_DAG_ID} has started for {key}")
    _say(f"started after {time.monotonic() - begin:.0f} s … ", end="")
    state = _end(api, LEDGER_DAG_ID, run_id)
    _say(f"{state} after {time.monotonic() - begin:.0f} s")
    return state


def _end(api: AirflowApi, dag_id: str, run_id: str) -> str:
    """Wait for the end of a run, and return its state."""

    def ended() -> str | None:
        state: str = api.ask("GET", f"dags/{dag_id}/dagRuns/{quote(run_id, safe='')}")["state"]
        return state if state in _FINAL_STATES else None

    state: str = _wait(ended, _RUN_SECONDS, f"the run {run_id} of {dag_id} has not ended")
    return state


def _runs(api: AirflowApi, key: str) -> list[dict[str, Any]]:
    """Return the newest runs of `cluster_ledger` that have a partition key."""
    found = api.ask("GET", f"dags/{LEDGER_DAG_ID}/dagRuns?order_by=-id&limit=100")["dag_runs"]
    return [run for run in found if run["partition_key"] == key]


def _wait(look: Callable[[], Any], seconds: float, missing: str) -> Any:  # noqa: ANN401  # what `look` returns
    """Return the first result of `look` that is not None.

    Raises:
        ReplayError: There is none within so many seconds.
    """
    end = time.monotonic() + seconds
    while (found := look()) is None:
        if time.monotonic() > end:
            raise ReplayError(f"After {seconds:.0f} s, {missing}: look at the logs in .local/logs.")
        time.sleep(_BETWEEN_LOOKS_S)
    return found


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(f"{text}{end}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
