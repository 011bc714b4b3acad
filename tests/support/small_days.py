"""Small days that are computed together: planning a day costs Spark seconds, and the rows of a small one nothing.

Belongs here: how days of several tests are computed at once. Does not belong here: days that are compared with what was published
before, that have settings of their own, or whose work tables are read: they are computed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rebalance_ledger.pipeline import steps
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.warehouse.layout import Warehouse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

WriteExports: TypeAlias = Callable[[Path], Sequence[tuple[str, date]]]
"""Seals exports of clusters that no other test has; gives cluster and ds of those to compute, in order."""


class SmallDays:
    """Days of the default settings in one warehouse, staged; tests only read their stages, and may have them judged and published."""

    def __init__(self, spark: SparkSession, folder: Path, writers: Iterable[WriteExports]) -> None:
        """Seal and compute what the writers say. A day that another one of its cluster follows is published, for that one's baseline."""
        from spark_jobs.side_by_side import SideBySide

        exports, warehouse = folder / "exports", Warehouse.at(str(folder / "warehouse"))
        self._of_writer = {
            write: [Day(cluster, ds, exports, warehouse, None) for cluster, ds in write(exports)]
            for write in dict.fromkeys(writers)
        }
        days = [day for of_writer in self._of_writer.values() for day in of_writer]
        with closing(SideBySide(spark, exports, warehouse)) as builder:
            for position, day in enumerate(days):
                steps.verify(day)
                later = days[position + 1 :]
                settings = {other.cluster: other.settings for other in days}
                ahead = [(other.cluster, other.ds) for other in later]
                builder.build((day.cluster, day.ds), settings, ahead)
                if any(other.cluster == day.cluster for other in later):
                    steps.gate(day)
                    steps.publish(day)

    def of(self, write: WriteExports) -> list[Day]:
        """Return the days of a writer, in its order."""
        return self._of_writer[write]
