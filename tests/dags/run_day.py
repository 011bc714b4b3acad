"""Runs a DAG for one day by `dag.test()` and prints what became of it as one line of JSON.

A program of its own, because Airflow keeps its database and its plugins for the life of a process.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime

from airflow.dag_processing.dagbag import DagBag
from airflow.models.asset import AssetEvent
from airflow.utils.session import create_session
from sqlalchemy import select


def main(dags: str, dag_id: str, ds: str, conf: str) -> None:
    dag = DagBag(dags).dags[dag_id]
    day = datetime.fromisoformat(ds).replace(tzinfo=UTC)
    run = dag.test(logical_date=day, run_conf=json.loads(conf))
    with create_session() as session:
        events = session.scalars(select(AssetEvent).where(AssetEvent.source_run_id == run.run_id)).all()
        outcome = {
            "state": run.state,
            "tasks": {
                ti.task_id: [ti.state, ti.try_number] for ti in run.get_task_instances(session=session)
            },
            "names": {ti.task_id: ti.rendered_map_index for ti in run.get_task_instances(session=session)},
            "events": [[event.partition_key, event.extra] for event in events],
        }
    sys.stdout.write(f"\n{json.dumps(outcome)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
