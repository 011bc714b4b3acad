"""Properties of the DAGs that hold without running them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

from setup.airflow_home import POOLS

if TYPE_CHECKING:
    from airflow.sdk import DAG

DAGS = Path(__file__).resolve().parents[2] / "dags"
DAG_IDS = (
    "cluster_export",
    "cluster_ledger",
    "queue_ledger",
    "queue_ledger_approval",
    "queue_ledger_backfill",
    "warehouse_maintenance",
)
HEAVY = (
    "pyspark",
    "delta",
    "deltalake",
    "duckdb",
    "great_expectations",
    "pandas",
    "numpy",
    "pyarrow",
    "settings",
)


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return DagBag(DAGS)


@pytest.fixture(scope="module")
def dag(bag: DagBag) -> DAG:
    found: DAG = bag.dags["cluster_ledger"]
    return found


def test_the_folder_holds_exactly_these_dags(bag: DagBag) -> None:
    assert bag.import_errors == {}
    assert set(bag.dags) == set(DAG_IDS)


@pytest.mark.parametrize(
    ("upstream", "downstream"),
    [
        ("verify_export", "build"),
        ("build", "gate"),
        ("gate", "publish"),
        ("publish", "report"),
        ("publish", "announce"),
    ],
)
def test_no_step_starts_before_its_upstream_step_has_succeeded(
    dag: DAG, upstream: str, downstream: str
) -> None:
    task = _task(dag, downstream)
    assert _task(dag, upstream).task_id in task.upstream_task_ids
    assert task.trigger_rule == "all_success"


def test_notifications_are_sent_after_a_refusal_too_and_do_not_hide_it(dag: DAG) -> None:
    notify = _task(dag, "notify")
    assert notify.trigger_rule == "all_done"
    assert "publish" in notify.upstream_task_ids
    # Another leaf task determines whether the run has failed.
    assert _task(dag, "report").trigger_rule == "all_success"
    assert _task(dag, "report").downstream_task_ids == set()


def test_heavy_tasks_have_a_pool_and_publication_emits_an_asset_event(dag: DAG) -> None:
    publish = _task(dag, "publish")
    assert publish.pool == "ledger_publish"
    assert _task(dag, "build").pool == "ledger_build"
    assert [asset.uri for asset in _task(dag, "announce").outlets] == ["ledger://gold/"]
    assert [task.task_id for task in dag.tasks if task.outlets] == ["announce"]


def test_a_landed_export_starts_its_clusters_day(dag: DAG) -> None:
    timetable = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).timetable
    assert timetable.partitioned
    assert [key.uri for key, _ in timetable.asset_condition.iter_assets()] == ["ledger://exports/"]
    assert set(dag.params) == {"cluster", "ds", "stage_through", "force"}


def test_old_exports_are_removed_only_after_todays_has_landed(bag: DagBag) -> None:
    export = bag.dags["cluster_export"]
    assert _task(export, "collect").upstream_task_ids == {"clusters"}
    assert "cluster_day.collect" in _task(export, "prune").upstream_task_ids
    assert _task(export, "collect").pool == "cluster_export"
    assert [asset.uri for asset in _task(export, "collect").outlets] == ["ledger://exports/"]


def test_maintenance_does_not_use_the_publication_pool(bag: DagBag) -> None:
    maintenance = bag.dags["warehouse_maintenance"]
    # A publication must not wait for the whole maintenance.
    assert [task.pool for task in maintenance.tasks] == ["default_pool"]
    assert maintenance.max_active_runs == 1


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_every_task_has_retries_with_delay_and_a_timeout(bag: DagBag, dag_id: str) -> None:
    dag = bag.dags[dag_id]
    for task in dag.tasks:
        assert task.retries >= 1, task.task_id
        assert task.retry_exponential_backoff, task.task_id
        # A person has more time than a program.
        assert task.execution_timeout or task.response_timeout, task.task_id
    assert dag.max_active_runs >= 1


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_every_task_and_the_dag_have_documentation_in_the_ui(bag: DagBag, dag_id: str) -> None:
    dag = bag.dags[dag_id]
    assert dag.doc_md
    assert ("`ds`" in dag.doc_md) == (dag_id != "warehouse_maintenance")
    for task in dag.tasks:
        assert task.doc_md, task.task_id


def test_every_pool_that_a_task_uses_is_created_by_the_set_up(bag: DagBag) -> None:
    named = {task.pool for dag in bag.dags.values() for task in dag.tasks} - {"default_pool"}
    assert named == {name for name, *_ in POOLS}


def test_a_backfill_of_three_dates_runs_those_three_days(bag: DagBag) -> None:
    scheduled = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(bag.dags["queue_ledger"]))
    first, last = datetime(2026, 11, 16, tzinfo=UTC), datetime(2026, 11, 18, tzinfo=UTC)
    runs = list(scheduled.iter_dagrun_infos_between(first, last))
    assert [run.logical_date for run in runs] == [first, first + timedelta(days=1), last]
    # Run ids contain the run-after date, which is the same day as `ds` here.
    assert all(run.run_after == run.logical_date for run in runs)


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_catchup_is_disabled(bag: DagBag, dag_id: str) -> None:
    dag = bag.dags[dag_id]
    assert dag.catchup is False
    assert dag.start_date is not None
    assert dag.start_date < datetime(2026, 11, 16, tzinfo=UTC)


def test_parsing_imports_none_of_the_engines() -> None:
    program = (
        "import sys; from airflow.dag_processing.dagbag import DagBag; before = set(sys.modules);"
        f"assert DagBag({str(DAGS)!r}).dags; print('\\n' + ' '.join(set(sys.modules) - before))"
    )
    answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    imported = {name.partition(".")[0] for name in answer.stdout.splitlines()[-1].split()}
    assert imported.isdisjoint(HEAVY)


def _task(dag: DAG, name: str) -> Any:
    return next(task for task in dag.tasks if task.task_id.rpartition(".")[2] == name)
