"""Start a run of a DAG and wait for its end: `run_dag.py DAG_ID CONF`, in a container that reaches Airflow's metadata.

Its tasks run as those of every other run, by the executors of the deployment. The exit code is 0 if the run succeeded. Otherwise it is 1, and the
tasks that failed are printed.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from typing import TYPE_CHECKING, Final

from airflow.models import DagModel, DagRun, TaskInstance
from airflow.utils.session import create_session
from sqlalchemy import select

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
        sys.stdout.write(
            f"{dag_id} failed: {', '.join(_failed_tasks(dag_id, run_id))}; Airflow's pages have their logs\n"
        )
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


def _failed_tasks(dag_id: str, run_id: str) -> list[str]:
    with create_session() as session:
        of_run = (TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id)
        return list(
            session.scalars(select(TaskInstance.task_id).where(*of_run, TaskInstance.state == "failed"))
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
