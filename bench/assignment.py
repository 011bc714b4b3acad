"""(a) and (c): the assignment job beside a plain copy of the rows that it writes, at three sizes.

Job: working rows of a generated cluster, in no order, through `allocated` and `queue_assignment` of the build, six strategies
for every subscription, to a Delta table with all columns. Copy: that table, read by Spark and written to another. Both in one
session, in turns, the job first. Each size runs in a process of its own, so that its peak of memory is its own.

Belongs here: the pair, its session, and reading the memory of its processes. Does not belong here: the rows (`generated`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import psutil  # type: ignore[import-untyped]  # it ships no types
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.generated import QUEUES_OF_TOPIC, TOPICS_OF_GROUP, GeneratedCluster
from bench.report import Measurement
from rebalance_ledger.tables import QUEUE_ASSIGNMENT
from spark_jobs.gold.queue_assignment import allocated, queue_assignment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

GROUP_COUNT: Final = 10_000
"""60,000 subscriptions of 32 queues: 11.5 million rows of six strategies."""

GROWTH: Final = (1, 3, 10)
GROWTH_GROUP_COUNT: Final = 3_000
"""Groups of the smallest size of the growth."""

STRATEGY_COUNT: Final = 6

# A day of this size is worth compiled code; `conf/spark/spark-defaults.conf` says why a small one is not.
_HEAP: Final = "2g"
_LARGE_DAY: Final = {
    "spark.master": "local[2]",
    "spark.driver.memory": _HEAP,
    "spark.driver.extraJavaOptions": f"-Xms{_HEAP} -XX:+AlwaysPreTouch -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -Duser.timezone=UTC",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
_DAY: Final = date(2026, 11, 20)
_BYTES_PER_KIB: Final = 1024
_ROOT: Final = Path(__file__).resolve().parent.parent
_MEMORY_GROWTH_BAR: Final = 1.25


def measure(*, group_count: int = GROUP_COUNT, repetitions: int = 3) -> list[Measurement]:
    """Measure (a), the job beside the copy.

    Args:
        group_count: the groups, with six subscriptions of 32 queues each.
        repetitions: pairs of job and copy.

    Raises:
        RuntimeError: a run fails.
    """
    run = _run(group_count, repetitions)
    return [
        Measurement(
            name="assignment",
            what=f"six strategies, {_row_count(group_count) / 1e6:.1f} million rows, to Delta",
            baseline="plain Spark copy, Delta to Delta",
            seconds=tuple(run["job_seconds"]),
            baseline_seconds=tuple(run["copy_seconds"]),
            bar=1.0,
            note="The first pair starts cold: Java compiles the job's code as it runs.",
            extra={"row_count": float(_row_count(group_count))},
        )
    ]


def measure_growth(*, group_count: int = GROWTH_GROUP_COUNT) -> list[Measurement]:
    """Measure (c), the job's time and memory at each size of `GROWTH`, each once in a fresh process.

    CONFIG's lists are settings, and settings are in memory: all sizes have those of the smallest one's groups, and clients
    of the others find themselves in no list. Every other strategy has all of its work at every size.

    Args:
        group_count: the groups of the smallest size.

    Raises:
        RuntimeError: a run fails.
    """
    runs = {factor: _run(factor * group_count, 1, list_group_count=group_count) for factor in GROWTH}
    smallest = runs[1]
    measured = []
    for factor in GROWTH[1:]:
        rows = f"{_row_count(factor * group_count) / 1e6:.1f} million rows"
        measured.append(
            Measurement(
                name=f"time_of_{factor}_times_the_rows",
                what=f"the job, {rows}",
                baseline=f"{factor} times the time of {_row_count(group_count) / 1e6:.1f} million",
                seconds=tuple(runs[factor]["job_seconds"]),
                baseline_seconds=(factor * smallest["job_seconds"][0],),
                bar=1.0,
                note="Each in a fresh process, so the smallest carries the largest share of the start.",
            )
        )
        measured += [
            Measurement(
                name=f"{role}_memory_of_{factor}_times_the_rows",
                what=f"most memory of {who}, {rows}",
                baseline=f"at {_row_count(group_count) / 1e6:.1f} million",
                seconds=tuple(runs[factor][f"{role}_peak_bytes"]),
                baseline_seconds=tuple(smallest[f"{role}_peak_bytes"]),
                bar=_MEMORY_GROWTH_BAR,
                note=f"The driver's heap has {_HEAP} at any size, and all of it is taken at the start.",
                unit="bytes",
            )
            for role, who in (("driver", "the driver"), ("worker", "one Python worker"))
        ]
    return measured


def _row_count(group_count: int) -> int:
    return group_count * TOPICS_OF_GROUP * QUEUES_OF_TOPIC * STRATEGY_COUNT


def _run(
    group_count: int, repetitions: int, *, list_group_count: int | None = None
) -> Mapping[str, list[float]]:
    """Run one size in a process of its own, and return what it printed last. With a number of lists, run the job alone."""
    lists = group_count if list_group_count is None else list_group_count
    counts = [group_count, repetitions, lists, int(list_group_count is None)]
    command = [sys.executable, "-m", "bench.assignment", *map(str, counts)]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=False)  # noqa: S603  # our own module
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}; see above.")
    figures: Mapping[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _pairs(
    group_count: int, repetitions: int, list_group_count: int, folder: Path, *, is_copied: bool
) -> dict[str, list[float]]:
    """Return the seconds of each job and copy, and the processes' highest resident memory by the last job, in bytes."""
    cluster = GeneratedCluster(group_count)
    cluster.write(folder / "subscription")
    settings = GeneratedCluster(list_group_count).settings()
    builder = SparkSession.builder.appName("bench: assignment")
    for name, value in _LARGE_DAY.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    job_table, copy_table = str(folder / "job"), str(folder / "copy")
    figures: dict[str, list[float]] = {"job_seconds": [], "copy_seconds": []}
    for _ in range(repetitions):
        subscription = spark.read.parquet(str(folder / "subscription")).select(
            F.lit("generated").alias("cluster"), F.lit(_DAY).alias("ds"), "*"
        )
        rows = queue_assignment(allocated(subscription, {"generated": settings}))
        columns = [column.name for column in QUEUE_ASSIGNMENT.all_columns]
        figures["job_seconds"].append(_seconds_to_write(rows.select(*columns), job_table))
        peaks = _peaks()
        if is_copied:
            copied = spark.read.format("delta").load(job_table)
            figures["copy_seconds"].append(_seconds_to_write(copied, copy_table))
    for table in (job_table, copy_table)[: 1 + is_copied]:
        count = spark.read.format("delta").load(table).count()
        if count != _row_count(group_count):
            raise RuntimeError(f"{table} has {count:,} rows instead of {_row_count(group_count):,}.")
    spark.stop()
    return figures | peaks


def _seconds_to_write(rows: DataFrame, table: str) -> float:
    start = time.perf_counter()
    rows.write.format("delta").mode("overwrite").save(table)
    return time.perf_counter() - start


def _peaks() -> dict[str, list[float]]:
    """Return the highest resident memory so far of the driver's JVM and of the largest Python worker, as the kernel knows it."""
    peaks = {"driver_peak_bytes": [0.0], "worker_peak_bytes": [0.0]}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            role = "driver_peak_bytes" if process.name() == "java" else "worker_peak_bytes"
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
            if "VmHWM" in lines:  # A process that has just ended has no memory any more.
                peak = float(lines["VmHWM"].split()[0]) * _BYTES_PER_KIB
                peaks[role] = [max(peaks[role][0], peak)]
    return peaks


if __name__ == "__main__":
    with TemporaryDirectory(prefix="bench-assignment-") as made:
        groups, pairs, lists, copied_too = map(int, sys.argv[1:])
        answer = _pairs(groups, pairs, lists, Path(made), is_copied=bool(copied_too))
        sys.stdout.write(json.dumps(answer) + "\n")
