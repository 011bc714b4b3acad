"""The Spark session and the schemas of the tables in Spark's types.

Every setting that depends on where Spark runs is in `spark-defaults.conf` (see `conf/`), named by `SPARK_CONF_DIR`, so
that a job submitted to a cluster and one run on a laptop share this code unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from tables import Table


def spark_session(name: str) -> SparkSession:
    """The session of this process; `name` is what the Spark UI shows.

    Times are instants in UTC whatever the machine's zone, because a day of the ledger is a UTC day.
    """
    return SparkSession.builder.appName(name).config("spark.sql.session.timeZone", "UTC").getOrCreate()


def spark_schema(table: Table) -> StructType:
    """A table's definition as a Spark schema: `cluster` and `ds` first, comments included."""
    schema = StructType.fromDDL(
        ", ".join(f"`{column.name}` {column.type.upper()}" for column in table.all_columns)
    )
    for field, column in zip(schema.fields, table.all_columns, strict=True):
        field.nullable = column.nullable
        field.metadata = {"comment": column.comment}
    return schema
