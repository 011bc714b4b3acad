"""(h) Publication into a warehouse with years of history, beside publication into an empty one.

The history is made without Spark and without publishing 18,250 days: one day with a row in every table is published, and commits
in the form of delta-rs name a file of each table for every further cluster and day, 50 clusters a commit. `publication` and
the tables that are queried have these files; those of the others are in the log only, because nothing that is measured reads
them. The checkpoint is nearly as old as it may get. The same is measured again after maintenance has merged the files of these
tables by month.

Belongs here: that warehouse, and watching the commands. Does not belong here: days of any size (`large_cluster`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from bench.report import Measurement
from rebalance_ledger.tables import (
    COMPUTED_GOLD_TABLES,
    FINDING,
    GATE_RESULT,
    PUBLICATION,
    QUEUE_ASSIGNMENT,
    SILVER_TABLES,
)
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.data_files import data_files
from rebalance_ledger.warehouse.inventory import inventory_of_stage
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.maintenance import merge_days
from rebalance_ledger.warehouse.publish import publish
from rebalance_ledger.warehouse.staging import Build, finish, write_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rebalance_ledger.tables import Table

CLUSTER_COUNT: Final = 50
DAY_COUNT: Final = 365

_FIRST_DAY: Final = date(2025, 11, 17)
CLUSTER: Final = "new"
"""Of the days that are published."""
_ROW_COUNT: Final = 2
_REPETITION_COUNT: Final = 3
_WITH_FILES: Final = (PUBLICATION, QUEUE_ASSIGNMENT, FINDING)
_COMMITS_AFTER_CHECKPOINT: Final = 45

_LIMIT_CPU_S: Final = 2.0
_LIMIT_BYTES: Final = 300_000_000
_LIMIT_SQL_S: Final = 1.0
_BYTES_PER_KIB: Final = 1024

_ROOT: Final = Path(__file__).resolve().parent.parent
_QUESTIONS: Final = {
    "one table": "SELECT count(*) FROM latest.queue_assignment",
    "findings of the newest days": "SELECT cluster, kind, count(*) FROM latest.finding GROUP BY ALL",
}


@dataclass(frozen=True, slots=True)
class Usage:
    """What one process took."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def measure(*, cluster_count: int = CLUSTER_COUNT, day_count: int = DAY_COUNT) -> list[Measurement]:
    """Publish small days into a warehouse with history and into one without, in turns, and query the first.

    Args:
        cluster_count: Of the history.
        day_count: Of each cluster.

    Raises:
        RuntimeError: A command fails.
    """
    with TemporaryDirectory(prefix="publication-history-") as folder:
        old = Warehouse.at(f"{folder}/old")
        make_history(old, cluster_count, day_count)
        first_ds = _FIRST_DAY + timedelta(days=day_count)
        with_history, without_history = [], []
        for number in range(_REPETITION_COUNT):
            new = Warehouse.at(f"{folder}/new-{number}")
            without_history.append(_publish_rows(new, _FIRST_DAY))
            with_history.append(_publish_rows(old, first_ds + timedelta(days=number)))
        answers = _answers(old)
        for table in _WITH_FILES:
            merge_days(old, table, first_ds, is_applied=True)
        after_merge = [
            _publish_rows(old, first_ds + timedelta(days=number))
            for number in range(_REPETITION_COUNT, 2 * _REPETITION_COUNT)
        ]
        answers |= {f"{name}, merged by month": seconds for name, seconds in _answers(old).items()}
    size = f"{cluster_count * day_count:,} publications"
    what = f"publish {_ROW_COUNT} rows into a warehouse with {size}"
    return [
        *_of_publications("publication_history", what, with_history),
        Measurement(
            name="publication_history_growth",
            what=f"{what}: CPU time",
            baseline="the same into an empty warehouse",
            seconds=tuple(usage.cpu_seconds for usage in with_history),
            baseline_seconds=tuple(usage.cpu_seconds for usage in without_history),
        ),
        *_of_publications("publication_history_merged", f"{what}, merged by month", after_merge),
        *(
            Measurement(
                name=f"sql_history_{name.replace(',', '').replace(' ', '_')}",
                what=f"ledger sql, {name}, with {size}",
                baseline=f"{_LIMIT_SQL_S:g} s",
                seconds=seconds,
                baseline_seconds=(_LIMIT_SQL_S,),
                bar=1.0,
            )
            for name, seconds in answers.items()
        ),
    ]


