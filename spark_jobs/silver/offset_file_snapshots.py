"""Reading the offset files that exports and the ones before them hold: a row for each snapshot of each client's files.

The index of an export knows every path, size and hash, so nothing is listed: rows of the index are spread over tasks, and
each task opens its files itself. That is one request per file on an object store and one `open` on a disk, and both
grow with the number of files alone. What belongs here: which files are read, by which client's rules. What does not: the
rules (`rebalance_ledger.rocketmq.offset_files`), what is made of the answers (`broadcast_offset_file`, `broadcast_offset`).
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
from rebalance_ledger.rocketmq.offset_files.outcome import OUTCOME_NAMES, Offsets, Outcome
from rebalance_ledger.rocketmq.offset_files.start_up import Verdict, start_up
from rebalance_ledger.rocketmq.versions import DEFAULT_LANGUAGE, DEFAULT_VERSION
from rebalance_ledger.storage.location import ObjectPath, location_of
from spark_jobs.day_key import DAY
from spark_jobs.silver.day_export import place_of, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_jobs.silver.day_export import DayExport

FILES: Final = (*DAY, "host", "client_id", "consumer_group")
"""Of which day, and whose files they are: a pair of files, main and `.bak`, for each."""

MOST_BYTES: Final = 16 * 1024 * 1024
"""Larger files are not read. This is room for 150,000 queues."""

MOST_KEPT_BYTES: Final = 256 * 1024
"""Larger files are not kept for the gate, which reads the others a second time."""

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
    """A sealed file is not what was sealed; `str()` is one sentence."""


def readings(spark: SparkSession, silver: Mapping[str, DataFrame], days: Sequence[DayExport]) -> DataFrame:
    """Return a row for each snapshot of each day, and one for the newest earlier export that has the same client's files.

    Columns: `FILES`, `DAY` among them; role (`newest`, `earlier_moment`, `previous`); snapshot_ds, the day of the export that
    has the snapshot, and directory, where that is; moment, captured_at; of `main` and `bak` path, sha256, size_bytes, modified_at; client_language, client_version, client_version_source; and what reading gave: start_outcome, start_from, reason, main_state, bak_state, entry counts as in
    `broadcast_offset_file`; entries, the stored offsets; the content of the files up to `MOST_KEPT_BYTES`.

    Args:
        spark: the session.
        silver: the silver tables by name, with the rows of these days.
        days: the exports of the days.
    """
    files = _today(spark, silver["offset_file"], days)
    if any(day.earlier for day in days):
        files = files.unionByName(_earlier(spark, days))
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
        raise TypeError(f"{ddl} is no row")
    return struct


def _today(spark: SparkSession, offset_file: DataFrame, days: Sequence[DayExport]) -> DataFrame:
    """Return the files that landed on the days themselves, with the directories of their exports."""
    landed = offset_file.where("state = 'landed'")
    if len(days) == 1:
        placed = landed.withColumn("directory", F.lit(str(days[0].directory)))
    else:
        directories = spark.createDataFrame(
            [(*day.key, str(day.directory)) for day in days], "cluster string, ds date, directory string"
        )
        placed = landed.join(F.broadcast(directories), list(DAY))
    return placed.select(
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


def _earlier(spark: SparkSession, days: Sequence[DayExport]) -> DataFrame:
    """Return the same of the earlier exports, for each day that looks back at them.

    An index is read once, however many days look back at it. Its lines were judged when it was sealed, so the JVM may read them.
    """
    name = KIND_BY_NAME[OFFSET_FILE_KIND].file_name
    indexes = {export.directory for day in days for export in day.earlier}
    looked_back_at = [
        (*day.key, place_of(export.directory, name), str(export.directory), export.manifest.ds)
        for day in days
        for export in day.earlier
    ]
    readers = spark.createDataFrame(
        looked_back_at, "cluster string, ds date, place string, directory string, snapshot_ds date"
    )
    return (
        read_lines(spark, [(directory, name) for directory in indexes])
        .select("place", F.from_json("value", _INDEX_DDL).alias("line"))
        .select("place", "line.*")
        .where("sha256 is not null")
        .join(F.broadcast(readers), "place")
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
    """Return one row per snapshot: the main file and the `.bak` file, where they exist.

    Where Java's and Go's files lie side by side, Java's are taken.
    """
    name = F.element_at(F.split("path", "/"), -1)
    file = F.struct("captured_at", "path", "sha256", "size_bytes", "modified_at")

    def named(file_name: str) -> Column:
        return F.max(F.when(name == file_name, file))

    taken = (
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
    return taken.select(
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


def _with_clients(snapshots: DataFrame, silver: Mapping[str, DataFrame]) -> DataFrame:
    """Add the release whose reader counts."""
    of_group = [*DAY, "consumer_group"]
    of_client = [*of_group, "client_id"]
    reports = (
        silver["consumer_connection"]
        .select(*of_client, "client_language", "client_version", F.lit(0).alias("is_own"))
        .unionByName(
            silver["consumer_client"].select(*of_client, "client_version", F.lit(1).alias("is_own")),
            allowMissingColumns=True,
        )
        .withColumn("release", _release_key(F.col("client_version")))
    )
    has_release = F.col("client_version").isNotNull()
    clients = reports.groupBy(*of_client).agg(
        F.max("client_language").alias("own_language"),
        F.max_by("client_version", F.when(has_release, F.struct("is_own", "release"))).alias("own_version"),
    )
    groups = reports.groupBy(*of_group).agg(
        F.max_by("client_version", F.when(has_release, F.col("release"))).alias("group_version")
    )
    return (
        snapshots.join(clients, of_client, "left")
        .join(groups, of_group, "left")
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
    """Return a key that orders releases by their numbers; a SNAPSHOT counts as its release."""
    return F.transform(F.split(F.split(version, "-")[0], r"\."), lambda part: part.try_cast("int"))


def _read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the snapshots of Arrow batches, and yield the batches with the results as further columns; Spark runs this."""
    for whole in batches:
        for start in range(0, whole.num_rows, _ROWS_PER_BATCH):
            batch = whole.slice(start, _ROWS_PER_BATCH)
            rows = [_read(row) for row in batch.to_pylist()]
            columns = [pa.array([row[name] for row in rows], kind) for name, kind in _READ_FIELDS]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *columns], names=[*batch.schema.names, *(name for name, _ in _READ_FIELDS)]
            )


