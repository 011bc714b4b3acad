"""Read the offset files of the days' exports and of earlier exports: one row per snapshot of each client's files.

The index of an export contains path, size and hash of every file, so no folder is listed. Its rows are distributed to Spark tasks,
and each task opens its files itself: one request per file in an object store, one `open` per file on a disk.

Belongs here: which files are read, and the client release whose rules apply. Does not belong here: the rules
(`rebalance_ledger.rocketmq.offset_files`), and the evaluation of the results (`broadcast_offset_file`, `broadcast_offset`).
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from rebalance_ledger.exports.contract import KIND_BY_NAME, OFFSET_FILE_KIND
from rebalance_ledger.rocketmq.client_ids import GRPC_CLIENT_ID_PATTERN
from rebalance_ledger.rocketmq.offset_files.outcome import OUTCOME_NAMES, Offsets, Outcome
from rebalance_ledger.rocketmq.offset_files.start_up import Verdict, start_up
from rebalance_ledger.rocketmq.versions import DEFAULT_LANGUAGE, DEFAULT_VERSION
from rebalance_ledger.storage.location import ObjectPath, location_of
from spark_jobs.day_key import DAY
from spark_jobs.rows import from_rows
from spark_jobs.silver.day_export import export_file_key, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_jobs.silver.day_export import DayExport

FILES: Final = (*DAY, "host", "client_id", "consumer_group")
"""The columns that identify a pair of offset files, main and `.bak`."""

MOST_BYTES: Final = 16 * 1024 * 1024
"""Larger files are not read. A file of this size holds the offsets of 150,000 queues."""

MOST_KEPT_BYTES: Final = 256 * 1024
"""The content of larger files is not kept for the gate, which parses the kept files again."""

SIDES: Final = ("main", "bak")

_FILES_PER_TASK: Final = 2000
_ROWS_PER_BATCH: Final = 500

_INDEX_DDL: Final = (
    "moment int, host string, client_id string, `group` string, path string, size bigint, mtime timestamp, "
    "sha256 string, captured_at timestamp"
)
_ENTRY: Final = pa.struct(
    [
        ("topic", pa.string()),
        ("broker_name", pa.string()),
        ("queue_id", pa.int32()),
        ("stored_offset", pa.int64()),
    ]
)
_DIRECTORIES: Final = pa.schema([("cluster", pa.string()), ("ds", pa.date32()), ("directory", pa.string())])
_USES_OF_INDEXES: Final = pa.schema(
    [
        ("cluster", pa.string()),
        ("ds", pa.date32()),
        ("file_key", pa.string()),
        ("directory", pa.string()),
        ("snapshot_ds", pa.date32()),
    ]
)
_READ_FIELDS: Final = (
    ("start_outcome", pa.string()),
    ("start_from", pa.string()),
    ("reason", pa.string()),
    ("main_state", pa.string()),
    ("bak_state", pa.string()),
    ("main_entry_count", pa.int32()),
    ("bak_entry_count", pa.int32()),
    ("entries", pa.list_(_ENTRY)),
    ("main_content", pa.binary()),
    ("bak_content", pa.binary()),
)
_READ_DDL: Final = (
    "start_outcome string, start_from string, reason string, main_state string, bak_state string, "
    "main_entry_count int, bak_entry_count int, "
    "entries array<struct<topic: string, broker_name: string, queue_id: int, stored_offset: bigint>>, "
    "main_content binary, bak_content binary"
)

_START_OUTCOME: Final = {
    Verdict.STORED: "stored",
    Verdict.DEFAULT: "default",
    Verdict.FAILS: "fails_to_start",
    Verdict.UNDECIDED: None,
}


class ChangedFileError(Exception):
    """A file has changed since the export was sealed; `str()` is one sentence."""


def readings(spark: SparkSession, silver: Mapping[str, DataFrame], days: Sequence[DayExport]) -> DataFrame:
    """Return one row per snapshot of each day, and one for the newest earlier export with files of the same client.

    Args:
        spark: The session.
        silver: The silver tables by name, with the rows of these days.
        days: The exports of the days.

    Returns:
        These columns:

        * `FILES`; role: `newest`, `earlier_moment` or `previous` (from an earlier export).
        * snapshot_ds, directory: day and location of the export that has the snapshot; moment, captured_at.
        * path, sha256, size_bytes and modified_at of both files, with the prefix `main_` or `bak_`.
        * client_language, client_version, client_version_source: the client whose rules are used.
        * start_outcome, start_from, reason, main_state, bak_state, main_entry_count, bak_entry_count: as in `broadcast_offset_file`.
        * entries: the stored offsets; main_content, bak_content: the files up to `MOST_KEPT_BYTES`.

    Raises:
        ChangedFileError: A file has changed since the export was sealed; Spark raises it when the rows are computed.
    """
    files = _files_of_days(spark, silver["offset_file"], days)
    if any(day.earlier for day in days):
        files = files.unionByName(_files_of_earlier_exports(spark, days))
    is_previous = F.col("snapshot_ds") < F.col("ds")
    newest_first = Window.partitionBy(*FILES, is_previous).orderBy(
        F.col("snapshot_ds").desc(), F.col("moment").desc()
    )
    wanted = (
        _snapshots(files)
        .withColumn("rank", F.row_number().over(newest_first))
        .where(~is_previous | (F.col("rank") == 1))
        .withColumn(
            "role",
            F.when(is_previous, "previous").when(F.col("rank") == 1, "newest").otherwise("earlier_moment"),
        )
        .drop("rank")
    )
    manifests = [
        manifest
        for day in days
        for manifest in (day.manifest, *(export.manifest for export in day.earlier[:1]))
    ]
    file_count = sum(file.kind == OFFSET_FILE_KIND for manifest in manifests for file in manifest.files)
    described = _with_clients(wanted, silver).repartition(max(1, math.ceil(file_count / _FILES_PER_TASK)))
    schema = StructType([*described.schema.fields, *_struct(_READ_DDL).fields])
    return described.mapInArrow(_read_batches, schema)


def _struct(ddl: str) -> StructType:
    struct = DataType.fromDDL(ddl)
    if not isinstance(struct, StructType):
        raise TypeError(f"{ddl} is not a struct")
    return struct


def _files_of_days(spark: SparkSession, offset_file: DataFrame, days: Sequence[DayExport]) -> DataFrame:
    """Return the files of the days' own exports, with the directories of these."""
    landed = offset_file.where("state = 'landed'")
    if len(days) == 1:
        files = landed.withColumn("directory", F.lit(str(days[0].directory)))
    else:
        directories = from_rows(spark, _DIRECTORIES, ((*day.key, str(day.directory)) for day in days))
        files = landed.join(F.broadcast(directories), list(DAY))
    return files.select(
        *FILES,
        "directory",
        F.col("ds").alias("snapshot_ds"),
        "moment",
        "captured_at",
        "path",
        "size_bytes",
        "modified_at",
        "sha256",
    )