def _of_publications(name: str, what: str, usages: Sequence[Usage]) -> list[Measurement]:
    """Return the CPU time and the memory of publications, with their bars."""
    return [
        Measurement(
            name=f"{name}_cpu",
            what=f"{what}: CPU time",
            baseline=f"{_LIMIT_CPU_S:g} s",
            seconds=tuple(usage.cpu_seconds for usage in usages),
            baseline_seconds=(_LIMIT_CPU_S,),
            bar=1.0,
        ),
        Measurement(
            name=f"{name}_memory",
            what=f"{what}: most memory",
            baseline="300 MB",
            seconds=tuple(float(usage.peak_bytes) for usage in usages),
            baseline_seconds=(float(_LIMIT_BYTES),),
            bar=1.0,
            unit="bytes",
        ),
    ]


def _publish_rows(warehouse: Warehouse, ds: date) -> Usage:
    """Publish a day with a few rows in one table."""
    stage_day(warehouse, CLUSTER, ds, [QUEUE_ASSIGNMENT], _ROW_COUNT)
    return publish_alone(warehouse, ds)


def _answers(warehouse: Warehouse) -> dict[str, tuple[float, ...]]:
    """Return the seconds of each repetition of each question."""
    return {
        name: tuple(
            _run(["ledger", "sql", "--warehouse", warehouse.root, text])[0] for _ in range(_REPETITION_COUNT)
        )
        for name, text in _QUESTIONS.items()
    }


def make_history(warehouse: Warehouse, cluster_count: int, day_count: int) -> None:
    """Make a warehouse with a publication for each day of each cluster."""
    stage_day(warehouse, "first", _FIRST_DAY, [*SILVER_TABLES, *COMPUTED_GOLD_TABLES], _ROW_COUNT)
    publish(warehouse, "first", _FIRST_DAY)
    for table in (*commits.PUBLISHED_TABLES, PUBLICATION):
        _commit_history(warehouse.published(table), cluster_count, day_count, has_files=table in _WITH_FILES)
    recorded = commits.PublishedTables(warehouse)
    recorded.versions.update(
        {
            table.qualified_name: DeltaTable(warehouse.published(table)).version()
            for table in commits.PUBLISHED_TABLES
        }
    )
    recorded.record_state()


def _commit_history(place: str, cluster_count: int, day_count: int, *, has_files: bool) -> None:
    """Add the files of all days to a table: a commit for each day, and on the last day one for each cluster."""
    delta = DeltaTable(place)
    log = Path(place, "_delta_log")
    first_commit = (log / f"{delta.version():020}.json").read_text(encoding="utf-8")
    template = next(
        (line["add"] for line in map(json.loads, first_commit.splitlines()) if "add" in line), None
    )
    if template is None:  # `quarantined_group` is empty on most days.
        return
    [file] = data_files(delta)
    rows = pq.read_table(Path(place, file.path))
    clusters = [f"cluster-{number:02}" for number in range(cluster_count)]
    of_commit = [clusters] * (day_count - 1) + [[cluster] for cluster in clusters]
    for number, names in enumerate(of_commit):
        ds = _FIRST_DAY + timedelta(days=min(number, day_count - 1))
        lines: list[dict[str, Any]] = [{"commitInfo": {"operation": "WRITE"}}]
        stats = json.loads(template["stats"])
        stats["minValues"]["ds"] = stats["maxValues"]["ds"] = ds.isoformat()
        for cluster in names:
            path = f"data/{cluster}-{ds}.parquet"
            if has_files:
                pq.write_table(_rows_of_day(rows, cluster, ds), Path(place, path))
            add = {"path": path, "partitionValues": {"cluster": cluster}, "stats": json.dumps(stats)}
            lines.append({"add": template | add})
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (log / f"{delta.version() + 1 + number:020}.json").write_text(text, encoding="utf-8")
        if number == max(0, len(of_commit) - _COMMITS_AFTER_CHECKPOINT):
            DeltaTable(place).create_checkpoint()


