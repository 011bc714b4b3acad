"""Start a run of a DAG and wait for its end: `run_dag.py DAG_ID CONF [--then DAG_ID PARTITION_KEY]`.

It runs in a container that reaches Airflow's metadata. With `--then` it also waits for the run of the second DAG that an asset event of the first
run starts. The tasks run as those of every other run, by the executors of the deployment. The exit code is 0 if the runs succeeded. Otherwise it is
1, and each failed task is printed with its reason, the last message in its log.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from airflow.configuration import conf as airflow_settings
from airflow.models import DagModel, DagRun, TaskInstance
from airflow.utils.session import create_session
from sqlalchemy import select

from rebalance_ledger.printable import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

_BETWEEN_LOOKS_S: Final = 2
_START_S: Final = 300


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description="Start a run of a DAG and wait for its end.")
    parser.add_argument("dag_id")
    parser.add_argument("conf", help="its parameters, as JSON")
    parser.add_argument(
        "--then",
        nargs=2,
        metavar=("DAG_ID", "PARTITION_KEY"),
        help="the run that an event of the first starts",
    )
    given = parser.parse_args(arguments)
    # The first one last: unpaused, it may start a run at once, and Airflow drops its events for a paused DAG.
    for dag_id in [*(given.then or [])[:1], given.dag_id]:
        while not _is_known(dag_id):
            time.sleep(_BETWEEN_LOOKS_S)
        _airflow("dags", "unpause", "--yes", dag_id)
    earlier = _runs_of_key(*given.then) if given.then else []
    run_id = f"manual__{uuid.uuid4()}"
    _airflow("dags", "trigger", given.dag_id, "--run-id", run_id, "--conf", given.conf)
    if not _succeeds(given.dag_id, run_id):
        return 1
    if given.then is None:
        return 0
    dag_id, key = given.then
    end = time.monotonic() + _START_S
    while not (new := [run for run in _runs_of_key(dag_id, key) if run not in earlier]):
        if time.monotonic() > end:
            sys.stdout.write(
                f"No event of {given.dag_id} has started a run of {dag_id} for {visible(key)} within {_START_S} s.\n"
            )
            return 1
        time.sleep(_BETWEEN_LOOKS_S)
    return 0 if _succeeds(dag_id, new[0]) else 1


def _succeeds(dag_id: str, run_id: str) -> bool:
    """Wait for the end of a run, print its failed tasks, and return whether it succeeded."""
    while (state := _state(dag_id, run_id)) not in {"success", "failed"}:
        time.sleep(_BETWEEN_LOOKS_S)
    if state == "failed":
        sys.stdout.write(f"{dag_id} failed:\n")
        for task in _failed_tasks(dag_id, run_id):
            sys.stdout.write(f"  {task.task_id}: {_reason(task)}\n")
    return state == "success"


def _runs_of_key(dag_id: str, key: str) -> list[str]:
    """Return the ids of a DAG's runs with a partition key, the earliest first."""
    with create_session() as session:
        query = select(DagRun.run_id).where(DagRun.dag_id == dag_id, DagRun.partition_key == key)
        return list(session.scalars(query.order_by(DagRun.id)))


def _airflow(*command: str) -> None:
    subprocess.run(["airflow", *command], check=True, stdout=subprocess.DEVNULL)  # noqa: S603, S607  # in the image there is one


def _is_known(dag_id: str) -> bool:
    """Return whether the DAG processor has read the DAG since the deployment was started."""
    with create_session() as session:
        return session.get(DagModel, dag_id) is not None


def _state(dag_id: str, run_id: str) -> str:
    with create_session() as session:
        query = select(DagRun.state).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
        return str(session.scalar(query))


def _failed_tasks(dag_id: str, run_id: str) -> list[TaskInstance]:
    with create_session() as session:
        of_run = (TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id)
        return list(session.scalars(select(TaskInstance).where(*of_run, TaskInstance.state == "failed")))


def _reason(task: TaskInstance) -> str:
    """Return the last message in the log of a task's last try, which is the reason of its failure."""
    logs = Path(airflow_settings.get("logging", "base_log_folder"))
    of_task = logs / f"dag_id={task.dag_id}" / f"run_id={task.run_id}" / f"task_id={task.task_id}"
    of_instance = of_task / f"map_index={task.map_index}" if task.map_index >= 0 else of_task
    try:
        lines = (of_instance / f"attempt={task.try_number}.log").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        return f"its log cannot be read here ({error.strerror})"
    messages = [str(json.loads(line)["event"]) for line in lines]
    # Lines with `::` begin and end groups of lines on Airflow's pages.
    reason = next(
        (message for message in reversed(messages) if not message.startswith("::")), "its log is empty"
    )
    return visible(reason, keep="\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
