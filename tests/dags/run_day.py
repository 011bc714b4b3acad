"""Runs a DAG for one day by `dag.test()` for each request line on stdin, and writes its outcome as a line of JSON.

It is a separate program, because Airflow caches its database and plugins for the life of a process. It serves many runs,
because it takes seconds to start. See `Runner` in conftest.py.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from typing import Any

from airflow.dag_processing.dagbag import DagBag
from airflow.models.asset import AssetEvent
from airflow.utils.session import create_session
from sqlalchemy import select


def run(dags: str, dag_id: str, ds: str, conf: dict[str, Any]) -> dict[str, Any]:
    """Run a DAG and return the outcome."""
    dag = DagBag(dags).dags[dag_id]
    day = datetime.fromisoformat(ds).replace(tzinfo=UTC)
    run = dag.test(logical_date=day, run_conf=conf)
    with create_session() as session:
        events = session.scalars(select(AssetEvent).where(AssetEvent.source_run_id == run.run_id)).all()
        return {
            "state": run.state,
            "tasks": {
                ti.task_id: [ti.state, ti.try_number] for ti in run.get_task_instances(session=session)
            },
            "names": {ti.task_id: ti.rendered_map_index for ti in run.get_task_instances(session=session)},
            "events": [[event.partition_key, event.extra] for event in events],
        }


def main(dags: str, answers: int) -> None:
    """Process the requests sequentially."""
    with os.fdopen(answers, "w") as outcomes:
        for line in sys.stdin:
            environment, dag_id, ds, conf = json.loads(line)
            os.environ.update(environment)
            outcomes.write(f"{json.dumps(run(dags, dag_id, ds, conf))}\n")
            outcomes.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