def _files_of_earlier_exports(spark: SparkSession, days: Sequence[DayExport]) -> DataFrame:
    """Return the files of earlier exports, in the columns of `_files_of_days`, for each day that uses them.

    Each index is read once, even if several days use it. Its lines were validated when it was sealed, so the JVM can parse them.
    """
    name = KIND_BY_NAME[OFFSET_FILE_KIND].file_name
    indexes = {export.directory for day in days for export in day.earlier}
    uses = (
        (*day.key, export_file_key(export.directory, name), str(export.directory), export.manifest.ds)
        for day in days
        for export in day.earlier
    )
    days_by_index = from_rows(spark, _USES_OF_INDEXES, uses)
    return (
        read_lines(spark, [(directory, name) for directory in indexes])
        .select("file_key", F.from_json("value", _INDEX_DDL).alias("line"))
        .select("file_key", "line.*")
        .where("sha256 is not null")
        .join(F.broadcast(days_by_index), "file_key")
        .select(
            *DAY,
            "host",
            "client_id",
            F.col("group").alias("consumer_group"),
            "directory",
            "snapshot_ds",
            "moment",
            "captured_at",
            "path",
            F.col("size").alias("size_bytes"),
            F.col("mtime").alias("modified_at"),
            "sha256",
        )
    )


