"""(e) A cluster of 100 brokers, 5,000 topics and 3,000 groups, from the collector to the published tables.

`tools.simulated_cluster` answers the collector, so that what is collected is an export as a capture would write it. Then each
stage runs as Airflow runs it, in processes of its own: verify, build (spark-submit), gate, publish. What counts is the most
memory that any process had: 4 GB at most.

Belongs here: the stages' commands, and watching their processes. Does not belong here: what the cluster is like.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import psutil  # type: ignore[import-untyped]  # it ships no types
import pyarrow.parquet as pq

from bench.report import Measurement
from rebalance_ledger.driver_options import LARGE_EXPORT_BYTES, driver_options
from rebalance_ledger.exports.manifest import export_directory, load_manifest
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.staging import newest_stage
from tools.simulated_cluster import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FULL: Final = Size(broker_count=100, topic_count=5_000, group_count=3_000, clients_per_group=8)
CLUSTER: Final = "simulated"
DS: Final = date(2026, 11, 16)

_ROOT: Final = Path(__file__).resolve().parent.parent
_LIMIT_BYTES: Final = 4_000_000_000
_LOOK_EVERY_S: Final = 1.0
_BYTES_PER_KIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """What one stage took.

    Attributes:
        seconds: from its start to its end.
        peak_bytes: by role (`python`, `jvm`, `python_worker`), the most resident memory that any one process had.
    """

    seconds: float
    peak_bytes: Mapping[str, int]


def measure(*, size: Size = FULL, folder: Path | None = None) -> list[Measurement]:
    """Run every stage once and take the peak of each kind of process.

    Args:
        size: Of the cluster.
        folder: Where export and warehouse are put and stay; None for a temporary folder.

    Raises:
        RuntimeError: A stage fails.
    """
    if folder is None:
        with TemporaryDirectory(prefix="large-cluster-") as made:
            return measure(size=size, folder=Path(made))
    usages = {stage: run(command) for stage, command in commands(size, folder).items()}
    what = f"{size.broker_count:,} brokers, {size.topic_count:,} topics, {size.group_count:,} groups"
    sizes = _sizes(folder)
    return [
        Measurement(
            name=f"large_cluster_{stage}_{role}",
            what=f"{stage} of {what}: most memory of one process ({role.replace('_', ' ')})",
            baseline="4 GB",
            seconds=(float(peak),),
            baseline_seconds=(float(_LIMIT_BYTES),),
            bar=1.0,
            extra={"stage_seconds": usage.seconds} | sizes,
            unit="bytes",
        )
        for stage, usage in usages.items()
        for role, peak in sorted(usage.peak_bytes.items())
    ]


def commands(size: Size, folder: Path) -> dict[str, list[str]]:
    """StagingArea -> its command, in order."""
    exports, settings = str(folder / "exports"), str(folder / "settings.yaml")
    warehouse = str(folder / "warehouse")
    day = ["--cluster", CLUSTER, "--ds", DS.isoformat(), "--exports", exports]
    of_stage = [*day, "--warehouse", warehouse, "--settings", settings]
    simulated = [
        "--brokers", str(size.broker_count), "--topics", str(size.topic_count), "--groups", str(size.group_count),
        "--clients-per-group", str(size.clients_per_group),
    ]  # fmt: skip
    second_compiler = [f"--conf={name}={value}" for name, value in driver_options(LARGE_EXPORT_BYTES).items()]
    return {
        "collect": ["python", "-m", "tools.simulated_cluster", *simulated, *day, "--settings", settings],
        "verify": ["ledger", "step", "verify", *of_stage],
        "build": [
            "spark-submit",
            "--master",
            "local[2]",
            *second_compiler,
            str(_ROOT / "spark_jobs" / "day_job.py"),
            *of_stage,
        ],
        "gate": ["ledger", "step", "gate", *of_stage],
        "publish": ["ledger", "step", "publish", *of_stage],
    }


def run(command: Sequence[str]) -> Usage:
    """Run a program of the project in its environment and watch it and its children.

    Raises:
        RuntimeError: It fails.
    """
    begin = time.monotonic()
    peaks: dict[str, int] = defaultdict(int)
    with subprocess.Popen(  # noqa: S603  # our own programs
        [_ROOT / "setup" / "in-environment", *command], cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=sys.stderr
    ) as started:
        root = psutil.Process(started.pid)
        while True:
            with suppress(psutil.NoSuchProcess):
                for process in (root, *root.children(recursive=True)):
                    _look(process, peaks)
            with suppress(subprocess.TimeoutExpired):
                started.wait(_LOOK_EVERY_S)
                break
    if started.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {started.returncode}; see above.")
    return Usage(time.monotonic() - begin, dict(peaks))


def _look(process: psutil.Process, peaks: dict[str, int]) -> None:
    """Keep the highest resident memory that the process has had by now, as the kernel knows it."""
    with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        if process.name() == "java":
            role = "jvm"
        elif "pyspark.daemon" in process.cmdline():
            role = "python_worker"
        elif process.name().startswith("python") or process.name() == "ledger":
            role = "python"
        else:
            return
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if "VmHWM" in lines:  # A process that has just ended has no memory any more.
            peaks[role] = max(peaks[role], int(lines["VmHWM"].split()[0]) * _BYTES_PER_KIB)


def _sizes(folder: Path) -> dict[str, float]:
    """Bytes and lines of the export, and rows of each staged table."""
    manifest = load_manifest(export_directory(folder / "exports", CLUSTER, DS))
    sizes = {
        "export_bytes": float(sum(file.size_bytes for file in manifest.files)),
        "export_line_count": float(sum(file.line_count or 0 for file in manifest.files)),
    }
    stage = Path(newest_stage(Warehouse.at(str(folder / "warehouse")), CLUSTER, DS).root)
    for part in stage.rglob("*.parquet"):
        name = f"{part.parent.name}_row_count"
        sizes[name] = sizes.get(name, 0.0) + pq.read_metadata(part).num_rows
    return sizes


if __name__ == "__main__":
    # By hand, at any size and in a folder that stays: python -m bench.large_cluster FOLDER BROKERS TOPICS GROUPS CLIENTS
    place, *counts = sys.argv[1:]
    for measured in measure(size=Size(*map(int, counts)) if counts else FULL, folder=Path(place)):
        seconds = measured.extra["stage_seconds"]
        sys.stdout.write(
            f"{measured.name:40} {measured.seconds[0] / 1e6:8,.0f} MB  {seconds:8.1f} s{os.linesep}"
        )
    for key, value in sorted(measured.extra.items()):
        sys.stdout.write(f"{key:40} {value:16,.0f}{os.linesep}")
