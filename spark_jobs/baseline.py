"""The rows of the newest earlier day that each day is compared with.

Belongs here: reading them. Does not belong here: which day that is (`spark_jobs.staged_days`) and which tables
(`rebalance_ledger.warehouse.baseline`), and what is compared (`assignment_churn`, `presence`).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rebalance_ledger.tables import QUARANTINED_GROUP
from spark_jobs.session import in_one_part_if_small, read_delta, spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from pyspark.sql import SparkSession

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.baseline import EarlierDay
    from rebalance_ledger.warehouse.layout import Warehouse

_DATES = pa.schema([("cluster", pa.string()), ("ds", pa.date32()), ("baseline_ds", pa.date32())])


class BaselineRows:
    """The earlier days that days are compared with.

    A day's baseline is a published day, or a day that is computed with it and is not published yet.

    Attributes:
        days: `DAY`, baseline_ds: one row for each day that has an earlier day.
    """

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Warehouse,
        published: Mapping[tuple[str, date], EarlierDay],
        computed: Mapping[tuple[str, date], date],
        staged: Callable[[Table], DataFrame],
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            spark: the session.
            warehouse: where the published days are.
            published: for days that are compared with a published day, that day.
            computed: for days that are compared with a day that is computed with them, that day's ds.
            staged: returns a table of all days that are computed, and waits until it is.
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
        """Return the rows of the earlier days; `DAY` says which day is compared with them."""
        # Reading the log of a table takes longer than reading a small day's rows, so each is read once.
        if table not in self._rows:
            self._rows[table] = self._read(table)
        return self._rows[table]

    def _read(self, table: Table) -> DataFrame:
        parts = [
            self._rows_of_published(table, *day) for day in self._published.items() if table in day[1].tables
        ]
        # No day that is not published yet has groups that it was published without.
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
            return self._spark.createDataFrame([], spark_schema(table))
        return reduce(DataFrame.unionByName, parts)

    def _rows_of_published(self, table: Table, key: tuple[str, date], earlier: EarlierDay) -> DataFrame:
        """Return the rows of a published day, as rows of the day that is compared with it, from the version that was named."""
        cluster, ds = key
        version = earlier.tables[table].delta_version
        rows = read_delta(self._spark, spark_schema(table), self._warehouse.published(table), version)
        of_day = rows.where((F.col("cluster") == cluster) & (F.col("ds") == earlier.ds))
        return in_one_part_if_small(self._spark, of_day.withColumn("ds", F.lit(ds)))

    def _dates(self, baselines: Mapping[tuple[str, date], date]) -> DataFrame:
        rows = [(*key, ds) for key, ds in baselines.items()]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
        return self._spark.createDataFrame(pa.table(columns, schema=_DATES))
