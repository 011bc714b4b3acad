"""Read the rows of each day's baseline, the newest earlier day with which it is compared.

Belongs here: reading the rows. Does not belong here: the choice of the day (`build`) and of the tables
(`rebalance_ledger.warehouse.baseline`), and the comparison (`assignment_churn`, `presence`).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rebalance_ledger.tables import QUARANTINED_GROUP
from spark_jobs.rows import from_rows, in_one_part_if_small, no_rows, read_delta
from spark_jobs.session import spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from pyspark.sql import SparkSession

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.baseline import EarlierDay
    from rebalance_ledger.warehouse.layout import Warehouse

_DATES = pa.schema([("cluster", pa.string()), ("ds", pa.date32()), ("baseline_ds", pa.date32())])


class BaselineRows:
    """The rows of the baselines of several days.

    A day's baseline is a published day, or a day that is computed with it and is not published yet.

    Attributes:
        days: `DAY` and baseline_ds, one row for each day with a baseline.
    """

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Warehouse,
        published: Mapping[tuple[str, date], EarlierDay],
        computed: Mapping[tuple[str, date], date],
        staged: Callable[[Table], DataFrame],
    ) -> None:
        """Prepare; rows are read on demand.

        Args:
            spark: The session.
            warehouse: Location of the published days.
            published: Day -> its baseline, if that is a published day.
            computed: Day -> ds of its baseline, if that is computed with it.
            staged: Returns a table of all computed days, and waits until it is written.
        """
        self._spark = spark
        self._warehouse = warehouse
        self._published = published
        self._rows: dict[Table, DataFrame] = {}
        self._staged = staged
        self._computed = self._dates(computed)
        self._has_computed = bool(computed)
        self.days = self._dates({key: earlier.ds for key, earlier in published.items()} | dict(computed))

    def rows(self, table: Table) -> DataFrame:
        """Return a table's rows of all baselines; `DAY` is the day that is compared with them, not the baseline's own."""
        # Reading the log of a table takes longer than reading the rows of a small day, so each log is read once.
        if table not in self._rows:
            self._rows[table] = self._read(table)
        return self._rows[table]

    def _read(self, table: Table) -> DataFrame:
        parts = [
            self._rows_of_published(table, *day) for day in self._published.items() if table in day[1].tables
        ]
        # Groups are quarantined at publication, so a day that is not published yet has none.
        if self._has_computed and table is not QUARANTINED_GROUP:
            columns = [column.name for column in table.all_columns]
            of_earlier = self._computed.select("cluster", F.col("ds").alias("compared_ds"), "baseline_ds")
            rows = (
                self._staged(table)
                .withColumnRenamed("ds", "baseline_ds")
                .join(F.broadcast(of_earlier), ["cluster", "baseline_ds"])
            )
            parts.append(rows.withColumnRenamed("compared_ds", "ds").select(*columns))
        if not parts:
            return no_rows(self._spark, spark_schema(table))
        return reduce(DataFrame.unionByName, parts)

    def _rows_of_published(self, table: Table, key: tuple[str, date], earlier: EarlierDay) -> DataFrame:
        """Return the rows of a published day at its recorded Delta version, with the ds of the day that is compared with it."""
        cluster, ds = key
        version = earlier.tables[table].delta_version
        rows = read_delta(self._spark, spark_schema(table), self._warehouse.published(table), version)
        of_day = rows.where((F.col("cluster") == cluster) & (F.col("ds") == earlier.ds))
        return in_one_part_if_small(self._spark, of_day.withColumn("ds", F.lit(ds)))

    def _dates(self, baselines: Mapping[tuple[str, date], date]) -> DataFrame:
        return from_rows(self._spark, _DATES, ((*key, ds) for key, ds in baselines.items()))
