"""Building days one after another in one application, and those that will follow side by side with the first.

Belongs here: which days are computed together, and what happens to the others if that fails. Does not belong here: computing them (`build`), and
in which order they are gated and published.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from rebalance_ledger.exports.manifest import ExportError, export_directory, verify
from rebalance_ledger.progress import LOGGER
from spark_jobs.build import build, build_days
from spark_jobs.staged_day import OtherBaselineError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date
    from types import TracebackType
    from typing import Self

    from pyspark.sql import SparkSession

    from rebalance_ledger.settings import ClusterSettings
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.layout import Warehouse
    from spark_jobs.staged_day import StagedDay


class SideBySide:
    """Builds the days of one warehouse. Days that are announced are computed with the day that is asked for, and wait in their stages.

    Each is as if it was computed alone: one that is compared with another day in the end, or whose export is another now, is computed again.
    """

    def __init__(self, spark: SparkSession, exports: Location, warehouse: Warehouse) -> None:
        """Prepare; nothing is computed yet."""
        self._spark = spark
        self._exports = exports
        self._warehouse = warehouse
        self._open = ExitStack()
        self._staged: dict[tuple[str, date], StagedDay] = {}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give up the days that nobody has asked for; their stages are removed like those of a killed build."""
        del error_type, error, traceback
        self._staged.clear()
        self._open.close()

    def build(
        self, day: tuple[str, date], settings: ClusterSettings, ahead: Iterable[tuple[str, date]] = ()
    ) -> None:
        """Stage a day.

        Args:
            day: Cluster and ds.
            settings: Those of the cluster.
            ahead: Days that will be asked for next; their clusters have the same settings.

        Raises:
            ExportError: The day has no sealed export, or it is not as it was sealed when all of it has been read.
            QueryError: The earlier published day cannot be read.
        """
        staged = self._staged.pop(day, None)
        if staged is not None:
            if staged.settings_sha256 == settings.sha256:
                try:
                    staged.finish()
                except OtherBaselineError:
                    LOGGER.info("The day before was published otherwise than it was staged: computed again")
                except ExportError as error:
                    LOGGER.info("%s: computed again", error)
                else:
                    return
        elif self._compute([day, *self._usable(ahead)], settings):
            self._staged.pop(day).finish()
            return
        cluster, ds = day
        build(
            self._spark,
            exports=self._exports,
            warehouse=self._warehouse,
            settings=settings,
            cluster=cluster,
            ds=ds,
        )

    def _usable(self, days: Iterable[tuple[str, date]]) -> list[tuple[str, date]]:
        """Return the days with a whole export: a bad one must fail its own day alone."""
        usable = []
        for cluster, ds in days:
            try:
                verify(export_directory(self._exports, cluster, ds), cluster=cluster, ds=ds)
            except ExportError:
                continue
            usable.append((cluster, ds))
        return usable

    def _compute(self, days: list[tuple[str, date]], settings: ClusterSettings) -> bool:
        """Compute several days; return whether they are staged."""
        if len(days) == 1:
            return False
        computing = build_days(
            self._spark,
            exports=self._exports,
            warehouse=self._warehouse,
            settings=settings,
            days=days,
        )
        try:
            self._staged |= self._open.enter_context(computing)
        except Exception:  # noqa: BLE001  # whatever it is, each day alone may have none of it
            LOGGER.exception("%d days could not be computed side by side: each is computed alone", len(days))
            return False
        return True