def _read(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of reading one snapshot."""
    answer: dict[str, Any] = {name: None for name, _ in _READ_FIELDS}
    try:
        too_large = [side for side in SIDES if (row[f"{side}_size_bytes"] or 0) > MOST_BYTES]
        if too_large:
            return answer | {
                "reason": f"the {too_large[0]} file is larger than {MOST_BYTES} bytes and was not read"
            }
        contents = {side: _content(row, side) for side in SIDES}
        answer |= {
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
        # No rules for the client's language or release.
        return answer | {"reason": _carried(str(error))}
    entries = {
        (_carried(key.topic), _carried(key.broker_name), key.queue_id): offset
        for key, offset in start.table.items()
    }
    return answer | {
        "start_outcome": _START_OUTCOME[start.verdict],
        "start_from": None if start.source is None else start.source.value,
        "reason": _carried(start.reason),
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
    """Return the bytes of a file, which are those that were sealed; None if there is none.

    Raises:
        ChangedFileError: they are not.
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
            f"{directory}/{path} is not what was sealed: its SHA-256 differs from the index; "
            "run `ledger exports verify` on this directory, and collect or copy it again"
        )
    return content


def _state(outcome: Outcome | None) -> str:
    return "missing" if outcome is None else OUTCOME_NAMES[type(outcome)]


def _entry_count(outcome: Outcome | None) -> int | None:
    return len(outcome.table) if isinstance(outcome, Offsets) else None


def _carried(text: str | None) -> str | None:
    """Return a text as Arrow can carry it: half a surrogate pair becomes `?`, as in Java's UTF-8."""
    return None if text is None else text.encode("utf-8", "replace").decode()
