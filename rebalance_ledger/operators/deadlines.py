"""Operators of scheduled runs of `queue_ledger`: deadlines of exports and publications, and events for exports without one.

Belongs here: when a cluster's day is late, and who is notified. Does not belong here: the format of a notification
(`rebalance_ledger.notification`).
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, final

from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)

from rebalance_ledger.notification.destination import NotificationError, destination_of
from rebalance_ledger.operators.flow import EXPORTS, day_of, partition_key
from rebalance_ledger.operators.ledger import ClusterOperator, destination_url, places, settings_now

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_ledger.settings import ClusterSettings

_LOOK_INTERVAL: Final = timedelta(minutes=10)
"""Interval of checks for an export without an event."""


class _DeadlineOperator(ClusterOperator):
    """Wait, without using a worker, until a condition is met or the deadline has passed; after the deadline, notify and fail.

    Args:
        kwargs: See `ClusterOperator`.
    """

    missing: str
    """What is missing if the condition is not met."""

    def time_of_day(self, settings: ClusterSettings) -> timedelta | None:
        """Return the deadline as time after the beginning of the UTC day; None without one."""
        raise NotImplementedError

    def is_met(self, ds: str) -> bool:
        """Return whether the condition is met."""
        raise NotImplementedError

    def next_look(self, settings: ClusterSettings, now: datetime, deadline: datetime) -> datetime:  # noqa: ARG002  # for subclasses
        """Return the time of the next check; by default the deadline."""
        return deadline

    @final
    def execute(self, context: Context) -> None:
        """Check the condition.

        Raises:
            AirflowSkipException: The settings have no deadline.
            AirflowRescheduleException: It is not met, and the deadline is in the future.
            AirflowFailException: The deadline has passed.
        """
        ds = day_of(context)
        settings = settings_now().clusters.get(self.cluster)
        time_of_day = None if settings is None else self.time_of_day(settings)
        if settings is None or time_of_day is None:
            raise AirflowSkipException(f"The settings give {self.cluster} no such deadline.")
        deadline = datetime.fromisoformat(ds).replace(tzinfo=UTC) + time_of_day
        if self.is_met(ds):
            return
        now = datetime.now(UTC)
        if now < deadline:
            raise AirflowRescheduleException(self.next_look(settings, now, deadline))  # type: ignore[no-untyped-call]  # Airflow's
        sentence = f"{self.missing.format(cluster=self.cluster, ds=ds)} by {deadline:%Y-%m-%d %H:%M} UTC."
        self._notify(ds, sentence)
        raise AirflowFailException(sentence)

    def _notify(self, ds: str, sentence: str) -> None:
        conn_id = os.environ.get("LEDGER_NOTIFY_CONNECTION")
        if not conn_id:
            self.log.warning(
                "Nobody is notified: LEDGER_NOTIFY_CONNECTION names no connection (see docs/alerts.md)."
            )
            return
        facts = {"event": "deadline_missed", "cluster": self.cluster, "ds": ds}
        try:
            destination_of(destination_url(conn_id)).send(
                f"Queue ledger: {self.cluster} {ds} is late", sentence, facts
            )
        except NotificationError as error:
            self.log.error("The notification was not sent: %s", error)  # noqa: TRY400  # the sentence says it all


class ExportDeadlineOperator(_DeadlineOperator):
    """Wait for the landed export of a day until the deadline `export_by`.

    The DAG `cluster_export` emits an event for its exports, so they are only checked at the deadline. Other exports may land without an event,
    so they are checked every ten minutes.
    """

    missing = "No export of {cluster} for {ds} has landed"

    def time_of_day(self, settings: ClusterSettings) -> timedelta | None:  # see the base class
        """Return the setting `export_by`."""
        return settings.deadlines.export_by_time

    def is_met(self, ds: str) -> bool:
        """Return whether the manifest has landed."""
        return self.has_landed(ds)

    def next_look(
        self, settings: ClusterSettings, now: datetime, deadline: datetime
    ) -> datetime:  # see the base class
        """Return the deadline, or the time in ten minutes for an export that may land without an event."""
        return deadline if settings.collect else min(deadline, now + _LOOK_INTERVAL)


class PublicationDeadlineOperator(_DeadlineOperator):
    """Wait for the publication of a day until the deadline `published_by`."""

    missing = "{cluster} {ds} is not published"

    def time_of_day(self, settings: ClusterSettings) -> timedelta | None:  # see the base class
        """Return the setting `published_by`."""
        return settings.deadlines.published_by_time

    def is_met(self, ds: str) -> bool:
        """Return whether the day, or a later one, is published."""
        warehouse = places(("warehouse",))["warehouse"]
        self.run_ledger(["freshness"], [f"--cluster={self.cluster}", f"--warehouse={warehouse}"])
        newest = self.result["newest_days"].get(self.cluster)
        return newest is not None and newest >= ds


class AnnounceExportOperator(ClusterOperator):
    """Emit the event of a landed export whose collector emits none; otherwise skip the task.

    Args:
        kwargs: See `ClusterOperator`.
    """

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(inlets=[EXPORTS], outlets=[EXPORTS], **kwargs)

    def execute(self, context: Context) -> None:
        """Add partition key and extra to the event.

        Raises:
            AirflowSkipException: There is an event of this cluster and day.
            AirflowFailException: No export landed before its deadline.
        """
        self.fail_after_failure(context)
        ds = day_of(context)
        key = partition_key(self.cluster, ds)
        events = context["inlet_events"][EXPORTS].after(f"{ds}T00:00:00+00:00")
        if any(event.partition_key == key for event in events):
            raise AirflowSkipException(f"The export of {self.cluster} for {ds} has announced itself.")
        event = context["outlet_events"][EXPORTS]
        event.add_partitions(key)
        event.extra = {"cluster": self.cluster, "ds": ds}
