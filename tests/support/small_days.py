"""Small days that are computed together, because planning a day costs seconds of Spark and its few rows cost nothing.

Belongs here: computing the days of several tests at once. Does not belong here: days that are compared with earlier
publications, that have their own settings, or whose work tables are read. Those are computed alone.
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
"""Seals exports of clusters that no other test has; returns cluster and ds of those to compute, in order."""


class SmallDays:
    """Staged days with default settings in one warehouse; tests only read their stages, and may run the gate and publish them."""

    def __init__(self, spark: SparkSession, folder: Path, writers: Iterable[WriteExports]) -> None:
        """Seal the writers' exports and compute them. Publish a day that is the baseline of a later day of its cluster."""
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
        """Return the days of a writer in order."""
        return self._of_writer[write]
