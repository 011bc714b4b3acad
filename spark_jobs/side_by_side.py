"""Build the days of one Spark application, several of them in one plan.

Belongs here: which days are computed together, and how that set shrinks after a failure. Does not belong here: the computation
(`build`), and the order in which days are gated and published.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from rebalance_ledger.exports.manifest import ExportError, export_directory
from rebalance_ledger.exports.sealing import verify
from rebalance_ledger.progress import LOGGER
from spark_jobs.build import build, build_days
from spark_jobs.staged_day import OtherBaselineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from rebalance_ledger.settings import ClusterSettings
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.layout import Warehouse
    from spark_jobs.staged_day import StagedDay, StageResult


DayKey: TypeAlias = tuple[str, date]
"""Cluster and ds."""

MOST_DAYS: Final = 60
"""Largest number of days that are computed together."""


class SideBySide:
    """Build days of one warehouse; announced days are computed together with the requested day and wait in their stages.

    The result of a day is the same as if it were computed alone: a day whose baseline or export has changed since is computed again. If
    a set of days cannot be computed together, half of it is tried, and so on, until the day that is the cause fails alone.
    """

    def __init__(self, spark: SparkSession, exports: Location, warehouse: Warehouse) -> None:
        """Prepare; nothing is computed yet."""
        self._spark = spark
        self._exports = exports
        self._warehouse = warehouse
        self._open = ExitStack()
        self._staged: dict[DayKey, StagedDay] = {}
        self._reader = ThreadPoolExecutor(1)
        self._announced: list[DayKey] = []
        self._settings: Mapping[str, ClusterSettings] = {}
        # Days of a batch that failed and are not computed yet: at least one of them is the cause.
        self._suspects: set[DayKey] = set()

    def close(self) -> None:
        """Discard days that were computed but not requested; their stages are removed like those of a killed build."""
        self._reader.shutdown(cancel_futures=True)
        self._staged.clear()
        self._open.close()

    def build(
        self, day: DayKey, settings: Mapping[str, ClusterSettings], ahead: Iterable[DayKey] = ()
    ) -> StageResult:
        """Stage a day.

        Args:
            day: Cluster and ds.
            settings: Settings of the cluster, and of the clusters of the days ahead.
            ahead: Announced days: the ones that will be requested next. Empty if they were announced before.

        Raises:
            ExportError: The day has no sealed export, or the export changed while it was read.
            QueryError: The earlier published day cannot be read.
        """
        cluster, ds = day
        announced, own = list(ahead), settings[cluster]
        if announced or own != self._settings.get(cluster):
            self._announced, self._settings = announced, dict(settings)
        staged = self._staged.pop(day, None) or self._compute_with_others(day)
        if staged is not None and staged.settings_sha256 == own.sha256:
            try:
                result = staged.finish()
            except OtherBaselineError:
                LOGGER.info("The day before was published otherwise than it was staged: computed again")
            except ExportError as error:
                LOGGER.info("%s: computed again", error)
            else:
                self._read_next()
                return result
        return build(
            self._spark,
            exports=self._exports,
            warehouse=self._warehouse,
            settings=own,
            cluster=cluster,
            ds=ds,
        )

    def finish_waiting(self) -> Iterator[DayKey]:
        """Complete the stages of days that were computed but not requested, and yield these days.

        A day whose export has changed since is skipped. A day whose baseline is published with other rows is computed again by a later
        request, which looks for a stage with another run id.
        """
        while self._staged:
            day, staged = self._staged.popitem()
            with suppress(ExportError):
                staged.finish_ahead()
                yield day

    def _read_next(self) -> None:
        """Read the files of the next day while the caller judges and publishes this one; an error appears when the day is requested."""
        following = next(iter(self._staged.values()), None)
        if following is not None:
            self._reader.submit(lambda: following.inventory)

    def _compute_with_others(self, day: DayKey) -> StagedDay | None:
        """Compute a day with as many announced days as possible; return None if it must be computed alone."""
        self._announced = [other for other in self._announced if other != day]
        while True:
            most_days = len(self._suspects) // 2 if day in self._suspects else MOST_DAYS
            days = [day, *islice(self._usable(day), max(0, most_days - 1))]
            if len(days) == 1:
                self._suspects.discard(day)
                return None
            try:
                staged = self._open.enter_context(
                    build_days(
                        self._spark,
                        exports=self._exports,
                        warehouse=self._warehouse,
                        settings={cluster: self._settings[cluster] for cluster, _ in days},
                        days=days,
                    )
                )
            except Exception:  # noqa: BLE001  # any error: it may be caused by one day only
                LOGGER.exception("%d days could not be computed side by side", len(days))
                self._suspects = set(days)
                continue
            self._suspects -= staged.keys()
            self._announced = [other for other in self._announced if other not in staged]
            self._staged |= staged
            return self._staged.pop(day)

    def _usable(self, day: DayKey) -> Iterator[DayKey]:
        """Yield the announced days that can be computed with a day. Damaged exports are excluded: they fail their own day only."""
        hypothetical = self._settings[day[0]].hypothetical
        for cluster, ds in self._announced:
            if self._settings[cluster].hypothetical != hypothetical:
                continue
            try:
                verify(export_directory(self._exports, cluster, ds), cluster=cluster, ds=ds)
            except ExportError:
                continue
            yield cluster, ds