def _snapshots(files: DataFrame) -> DataFrame:
    """Return one row per snapshot, with the main file and the `.bak` file if they exist.

    If a folder has the files of Java and of Go clients, those of Java are used.
    """
    name = F.element_at(F.split("path", "/"), -1)
    file = F.struct("captured_at", "path", "sha256", "size_bytes", "modified_at")

    def named(file_name: str) -> Column:
        return F.max(F.when(name == file_name, file))

    snapshots = (
        files.groupBy(*FILES, "directory", "snapshot_ds", "moment")
        .agg(
            F.max("captured_at").alias("captured_at"),
            named("offsets.json").alias("java_main"),
            named("offsets.json.bak").alias("java_bak"),
            named("offset.json").alias("go_main"),
            named("offset.json.bak").alias("go_bak"),
        )
        .withColumn(
            "is_go",
            F.col("java_main").isNull()
            & F.col("java_bak").isNull()
            & F.coalesce("go_main", "go_bak").isNotNull(),
        )
        .withColumn("main", F.when(F.col("is_go"), F.col("go_main")).otherwise(F.col("java_main")))
        .withColumn("bak", F.when(F.col("is_go"), F.col("go_bak")).otherwise(F.col("java_bak")))
    )
    return snapshots.select(
        *FILES,
        "directory",
        "snapshot_ds",
        "moment",
        "captured_at",
        "is_go",
        *(
            F.col(f"{side}.{field}").alias(f"{side}_{field}")
            for side in SIDES
            for field in ("path", "sha256", "size_bytes", "modified_at")
        ),
    )


def connections_of_writers(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Return the connections of clients that may write offset files; gRPC clients, which only proxies name, write none.

    Columns: `DAY`; consumer_group, client_id; connected_to: name of the broker, or address of the proxy; client_addr: the client's
    address and port; client_language, client_version: null if not reported.
    """

    def connections(table: str, connected_to: str) -> DataFrame:
        return silver[table].select(
            *DAY,
            "consumer_group",
            "client_id",
            F.col(connected_to).alias("connected_to"),
            "client_addr",
            "client_language",
            "client_version",
        )

    at_proxies = connections("proxy_connection", "proxy").where(
        ~F.col("client_id").rlike(GRPC_CLIENT_ID_PATTERN)
    )
    return connections("consumer_connection", "broker_name").unionByName(at_proxies)


def _with_clients(snapshots: DataFrame, silver: Mapping[str, DataFrame]) -> DataFrame:
    """Add language and release of the client whose rules are used: its own, otherwise the newest of its group, otherwise the default."""
    group_key = [*DAY, "consumer_group"]
    client_key = [*group_key, "client_id"]
    reports = (
        connections_of_writers(silver)
        .select(*client_key, "client_language", "client_version", F.lit(0).alias("is_own"))
        .unionByName(
            silver["consumer_client"].select(*client_key, "client_version", F.lit(1).alias("is_own")),
            allowMissingColumns=True,
        )
        .withColumn("release", _release_key(F.col("client_version")))
    )
    has_release = F.col("client_version").isNotNull()
    clients = reports.groupBy(*client_key).agg(
        F.max("client_language").alias("own_language"),
        F.max_by("client_version", F.when(has_release, F.struct("is_own", "release"))).alias("own_version"),
    )
    groups = reports.groupBy(*group_key).agg(
        F.max_by("client_version", F.when(has_release, F.col("release"))).alias("group_version")
    )
    return (
        snapshots.join(clients, client_key, "left")
        .join(groups, group_key, "left")
        .withColumn(
            "client_language",
            F.when(F.col("is_go"), "GO").otherwise(F.coalesce("own_language", F.lit(DEFAULT_LANGUAGE))),
        )
        .withColumn("client_version", F.coalesce("own_version", "group_version", F.lit(DEFAULT_VERSION)))
        .withColumn(
            "client_version_source",
            F.when(F.col("own_version").isNotNull(), "client")
            .when(F.col("group_version").isNotNull(), "group")
            .otherwise("assumed"),
        )
        .drop("own_language", "own_version", "group_version", "is_go")
    )


def _release_key(version: Column) -> Column:
    """Return a key that sorts releases numerically; a SNAPSHOT is equal to its release."""
    return F.transform(F.split(F.split(version, "-")[0], r"\."), lambda part: part.try_cast("int"))


def _read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches with the columns of `_READ_FIELDS` added, in smaller batches; for `mapInArrow`."""
    for large_batch in batches:
        for start in range(0, large_batch.num_rows, _ROWS_PER_BATCH):
            batch = large_batch.slice(start, _ROWS_PER_BATCH)
            rows = [_read(row) for row in batch.to_pylist()]
            columns = [pa.array([row[name] for row in rows], kind) for name, kind in _READ_FIELDS]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *columns], names=[*batch.schema.names, *(name for name, _ in _READ_FIELDS)]
            )


