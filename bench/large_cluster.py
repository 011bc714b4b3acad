"""(e) A cluster of 100 brokers, 5,000 topics and 3,000 groups, from the collector to the published tables.

`tools.simulated_cluster` answers the collector, so that what is collected is an export as a capture would write it. Then each
stage runs as Airflow runs it, in processes of its own: verify, build (spark-submit), gate, publish. What counts is the most
memory that any process had: 4 GB at most.

Belongs here: the size, and what is promised of it. Does not belong here: the stages' commands (`stages`), watching their processes
(`watched`), and what the cluster is like.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow.parquet as pq

from bench.report import Measurement
from bench.stages import CLUSTER, DS, collect_command, manifest_of, stage_commands
from bench.watched import run
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.staging import newest_stage
from tools.simulated_cluster import Size

FULL: Final = Size(broker_count=100, topic_count=5_000, group_count=3_000, clients_per_group=8)

_LIMIT_BYTES: Final = 4_000_000_000


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
    usages = {"collect": run(collect_command(size, folder))}
    usages |= {stage: run(command) for stage, command in stage_commands(folder, folder / "warehouse").items()}
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
            extra={"stage_seconds": usage.seconds, "stage_cpu_seconds": usage.cpu_seconds} | sizes,
            unit="bytes",
        )
        for stage, usage in usages.items()
        for role, peak in sorted(usage.peak_bytes.items())
    ]


def _sizes(folder: Path) -> dict[str, float]:
    """Return the bytes and lines of the export, and the rows of each staged table."""
    manifest = manifest_of(folder)
    sizes = {
        "export_bytes": float(manifest.size_bytes),
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
        seconds, cpu_seconds = (measured.extra[f"stage_{name}seconds"] for name in ("", "cpu_"))
        sys.stdout.write(
            f"{measured.name:40} {measured.seconds[0] / 1e6:8,.0f} MB  {seconds:8.1f} s  {cpu_seconds:8.1f} s CPU{os.linesep}"
        )
    for key, value in sorted(measured.extra.items()):
        sys.stdout.write(f"{key:40} {value:16,.0f}{os.linesep}")
