"""The Spark session and the schemas of the tables in Spark's types.

Every setting that depends on where Spark runs is in `spark-defaults.conf` (see `conf/`), named by `SPARK_CONF_DIR`, so
that a job submitted to a cluster and one run on a laptop share this code unchanged.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from rebalance_ledger.driver_options import LARGE_EXPORT_BYTES, driver_options
from rebalance_ledger.storage.location import variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from py4j.java_gateway import JVMView
    from pyspark.sql import DataFrame

    from rebalance_ledger.tables import Table

SMALL_EXPORT_BYTES: Final = 20_000_000
"""Below, a day's tables are read, joined and counted in one part each, see `suited_to`."""

_WRITERS: Final = 4
"""Tables computed and written at a time: enough to keep the cores busy while others are planned or wait for their commit."""

_EXPORT_BYTES_PER_PARTITION: Final = 100_000_000

_PARTITIONS: Final = "spark.sql.shuffle.partitions"

_ARROW_BATCH: Final = "16m"
"""Sent to a Python worker at a time, a quarter of Spark's own limit: a worker holds a batch and all that it makes of it."""

_BROADCAST_TIMEOUT_S: Final = 3600
"""By itself Spark ends a query whose smaller side is not there within five minutes, which on a busy machine is no fault."""

_LISTING_TASKS: Final = 8
"""By itself Spark starts a task for each file of many days, to find its size."""

_CLASSES_OF_FUNCTIONS: Final = (
    "functions",
    "org.apache.spark.sql.functions",
    "PythonUtils",
    "PythonSQLUtils",
)
"""As PySpark 4 names them; a name that it does not use any more costs nothing."""


def spark_session(name: str, export_bytes: int = 0) -> SparkSession:
    """Return the session of this process.

    Times are instants in UTC whatever the machine's zone, because a day of the ledger is a UTC day.

    Args:
        name: Name of the application in the Spark UI.
        export_bytes: Size of the export for which the JVM is started; without effect on a JVM that `spark-submit` has started.
    """
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.sql.session.timeZone", "UTC")
        # Staged files become those of the published tables, and Delta's timestamps are these.
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.execution.arrow.maxBytesPerBatch", _ARROW_BATCH)
        .config("spark.sql.broadcastTimeout", _BROADCAST_TIMEOUT_S)
        .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", _LISTING_TASKS)
    )
    for setting, value in (_object_store_settings() | driver_options(export_bytes)).items():
        builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    _remember_classes(java(spark))
    _name_call_site(spark)
    return spark


def _remember_classes(jvm: JVMView) -> None:
    """Look the classes behind PySpark's functions up once.

    For each use of a function Py4J asks the JVM again which class a name means, and the JVM searches every jar of Spark:
    12,000 times for a small day, a tenth of its CPU time. An attribute of the view is found before that.
    """
    for name in _CLASSES_OF_FUNCTIONS:
        setattr(jvm, name, getattr(jvm, name))


def _object_store_settings() -> dict[str, str]:
    """Return the settings with which Spark reaches the object store, if there is one, as this process does.

    Set here and not by `spark-submit`, so that keys stand in no list of processes; Hadoop's s3a takes them from the
    environment, and Python on the executors, which reads offset files, from its own.
    """
    variables_of_store = variables()
    settings = {f"spark.executorEnv.{variable}": value for variable, value in variables_of_store.items()}
    settings["spark.hadoop.fs.s3a.endpoint.region"] = variables_of_store["AWS_REGION"]
    if "AWS_ENDPOINT_URL" in variables_of_store:
        settings["spark.hadoop.fs.s3a.endpoint"] = variables_of_store["AWS_ENDPOINT_URL"]
    return settings


