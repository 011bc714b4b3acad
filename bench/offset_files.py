"""(e) Reading offset files of broadcasting clients: how long it takes, and how that grows with their number.

Main and `.bak` file of so many clients, eight queues each, as fastjson 1 writes them, on a local disk. What is timed is
`spark_jobs.offset_readings.readings` from the rows of the index to Parquet: every file opened, hashed and read by its
client's rules. The export's own verification and the JVM's start are not in it.

Belongs here: the files and the clock. Does not belong here: how a reading is done (`spark_jobs`).
"""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import StructType

from bench.report import Measurement
from spark_jobs.offset_readings import OFFSET_FILE_KIND, readings
from spark_jobs.session import spark_schema
from tables import SILVER_TABLES
from topology.manifest import Manifest, ManifestFile

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FILE_COUNTS: Final = (10_000, 100_000)

_DS: Final = date(2026, 11, 16)
_NOON: Final = datetime(2026, 11, 16, 12, tzinfo=UTC)
_QUEUES: Final = 8
_GROUP: Final = "config-listeners"


def measure(spark: SparkSession, folder: Path, file_count: int) -> float:
    """Seconds to read so many files, once; they are written below `folder` first."""
    index = _write(folder, file_count // 2)
    files = tuple(
        ManifestFile(
            path=row["path"],
            kind=OFFSET_FILE_KIND,
            line_count=None,
            error_count=None,
            size_bytes=row["size_bytes"],
            sha256=row["sha256"],
        )
        for row in index
    )
    manifest = Manifest(
        contract_version=1,
        cluster="bench",
        ds=_DS,
        first_captured_at=_NOON,
        last_captured_at=_NOON,
        files=files,
        sha256="",
    )
    silver = {
        table.name: spark.createDataFrame([], StructType(spark_schema(table).fields[2:]))
        for table in SILVER_TABLES
    }
    schema = silver["offset_file"].schema
    rows = [tuple(row.get(name) for name in schema.fieldNames()) for row in index]
    place = str(folder / "index.parquet")
    spark.createDataFrame(rows, schema).write.mode("overwrite").parquet(place)
    silver["offset_file"] = spark.read.schema(schema).parquet(place)
    start = time.perf_counter()
    readings(spark, silver, str(folder), manifest, ()).write.mode("overwrite").parquet(
        str(folder / "reading.parquet")
    )
    return time.perf_counter() - start


def measurement(seconds: float, few_seconds: float) -> Measurement:
    """The line of the report: many files against ten times the time of a tenth of them.

    Args:
        seconds: what the greater of `FILE_COUNTS` took.
        few_seconds: what the smaller took.
    """
    few, many = FILE_COUNTS
    return Measurement(
        name="offset_files",
        what=f"reading {many:,} offset files of {_QUEUES} queues",
        baseline=f"{many // few} times the time of {few:,}",
        seconds=(seconds,),
        baseline_seconds=(few_seconds * many / few,),
        bar=1.2,
        note="A ratio below 1 is the cost of starting; above, reading grows faster than the number of files.",
        extra={"file_count": many, "files_per_second": many / seconds},
    )


def _write(folder: Path, client_count: int) -> list[dict[str, Any]]:
    """Two files for each client, and the rows of their index."""
    index: list[dict[str, Any]] = []
    for client in range(client_count):
        host = f"10.{client // 65536}.{client // 256 % 256}.{client % 256}"
        for name in ("offsets.json", "offsets.json.bak"):
            path = f"offset_files/{host}/{host}@DEFAULT/{_GROUP}/{name}"
            content = _content(client)
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            index.append(
                {
                    "line_number": len(index) + 1,
                    "moment": 0,
                    "host": host,
                    "client_id": f"{host}@DEFAULT",
                    "consumer_group": _GROUP,
                    "state": "landed",
                    "path": path,
                    "size_bytes": len(content),
                    "modified_at": _NOON,
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "captured_at": _NOON,
                }
            )
    return index


def _content(client: int) -> bytes:
    entries = ",".join(
        f'{{\n\t\t\t"brokerName":"broker-{queue % 2}",\n\t\t\t"queueId":{queue // 2},\n\t\t\t"topic":"config-push"\n\t\t}}'
        f":{1000 + client + queue}"
        for queue in range(_QUEUES)
    )
    return f'{{\n\t"offsetTable":{{{entries}\n\t}}\n}}'.encode()
