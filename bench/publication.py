"""(i) Publication of a day in three sizes, ten times as large each.

The rows are those of `queue_assignment` and `ownership_drift`, the largest tables, staged without Spark. Each publication is a process of its
own, into a warehouse of its own. Belongs here: what it takes, and how many bytes it writes. Does not belong here: history
(`publication_history`).
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from bench.publication_history import CLUSTER, publish_alone, stage_rows, values_of
from bench.report import Measurement
from rebalance_ledger.tables import OWNERSHIP_DRIFT, QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.layout import Warehouse

if TYPE_CHECKING:
    from bench.publication_history import Usage
    from rebalance_ledger.tables import Table

_ROW_COUNTS: Final = (50_000, 500_000, 5_000_000)
_REPETITION_COUNT: Final = 3
_DS: Final = date(2026, 11, 16)
_LIMIT_BYTES: Final = 250_000_000
_GROWTH_BAR: Final = 1.5
_WRITTEN_BAR: Final = 0.02


def measure() -> list[Measurement]:
    """Publish days of three sizes, in turns.

    Raises:
        RuntimeError: A publication fails.
    """
    usages: dict[int, list[Usage]] = {row_count: [] for row_count in _ROW_COUNTS}
    written_bytes, staged_bytes = 0, 0
    for _ in range(_REPETITION_COUNT):
        for row_count in _ROW_COUNTS:
            with TemporaryDirectory(prefix="publication-") as folder:
                warehouse = Warehouse.at(f"{folder}/warehouse")
                _stage(warehouse, row_count)
                staged = _files(warehouse)
                usages[row_count].append(publish_alone(warehouse, _DS))
                # A linked file is the same file under a second name.
                written = {inode: size for inode, size in _files(warehouse).items() if inode not in staged}
                staged_bytes, written_bytes = sum(staged.values()), sum(written.values())
    small, middle, large = _ROW_COUNTS
    return [
        *(
            Measurement(
                name=f"publication_{ours}_rows",
                what=f"publish {ours:,} rows of each of two tables",
                baseline=f"{base:,} rows",
                seconds=tuple(usage.seconds for usage in usages[ours]),
                baseline_seconds=tuple(usage.seconds for usage in usages[base]),
                bar=_GROWTH_BAR,
                extra={"cpu_seconds": min(usage.cpu_seconds for usage in usages[ours])},
            )
            for base, ours in ((small, middle), (middle, large))
        ),
        Measurement(
            name="publication_peak",
            what=f"the same with {large:,} rows: peak of memory",
            baseline=f"{_LIMIT_BYTES / 1e6:g} MB",
            seconds=tuple(float(usage.peak_bytes) for usage in usages[large]),
            baseline_seconds=(float(_LIMIT_BYTES),),
            bar=1.0,
            unit="bytes",
        ),
        Measurement(
            name="publication_written",
            what=f"the same with {large:,} rows: bytes written",
            baseline="bytes staged",
            seconds=(float(written_bytes),),
            baseline_seconds=(float(staged_bytes),),
            bar=_WRITTEN_BAR,
            unit="bytes",
        ),
    ]


def _stage(warehouse: Warehouse, row_count: int) -> None:
    rows_of = {table: _rows(table, row_count) for table in (QUEUE_ASSIGNMENT, OWNERSHIP_DRIFT)}
    stage_rows(warehouse, CLUSTER, _DS, rows_of)


def _rows(table: Table, row_count: int) -> pa.Table:
    """Return rows that differ in group and queue."""
    schema = arrow_schema(table)
    values = values_of(schema, CLUSTER, _DS)
    columns = []
    for field in schema:
        if field.name == "consumer_group":
            columns.append(pa.array([f"group-{number % 3000}" for number in range(row_count)], field.type))
        elif field.name == "queue_id":
            columns.append(pa.array(range(row_count), field.type))
        else:
            columns.append(pa.repeat(pa.scalar(values[field.name], field.type), row_count))
    return pa.Table.from_arrays(columns, schema=schema)


def _files(warehouse: Warehouse) -> dict[int, int]:
    """Return the size of every file of a warehouse by its inode."""
    files = (path.stat() for path in Path(warehouse.root).rglob("*") if path.is_file())
    return {status.st_ino: status.st_size for status in files}