@contextmanager
def suited_to(spark: SparkSession, export_bytes: int) -> Iterator[None]:
    """Configure queries, within the block, for a day with an export of this size.

    A small day is in one part, see `in_one_part_if_small`: nothing is shuffled or sent to other tasks, and a statement with a hundred joins
    has few stages. A large one is worth compiled queries, and is shuffled in more parts, so that a part is sorted and joined in memory.
    Between them days run as `spark-defaults.conf` says.
    """
    settings: dict[str, str] = {}
    if export_bytes < SMALL_EXPORT_BYTES:
        settings = {_PARTITIONS: "1", "spark.sql.autoBroadcastJoinThreshold": "-1"}
    elif export_bytes >= LARGE_EXPORT_BYTES:
        partition_count = max(
            int(str(spark.conf.get(_PARTITIONS))), export_bytes // _EXPORT_BYTES_PER_PARTITION
        )
        settings = {
            "spark.sql.codegen.wholeStage": "true",
            "spark.sql.codegen.factoryMode": "FALLBACK",
            _PARTITIONS: str(partition_count),
        }
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@contextmanager
def without_temp_views(spark: SparkSession) -> Iterator[None]:
    """Drop the session's temporary views when the block ends, however it ends: a session computes many days, each from its own views."""
    try:
        yield
    finally:
        for row in spark.sql("SHOW VIEWS").collect():
            if row["isTemporary"]:
                spark.catalog.dropTempView(row["viewName"])


def thread_pool(spark: SparkSession) -> ThreadPoolExecutor:
    """Return a pool of threads that plan and run queries side by side."""
    return ThreadPoolExecutor(_WRITERS, initializer=_name_call_site, initargs=(spark,))


def _name_call_site(spark: SparkSession) -> None:
    """Name the place in the code from which this thread runs queries.

    Spark would look for it on the thread's stack for each RDD, of which a query with a hundred joins has a thousand: 9 % of the samples of a
    profiled day of the sample.
    """
    for form in ("callSite.short", "callSite.long"):
        spark.sparkContext.setLocalProperty(form, "rebalance-ledger")


def read_parquet(spark: SparkSession, schema: StructType, *places: str) -> DataFrame:
    """Read rows that were written as Parquet."""
    return in_one_part_if_small(spark, spark.read.schema(schema).parquet(*map(literal_path, places)))


def read_delta(spark: SparkSession, schema: StructType, place: str, version: int) -> DataFrame:
    """Read a version of a Delta table; a column of the schema that it does not have yet is null."""
    rows = spark.read.format("delta").option("versionAsOf", version).load(place)
    missing = {
        field.name: F.lit(None).cast(field.dataType) for field in schema if field.name not in rows.columns
    }
    return rows.withColumns(missing).select(*schema.fieldNames())


def in_one_part_if_small(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """Return the same rows; of a small day in one part, which Spark need not shuffle to group or join it."""
    return rows.coalesce(1) if spark.conf.get(_PARTITIONS) == "1" else rows


def java(spark: SparkSession) -> JVMView:
    """Return the driver's JVM, for what PySpark has no name for.

    Raises:
        RuntimeError: the session is a client of a Spark Connect server and has no driver of its own.
    """
    jvm = spark._jvm  # noqa: SLF001 - PySpark's only way there
    if jvm is None:
        raise RuntimeError(
            "The Spark session has no driver JVM; submit the job instead of connecting to a server."
        )
    return jvm


def setting_bytes(spark: SparkSession, name: str) -> int:
    """Return a size in Spark's settings, such as `128m`, in bytes."""
    return int(java(spark).org.apache.spark.network.util.JavaUtils.byteStringAsBytes(spark.conf.get(name)))


def literal_path(path: str) -> str:
    """Return a path to read, with the characters that Spark takes for wildcards escaped: names come from clusters."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def spark_schema(table: Table) -> StructType:
    """Return a table's definition as a Spark schema: `cluster` and `ds` first, comments included."""
    return StructType(
        [
            StructField(column.name, _data_type(column.type), column.nullable, {"comment": column.comment})
            for column in table.all_columns
        ]
    )


@cache
def _data_type(ddl: str) -> DataType:
    """Return the type of a column. The JVM parses its name, so each is asked for once."""
    return DataType.fromDDL(ddl)