def _read(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read one snapshot, and return the values of `_READ_FIELDS`."""
    result: dict[str, Any] = {name: None for name, _ in _READ_FIELDS}
    try:
        too_large = [side for side in SIDES if (row[f"{side}_size_bytes"] or 0) > MOST_BYTES]
        if too_large:
            return result | {
                "reason": f"the {too_large[0]} file is larger than {MOST_BYTES} bytes and was not read"
            }
        contents = {side: _content(row, side) for side in SIDES}
        result |= {
            f"{side}_content": content
            for side, content in contents.items()
            if content is not None and len(content) <= MOST_KEPT_BYTES
        }
        start = start_up(
            contents["main"],
            contents["bak"],
            client_version=row["client_version"],
            client_language=row["client_language"],
        )
    except ValueError as error:
        # There are no rules for the client's language or release.
        return result | {"reason": _encodable(str(error))}
    entries = {
        (_encodable(key.topic), _encodable(key.broker_name), key.queue_id): offset
        for key, offset in start.table.items()
    }
    return result | {
        "start_outcome": _START_OUTCOME[start.verdict],
        "start_from": None if start.source is None else start.source.value,
        "reason": _encodable(start.reason),
        "main_state": _state(start.main),
        "bak_state": _state(start.bak),
        "main_entry_count": _entry_count(start.main),
        "bak_entry_count": _entry_count(start.bak),
        "entries": [
            {"topic": topic, "broker_name": broker, "queue_id": queue_id, "stored_offset": offset}
            for (topic, broker, queue_id), offset in entries.items()
        ],
    }


def _content(row: Mapping[str, Any], side: str) -> bytes | None:
    """Return the bytes of a file; None if the snapshot has no such file.

    Raises:
        ChangedFileError: The file has changed since the export was sealed.
    """
    path = row[f"{side}_path"]
    if path is None:
        return None
    directory = row["directory"]
    file = location_of(directory) / path
    with file.open() if isinstance(file, ObjectPath) else file.open("rb") as stream:
        content = stream.read()
    if hashlib.sha256(content).hexdigest() != row[f"{side}_sha256"]:
        raise ChangedFileError(
            f"{directory}/{path} has changed since the export was sealed: its SHA-256 differs from the index; "
            "run `ledger exports verify` on this directory, and collect or copy it again"
        )
    return content


def _state(outcome: Outcome | None) -> str:
    return "missing" if outcome is None else OUTCOME_NAMES[type(outcome)]


def _entry_count(outcome: Outcome | None) -> int | None:
    return len(outcome.table) if isinstance(outcome, Offsets) else None


def _encodable(text: str | None) -> str | None:
    """Return a text that Arrow can encode: an unpaired surrogate becomes `?`, as in Java's UTF-8."""
    return None if text is None else text.encode("utf-8", "replace").decode()
