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
from spark_jobs.day_key import DAY
from spark_jobs.session import read_parquet, spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from pyspark.sql import SparkSession

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.baseline import EarlierDay

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
        published: Mapping[tuple[str, date], EarlierDay],
        computed: Mapping[tuple[str, date], date],
        staged: Callable[[Table], DataFrame],
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            spark: the session.
            published: for days that are compared with a published day, that day.
            computed: for days that are compared with a day that is computed with them, that day's ds.
            staged: returns a table of all days that are computed, and waits until it is.
        """
        self._spark = spark
        self._published = published
        self._staged = staged
        self._computed = self._dates(computed)
        self._has_computed = bool(computed)
        self.days = self._dates({key: earlier.ds for key, earlier in published.items()} | dict(computed))

    def rows(self, table: Table) -> DataFrame:
        """Return the rows of the earlier days; `DAY` says which day is compared with them."""
        columns = [column.name for column in table.all_columns]
        parts = [self._rows_of_published(table, *day) for day in self._published.items()]
        # No day that is not published yet has groups that it was published without.
        if self._has_computed and table is not QUARANTINED_GROUP:
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
        schema = spark_schema(table)
        files = earlier.files[table]
        rows = read_parquet(self._spark, schema, *files) if files else self._spark.createDataFrame([], schema)
        return rows.withColumns({name: F.lit(value) for name, value in zip(DAY, key, strict=True)})

    def _dates(self, baselines: Mapping[tuple[str, date], date]) -> DataFrame:
        rows = [(*key, ds) for key, ds in baselines.items()]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
        return self._spark.createDataFrame(pa.table(columns, schema=_DATES))