def _rows_of_day(rows: pa.Table, cluster: str, ds: date) -> pa.Table:
    """Return the same rows with another cluster and day."""
    for name, value in (("cluster", cluster), ("ds", ds)):
        position = rows.schema.get_field_index(name)
        field = rows.schema.field(position)
        rows = rows.set_column(position, field, pa.array([value] * len(rows), field.type))
    return rows


def stage_day(warehouse: Warehouse, cluster: str, ds: date, filled: Sequence[Table], row_count: int) -> None:
    """Stage an accepted day with some rows in some tables."""
    rows_of = {}
    for table in filled:
        schema = arrow_schema(table)
        rows_of[table] = pa.Table.from_pylist([values_of(schema, cluster, ds)] * row_count, schema=schema)
    stage_rows(warehouse, cluster, ds, rows_of)


def stage_rows(
    warehouse: Warehouse,
    cluster: str,
    ds: date,
    rows_of: Mapping[Table, pa.Table],
    results: list[dict[str, Any]] | None = None,
    baseline_ds: date | None = None,
) -> None:
    """Stage an accepted day with these rows of tables and these of `gate_result`, by default one."""
    if results is None:
        values = values_of(arrow_schema(GATE_RESULT), cluster, ds)
        results = [{column.name: values[column.name] for column in GATE_RESULT.columns}]
    stage = warehouse.stage(cluster, ds, "only")
    for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES):
        Path(stage.table(table)).mkdir(parents=True)
        rows = rows_of.get(table, arrow_schema(table).empty_table())
        pq.write_table(rows, f"{stage.table(table)}/part-0.parquet")
    Path(stage.offset_readings).mkdir(parents=True)
    build = Build(
        run_id="0" * 16,
        manifest_sha256="0" * 64,
        settings_sha256="0" * 64,
        code_version="bench",
        baseline_ds=baseline_ds,
    )
    finish(warehouse, cluster, ds, stage, build, inventory_of_stage(stage, ClusterDay(cluster, ds)))
    write_verdict(warehouse, cluster, ds, stage, "passed", results)


def values_of(schema: pa.Schema, cluster: str, ds: date) -> dict[str, Any]:
    """Return a row with the least value in every column that may not be null."""
    row = {field.name: None if field.nullable else _least(field.type) for field in schema}
    return row | {"cluster": cluster, "ds": ds}


def _least(kind: pa.DataType) -> object:
    if pa.types.is_string(kind):
        return ""
    if pa.types.is_list(kind):
        return []
    return False if pa.types.is_boolean(kind) else 0


def publish_alone(warehouse: Warehouse, ds: date, cluster: str = CLUSTER) -> Usage:
    """Publish a staged day in a process of its own, which says what it took: a child's peak of memory counts its parent's."""
    words = [
        "ledger",
        "step",
        "publish",
        f"--cluster={cluster}",
        f"--ds={ds}",
        f"--warehouse={warehouse.root}",
    ]
    program = (
        "import atexit, sys, time; from pathlib import Path; from rebalance_ledger.cli.console import main; "
        "atexit.register(lambda: print(time.process_time(), Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])); "
        f"sys.argv = {words!r}; main()"
    )
    seconds, output = _run(["python", "-c", program])
    cpu_seconds, peak_kib = output.splitlines()[-1].split()
    return Usage(seconds, float(cpu_seconds), int(peak_kib) * _BYTES_PER_KIB)


def _run(command: Sequence[str]) -> tuple[float, str]:
    """Run a program of the project in its environment; return its seconds and its output.

    Raises:
        RuntimeError: It fails.
    """
    begin = time.monotonic()
    ended = subprocess.run(  # noqa: S603  # our own programs
        [_ROOT / "setup" / "in-environment", *command],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=False,
        text=True,
    )
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}; see above.")
    return time.monotonic() - begin, ended.stdout


if __name__ == "__main__":
    # By hand, at any size: python -m bench.publication_history CLUSTERS DAYS
    for measured in measure(cluster_count=int(sys.argv[1]), day_count=int(sys.argv[2])):
        figures = ", ".join(f"{figure:,.2f}" for figure in measured.seconds)
        sys.stdout.write(f"{measured.name:45} {figures}  ratio {measured.ratio:.2f}{os.linesep}")
