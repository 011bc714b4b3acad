"""Start a run of a DAG and wait for its end: `run_dag.py DAG_ID CONF`, in a container that reaches Airflow's metadata.

Its tasks run as those of every other run, by the executors of the deployment. The exit code is 0 if the run succeeded. Otherwise it is 1, and each
failed task is printed with its reason, the last message in its log.
"""

from __future__ import annotations

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


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    dag_id, conf = arguments
    run_id = f"manual__{uuid.uuid4()}"
    while not _is_known(dag_id):
        time.sleep(_BETWEEN_LOOKS_S)
    _airflow("dags", "unpause", "--yes", dag_id)
    _airflow("dags", "trigger", dag_id, "--run-id", run_id, "--conf", conf)
    while (state := _state(dag_id, run_id)) not in {"success", "failed"}:
        time.sleep(_BETWEEN_LOOKS_S)
    if state == "failed":
        sys.stdout.write(f"{dag_id} failed:\n")
        for task in _failed_tasks(dag_id, run_id):
            sys.stdout.write(f"  {task.task_id}: {_reason(task)}\n")
        return 1
    return 0


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
