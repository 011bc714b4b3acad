"""Operators of the DAG `cluster_export`: collect today's export from a live cluster, and prune old exports.

Belongs here: whether to query the cluster (only for today, only without a complete export), and the credentials from the Airflow
connection. Does not belong here: the queries (`rebalance_ledger.collectors`), and any import of them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from rebalance_ledger.operators.flow import day_of, partition_key
from rebalance_ledger.operators.ledger import (
    FAILED_CAPTURE,
    ClusterOperator,
    IncompleteCaptureError,
    places,
    settings_now,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_ledger.settings import CollectSettings

_PLACES = ("exports", "settings")

_INCOMPLETE_QUALITIES = ("degraded", "failed")
"""Qualities of a capture that a further attempt on the same day completes."""


def collect_settings(cluster: str) -> CollectSettings | None:
    """Return the collection settings of a cluster; None if it has none.

    Raises:
        AirflowFailException: The settings file is invalid.
    """
    configured = settings_now().clusters.get(cluster)
    return None if configured is None else configured.collect


class CollectExportOperator(ClusterOperator):
    """Land today's export of one cluster with `ledger exports collect`, unless a complete one has landed.

    For a past day, only check for the export, because a live cluster has no past state. A degraded or failed capture is retried as long as
    the task has retries; after that, a degraded one is used.
    """

    def execute(self, context: Context) -> None:
        """Collect the export, or find the landed one, and announce it.

        Raises:
            AirflowFailException: There is no export and the cluster cannot be queried: it is not the current day, the settings do not say how,
                or the connection is invalid. Or the last attempt's capture has failed.
            IncompleteCaptureError: The capture is degraded or failed, and the task is retried.
            StepRefusedError: `ledger` ended with 2; a retry would have the same result.
            StepCrashedError: `ledger` ended with another error.
        """
        ds = day_of(context)
        where = places(_PLACES)
        is_today = ds == f"{datetime.now(UTC):%Y-%m-%d}"
        landed = self.landed_manifest(ds)
        settings = collect_settings(self.cluster)
        can_be_completed = (
            is_today
            and settings is not None
            and landed is not None
            and landed.get("quality") in _INCOMPLETE_QUALITIES
        )
        if landed is not None and not can_be_completed:
            self.log.info(
                "The export of %s for %s has landed already in %s.", self.cluster, ds, where["exports"]
            )
        elif not is_today:
            raise AirflowFailException(
                f"No export of {self.cluster} for {ds} has landed in {where['exports']}, and that day is not today; a live "
                "cluster has only its current state. Upload that day's export, or skip the day."
            )
        elif settings is None:
            raise AirflowFailException(
                f"The settings do not say how {self.cluster} is collected; add clusters.{self.cluster}.collect (see docs/collecting.md)."
            )
        else:
            try:
                self._collect(ds, where, settings)
            except IncompleteCaptureError as error:
                task = context.get("ti")
                if task is not None and task.try_number <= task.max_tries:
                    raise
                if error.exit_code == FAILED_CAPTURE:
                    raise AirflowFailException(str(error)) from error
                self.log.warning("The export has landed all the same: %s", error)
        for outlet in self.outlets:
            event = context["outlet_events"][outlet]
            event.add_partitions(partition_key(self.cluster, ds))
            event.extra = {"cluster": self.cluster, "ds": ds}

    def _collect(self, ds: str, where: dict[str, str], settings: CollectSettings) -> None:
        options = [
            f"--cluster={self.cluster}",
            f"--ds={ds}",
            *(f"--{place}={value}" for place, value in where.items()),
        ]
        stdin_secret = ""
        if settings.connection is not None:
            nameservers, stdin_secret = _of_connection(settings.connection)
            if not settings.nameservers:
                options += [f"--nameserver={address}" for address in nameservers]
            if stdin_secret:
                options.append("--credentials-from=stdin")
        self.run_ledger(["exports", "collect"], options, stdin_secret)


class PruneExportsOperator(ClusterOperator):
    """List the exports past their retention, and remove them if the settings allow it."""

    def execute(self, context: Context) -> None:
        """Run `ledger exports prune`, if the settings limit how long exports are kept.

        Raises:
            AirflowFailException: If the collection has failed, or the settings are wrong.
            StepRefusedError: If an export cannot be removed.
        """
        self.fail_after_failure(context)
        settings = collect_settings(self.cluster)
        retention = None if settings is None else settings.retention
        if retention is None:
            self.log.info("Exports of %s are kept indefinitely.", self.cluster)
            return
        options = [
            f"--cluster={self.cluster}",
            *(f"--{place}={value}" for place, value in places().items()),
        ]
        if retention.unpublished:
            options.append("--unpublished")
        if not retention.dry_run:
            options.append("--apply")
        self.run_ledger(["exports", "prune"], options)


def _of_connection(conn_id: str) -> tuple[list[str], str]:
    """Return the name servers of a connection, and its credentials as `ledger` reads them; empty if it has none."""
    try:
        connection = Connection.get(conn_id)
    except AirflowNotFoundException as error:
        raise AirflowFailException(
            f"There is no Airflow connection {conn_id}; add it with access key as login and secret key as password "
            "(see docs/collecting.md)."
        ) from error
    nameservers = [
        address if ":" in address or not connection.port else f"{address}:{connection.port}"
        for address in (connection.host or "").replace(",", ";").split(";")
        if address
    ]
    credentials: dict[str, Any] = {
        "access_key": connection.login,
        "secret_key": connection.password,
        "tls_key_password": connection.extra_dejson.get("tls_key_password"),
    }
    given = {name: value for name, value in credentials.items() if value}
    return nameservers, f"{json.dumps(given)}\n" if given else ""
