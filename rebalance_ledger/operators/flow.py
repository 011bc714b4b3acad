"""Assets, partition keys and DAG ids that connect the DAGs, and the cluster and day of a run.

Belongs here: names and parameters that two DAGs must agree on. Does not belong here: tasks.

An event of `ledger://exports` has the partition key `<cluster>|<ds>`, and Airflow starts one run of `cluster_ledger` for it. The run
takes cluster and day from its partition key, or from the parameters of the trigger form.
"""

from __future__ import annotations

import hashlib
import os
import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import Asset, Param
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPORT_DAG_ID: Final = "cluster_export"
"""The DAG that lands and announces exports."""
LEDGER_DAG_ID: Final = "cluster_ledger"
"""The DAG with one run per cluster and day."""

EXPORTS: Final = Asset(name="cluster_export", uri="ledger://exports")
GOLD: Final = Asset(name="queue_ledger", uri="ledger://gold")

BUILD_EXECUTOR: Final = os.environ.get("LEDGER_BUILD_EXECUTOR") or None
"""The executor of the tasks in the pool `ledger_build`, which need memory; None for the default one."""


def clusters_param(default: str) -> Param:
    """Return the parameter `clusters` of a trigger form; `default` says which clusters an empty one means."""
    return Param(
        [],
        # Airflow's form marks a parameter without `null` as required.
        type=["null", "array"],
        items={"type": "string"},
        title="Clusters",
        description=f"Names in the settings, one a line; none for {default}.",
    )


def day_param(title: str, description: str) -> Param:
    """Return an optional parameter of a trigger form that is a UTC day."""
    return Param(None, type=["null", "string"], format="date", title=title, description=description)


STAGE_THROUGH: Final = day_param(
    "Stage through",
    "UTC day; a build also stages the days up to this one that have landed, for runs that follow.",
)
"""The parameter `stage_through` of a run."""

_NOT_IN_RUN_IDS: Final = re.compile(r"[^A-Za-z0-9_.~+-]")
_MOST_READABLE: Final = 100
"""Longest part of a run id from a cluster's name; Airflow's database takes 250 characters, with the run id of the parent."""


def partition_key(cluster: str, ds: str) -> str:
    """Return the partition key of a cluster and day, `<cluster>|<ds>`."""
    return f"{cluster}|{ds}"


def cluster_of(context: Mapping[str, Any]) -> str:
    """Return the cluster of a run: its parameter `cluster`, else the first part of its partition key.

    Raises:
        AirflowFailException: The run has neither.
    """
    parameter = context.get("params", {}).get("cluster")
    if parameter:
        return str(parameter)
    key = _key_of(context)
    if key is None:
        raise AirflowFailException(
            "This run has no cluster: trigger it again with a cluster and a day, or with the partition key <cluster>|<YYYY-MM-DD>."
        )
    return key[0]


def day_of(context: Mapping[str, Any]) -> str:
    """Return the run's `ds`: its parameter `ds`, else the day of its partition key, else the UTC day of its logical date.

    Raises:
        AirflowFailException: The run has none of them, and so belongs to no day.
    """
    parameter = context.get("params", {}).get("ds")
    if parameter:
        return str(parameter)
    key = _key_of(context)
    if key is not None:
        return key[1]
    logical_date: datetime | None = context["dag_run"].logical_date
    if logical_date is None:
        raise AirflowFailException(
            "This run has no day: trigger it again with the UTC day on which the export was taken, as `ds` or as its logical date."
        )
    return f"{logical_date.astimezone(UTC):%Y-%m-%d}"


def run_id_for(parent_run_id: str, cluster: str) -> str:
    """Return the id of the run of `cluster_ledger` that a run of `queue_ledger` starts for a cluster; the same each time."""
    readable = _NOT_IN_RUN_IDS.sub("_", cluster)[:_MOST_READABLE]
    # The whole name counts: two names may differ only after many bytes, or only in characters that no run id has.
    exact = "" if readable == cluster else f"_{hashlib.sha256(cluster.encode()).hexdigest()[:32]}"
    return f"{parent_run_id}__{readable}{exact}"


def _key_of(context: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return cluster and day of a run's partition key; None without one.

    Raises:
        AirflowFailException: The key has another form.
    """
    key: str | None = getattr(context["dag_run"], "partition_key", None)
    if key is None:
        return None
    cluster, _, ds = key.rpartition("|")
    try:
        is_day = date.fromisoformat(ds).isoformat() == ds
    except ValueError:
        is_day = False
    if not cluster or not is_day:
        raise AirflowFailException(
            f"The partition key {key!r} does not have the form <cluster>|<YYYY-MM-DD>: emit the event again with one that has."
        )
    return cluster, ds
