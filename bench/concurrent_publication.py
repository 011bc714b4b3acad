"""(m) Days of ten clusters that are published at once, beside the CPU time that the publications take.

One publisher at a time writes a warehouse (`docs/adr/0021-current-state-in-the-log-of-publication.md`). If publishers waited for each other, the
last one would end later than the time in which the machine's cores do the work of all of them.

Belongs here: starting the publishers, and their times. Does not belong here: staged days (`publication_history`).
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from tempfile import TemporaryDirectory
from typing import Final

from bench.publication_history import publish_alone, stage_day
from bench.report import Measurement
from rebalance_ledger.tables import QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse.layout import Warehouse

CLUSTER_COUNT: Final = 10
_ROW_COUNT: Final = 10_000
_REPETITION_COUNT: Final = 3
_DS: Final = date(2026, 11, 17)


def measure(*, cluster_count: int = CLUSTER_COUNT, row_count: int = _ROW_COUNT) -> list[Measurement]:
    """Publish days of several clusters at once, each in a process of its own.

    Args:
        cluster_count: Number of clusters.
        row_count: Rows of each day in one table.

    Raises:
        RuntimeError: A publication fails.
    """
    seconds, cpu_seconds = [], []
    for _ in range(_REPETITION_COUNT):
        with TemporaryDirectory(prefix="concurrent-publication-") as folder:
            warehouse = Warehouse.at(folder)
            clusters = [f"cluster-{number:02}" for number in range(cluster_count)]
            for cluster in clusters:
                stage_day(warehouse, cluster, _DS, [QUEUE_ASSIGNMENT], row_count)
            begin = time.monotonic()
            with ThreadPoolExecutor(cluster_count) as publishers:
                usages = list(publishers.map(partial(publish_alone, warehouse, _DS), clusters))
            seconds.append(time.monotonic() - begin)
            cpu_seconds.append(sum(usage.cpu_seconds for usage in usages))
    core_count = len(os.sched_getaffinity(0))
    return [
        Measurement(
            name="concurrent_publication",
            what=f"days of {cluster_count} clusters published at once, until the last is published",
            baseline=f"CPU time of the {cluster_count} publications, divided by {core_count} cores",
            seconds=tuple(seconds),
            baseline_seconds=tuple(each / core_count for each in cpu_seconds),
        )
    ]


if __name__ == "__main__":
    for measured in measure(cluster_count=int(sys.argv[1]), row_count=int(sys.argv[2])):
        figures = ", ".join(f"{figure:,.2f}" for figure in measured.seconds)
        references = ", ".join(f"{figure:,.2f}" for figure in measured.baseline_seconds)
        sys.stdout.write(f"{measured.name} {figures} beside {references} s: ratio {measured.ratio:.2f}\n")
