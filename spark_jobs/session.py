"""The Spark session and the schemas of the tables in Spark's types.

Settings that depend on where Spark runs are in `spark-defaults.conf` in the folder `SPARK_CONF_DIR` (see `conf/`), so the same code
runs on a laptop and on a cluster.
"""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from rebalance_ledger.driver_options import LARGE_EXPORT_BYTES, driver_options
from rebalance_ledger.storage.location import variables
from spark_jobs.jvm_calls import save_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from py4j.java_gateway import JVMView

    from rebalance_ledger.tables import Table

SMALL_EXPORT_BYTES: Final = 20_000_000
"""Smaller exports are processed in one partition, see `suited_to`."""

_WRITERS: Final = 4
"""Largest number of tables that are computed and written at a time: enough to keep the cores busy while other tables are planned."""

_EXPORT_BYTES_PER_PARTITION: Final = 100_000_000

_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_GENERATED_CODE: Final = "spark.sql.codegen.wholeStage"
_CODE_FACTORY: Final = "spark.sql.codegen.factoryMode"

_ARROW_BATCH: Final = "16m"
"""Size of the batches for Python workers, a quarter of Spark's default: a worker holds a batch and its results in memory."""

_BROADCAST_TIMEOUT_S: Final = 3600
"""Spark's default of five minutes makes queries fail on a busy machine."""

_LISTING_TASKS: Final = 8
"""By default, Spark starts one task for each file of many days to get its size."""


def spark_session(name: str, export_bytes: int = 0) -> SparkSession:
    """Return the session of this process.

    The session's time zone is UTC, because a day of the ledger is a UTC day.

    Args:
        name: Name of the application in the Spark UI.
        export_bytes: Size of the export, which determines options of the JVM; no effect if `spark-submit` started the JVM.
    """
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.sql.session.timeZone", "UTC")
        # Staged files become files of the published Delta tables, whose timestamps have microseconds.
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.execution.arrow.maxBytesPerBatch", _ARROW_BATCH)
        # Java changes the case of letters. By default Spark loads the ICU library for this, which takes two seconds.
        .config("spark.sql.icu.caseMappings.enabled", "false")
        .config("spark.sql.broadcastTimeout", _BROADCAST_TIMEOUT_S)
        .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", _LISTING_TASKS)
    )
    for setting, value in (_object_store_settings() | driver_options(export_bytes)).items():
        builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    save_calls(java(spark))
    _name_call_site(spark)
    return spark


def _object_store_settings() -> dict[str, str]:
    """Return Spark's settings for the object store, from this process's environment.

    They are not arguments of `spark-submit`, so that keys do not appear in process lists. Hadoop's s3a reads the keys from the
    environment of the JVM, and Python on the executors from `spark.executorEnv`.
    """
    variables_of_store = variables()
    settings = {f"spark.executorEnv.{variable}": value for variable, value in variables_of_store.items()}
    settings["spark.hadoop.fs.s3a.endpoint.region"] = variables_of_store["AWS_REGION"]
    if "AWS_ENDPOINT_URL" in variables_of_store:
        settings["spark.hadoop.fs.s3a.endpoint"] = variables_of_store["AWS_ENDPOINT_URL"]
    return settings


@contextmanager
def suited_to(spark: SparkSession, export_bytes: int) -> Iterator[None]:
    """Configure the session, within the block, for a day with an export of this size.

    A small day has one partition (see `in_one_part_if_small`), so that nothing is shuffled and a query with a hundred joins has few
    stages. Its queries are planned once and interpreted, on a cluster too: to plan them again after each stage, or to compile them, takes
    longer than their rows. A large day uses generated code, and enough partitions to sort and join each in memory. Other days use
    `spark-defaults.conf`.
    """
    settings: dict[str, str] = {}
    if export_bytes < SMALL_EXPORT_BYTES:
        settings = {
            _PARTITIONS: "1",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.adaptive.enabled": "false",
            _GENERATED_CODE: "false",
            _CODE_FACTORY: "NO_CODEGEN",
        }
    elif export_bytes >= LARGE_EXPORT_BYTES:
        partition_count = max(
            int(str(spark.conf.get(_PARTITIONS))), export_bytes // _EXPORT_BYTES_PER_PARTITION
        )
        settings = {
            _GENERATED_CODE: "true",
            _CODE_FACTORY: "FALLBACK",
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
    """Drop the session's temporary views when the block ends, because later days use the same session."""
    try:
        yield
    finally:
        for row in spark.sql("SHOW VIEWS").collect():
            if row["isTemporary"]:
                spark.catalog.dropTempView(row["viewName"])


def thread_pool(spark: SparkSession) -> ThreadPoolExecutor:
    """Return a pool of threads that plan and run queries concurrently.

    A query of a small day keeps the driver's core busy for its whole time, so there are not more of them than cores.
    """
    count = min(_WRITERS, max(2, os.cpu_count() or 2)) if is_small(spark) else _WRITERS
    return ThreadPoolExecutor(count, initializer=_name_call_site, initargs=(spark,))


def _name_call_site(spark: SparkSession) -> None:
    """Set the call site of this thread's queries.

    Otherwise Spark searches the thread's stack for each RDD, and a query with a hundred joins has a thousand RDDs: 9 % of the samples of
    a profiled day of the sample.
    """
    for form in ("callSite.short", "callSite.long"):
        spark.sparkContext.setLocalProperty(form, "rebalance-ledger")


def is_small(spark: SparkSession) -> bool:
    """Return whether the session is configured for a small day, see `suited_to`."""
    return spark.conf.get(_PARTITIONS) == "1"


def java(spark: SparkSession) -> JVMView:
    """Return the driver's JVM, for calls that PySpark does not offer.

    Raises:
        RuntimeError: The session is a client of a Spark Connect server and has no driver.
    """
    jvm = spark._jvm  # noqa: SLF001 - PySpark has no public access
    if jvm is None:
        raise RuntimeError(
            "The Spark session has no driver JVM; submit the job instead of connecting to a server."
        )
    return jvm


def setting_bytes(spark: SparkSession, name: str) -> int:
    """Return the value in bytes of a Spark setting with a size, such as `128m`."""
    return int(java(spark).org.apache.spark.network.util.JavaUtils.byteStringAsBytes(spark.conf.get(name)))


def literal_path(path: str) -> str:
    """Return a path with Spark's wildcard characters escaped, because cluster names may contain them."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def spark_schema(table: Table) -> StructType:
    """Return the Spark schema of a table: `cluster` and `ds` first, comments included."""
    return StructType(
        [
            StructField(column.name, _data_type(column.type), column.nullable, {"comment": column.comment})
            for column in table.all_columns
        ]
    )


@cache
def _data_type(ddl: str) -> DataType:
    """Return the type of a column; it is cached, because the JVM parses each type."""
    return DataType.fromDDL(ddl)
