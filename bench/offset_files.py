"""(f) Offset files of broadcasting clients: landing, sealing and reading them, and how each grows with their number.

Main and `.bak` file of so many clients, eight queues each, as fastjson 1 writes them, on a local disk. What is timed:

- landing: `rebalance_ledger.collectors.offset_file_drop.land` from the drop folder into an export;
- sealing: the export's manifest, which names every file with its hash;
- reading: `spark_jobs.silver.offset_file_snapshots.readings` from the rows of the index to Parquet: every file opened, hashed and read by
  its client's rules. The start of the JVM is not in it.

Each number of files has processes of its own, one without Spark for the first two, so that its peak of memory is its own.

Belongs here: the files and the clock. Does not belong here: how any of it is done.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from bench.report import Measurement
from rebalance_ledger.collectors.offset_file_drop import land
from rebalance_ledger.exports.manifest import MANIFEST_NAME, export_directory, load_manifest
from rebalance_ledger.exports.writer import ExportWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_COUNTS: Final = (10_000, 100_000)

_ROOT: Final = Path(__file__).resolve().parent.parent
_CLUSTER: Final = "bench"
_DS: Final = date(2026, 11, 16)
_NOON: Final = datetime(2026, 11, 16, 12, tzinfo=UTC)
_QUEUES: Final = 8
_GROUP: Final = "config-listeners"
_FILES_OF_CLIENT: Final = ("offsets.json", "offsets.json.bak")
_BYTES_PER_KIB: Final = 1024
_BAR: Final = 1.2


def measure() -> list[Measurement]:
    """Measure each step with the greater of `FILE_COUNTS`, beside as many times the time of the smaller.

    Raises:
        RuntimeError: A run fails.
    """
    few, many = FILE_COUNTS
    of_few, of_many = _figures(few), _figures(many)
    return [
        Measurement(
            name=f"offset_files_{step}",
            what=f"{step} {many:,} offset files of {_QUEUES} queues",
            baseline=f"{many // few} times the time of {few:,}",
            seconds=(of_many[f"{step}_seconds"],),
            baseline_seconds=(of_few[f"{step}_seconds"] * many / few,),
            bar=_BAR,
            note="A ratio below 1 is the cost of starting; above, the time grows faster than the number of files.",
            extra={"file_count": many, "files_per_second": many / of_many[f"{step}_seconds"]}
            | {name: value for name, value in of_many.items() if name.endswith("_bytes")},
        )
        for step in ("landing", "sealing", "reading")
    ]


def _figures(file_count: int) -> dict[str, float]:
    with TemporaryDirectory(prefix="bench-offset-files-") as made:
        _write_drop(Path(made) / "drop", file_count)
        return {**_run("land", made), **_run("read", made)}


def _run(step: str, folder: str) -> Mapping[str, float]:
    """Run one step in a process of its own, and return what it printed last."""
    command = [sys.executable, "-m", "bench.offset_files", step, folder]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=False)  # noqa: S603  # our own module
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}; see above.")
    figures: Mapping[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _land(folder: Path) -> dict[str, float]:
    """Land the tree and seal the export, with no other lines than those that every export must have."""
    start = time.perf_counter()
    with ExportWriter(folder / "exports", _CLUSTER, _DS) as writer:
        writer.payload("nameserver_topic_list", _NOON, '{"topicList":[]}', nameserver="ns:9876")
        writer.payload("nameserver_route", _NOON, "{}", nameserver="ns:9876", topic="config-push")
        writer.payload("consumer_connection", _NOON, "{}", broker="a", broker_addr="a:10911", group=_GROUP)
        land(writer, folder / "drop", now=lambda: _NOON)
        landed = time.perf_counter()
        landing_peak = _peak_bytes()
    return {
        "landing_seconds": landed - start,
        "sealing_seconds": time.perf_counter() - landed,
        "landing_peak_bytes": landing_peak,
        "sealing_peak_bytes": _peak_bytes(),
        "manifest_bytes": (writer.directory / MANIFEST_NAME).stat().st_size,
    }


def _read(folder: Path) -> dict[str, float]:
    """Read every file in a Spark application with the project's own settings."""
    # A JVM's libraries must not count as memory of landing.
    from rebalance_ledger.warehouse.layout import StagingArea  # noqa: PLC0415
    from spark_jobs.session import spark_session  # noqa: PLC0415
    from spark_jobs.silver.day_export import DayExport  # noqa: PLC0415
    from spark_jobs.silver.offset_file_snapshots import readings  # noqa: PLC0415
    from spark_jobs.silver.reader import stage_silver  # noqa: PLC0415

    directory = export_directory(folder / "exports", _CLUSTER, _DS)
    day = DayExport(directory, load_manifest(directory))
    spark = spark_session("bench: offset files")
    silver = stage_silver(spark, [day], {day.key: StagingArea(str(folder), "stage")})
    start = time.perf_counter()
    readings(spark, silver, [day]).write.parquet(str(folder / "reading.parquet"))
    seconds = time.perf_counter() - start
    read = spark.read.parquet(str(folder / "reading.parquet")).where("start_outcome = 'stored'").count()
    wanted = sum(not file.holds_envelopes for file in day.manifest.files) // len(_FILES_OF_CLIENT)
    if read != wanted:
        raise RuntimeError(f"{read:,} clients' files were read instead of {wanted:,}.")
    spark.stop()
    return {"reading_seconds": seconds}


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_PER_KIB


def _write_drop(drop: Path, file_count: int) -> None:
    """Write two files for each client, below a folder of its host."""
    for client in range(file_count // len(_FILES_OF_CLIENT)):
        host = f"10.{client // 65536}.{client // 256 % 256}.{client % 256}"
        folder = drop / host / f"{host}@DEFAULT" / _GROUP
        folder.mkdir(parents=True)
        for name in _FILES_OF_CLIENT:
            (folder / name).write_bytes(_content(client))


def _content(client: int) -> bytes:
    entries = ",".join(
        f'{{\n\t\t\t"brokerName":"broker-{queue % 2}",\n\t\t\t"queueId":{queue // 2},\n\t\t\t"topic":"config-push"\n\t\t}}'
        f":{1000 + client + queue}"
        for queue in range(_QUEUES)
    )
    return f'{{\n\t"offsetTable":{{{entries}\n\t}}\n}}'.encode()


if __name__ == "__main__":
    wanted_step, place = sys.argv[1:]
    answer = {"land": _land, "read": _read}[wanted_step](Path(place))
    sys.stdout.write(json.dumps(answer) + "\n")
