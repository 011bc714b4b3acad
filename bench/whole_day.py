"""(l) A whole day, from its sealed export to its published tables, beside a plain Spark copy of its input and its output.

Days of simulated clusters, of two sizes by default. In turns, each from the start of its processes to their end:

- ours: the stages of `ledger run` up to publication (verify, build, gate, publish), each in a process of its own as Airflow runs it,
  which costs some starts of Python more than `ledger run`;
- the copy: one Spark application that reads the export's lines as text and writes them as Parquet, and then reads each published
  table and writes it as a Delta table.

The gate is measured beside the build of the same days, and `ledger sql` on the tables of the last one beside a process that imports the same
libraries and opens one table.

Belongs here: the turns, and both baselines. Does not belong here: the stages' commands (`stages`), watching processes (`watched`).
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable

from bench.report import Measurement
from bench.stages import CLUSTER, DS, collect_command, manifest_of, stage_commands
from bench.watched import run
from rebalance_ledger.exports.manifest import export_directory
from rebalance_ledger.tables import QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse.commits import PUBLISHED_TABLES
from rebalance_ledger.warehouse.layout import Warehouse
from spark_jobs.session import spark_session, suited_to
from tools.simulated_cluster import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.watched import Usage

SMALL: Final = Size(broker_count=4, topic_count=10, group_count=4, clients_per_group=4)
"""About 1 MB of export: what its plans take, not its rows."""

LARGE: Final = Size(broker_count=12, topic_count=140, group_count=80, clients_per_group=8)
"""About 29 MB of export."""

_QUERY: Final = "SELECT count(*) FROM latest.queue_assignment"
_OPEN: Final = (
    "import sys, duckdb, pyarrow; from deltalake import DeltaTable; "
    "duckdb.connect().from_arrow(DeltaTable(sys.argv[1]).to_pyarrow_dataset())"
)
_QUERY_COUNT: Final = 7
_QUERY_BAR: Final = 1.5

_FULL_BYTES: Final = 1_000_000_000
"""A day of this size is a full one, see `large_cluster`: the start of the plans does not count any more."""
_DAY_BAR: Final = 3.0
_GATE_BAR: Final = 0.25
_GATE_BAR_BYTES: Final = 20_000_000
_GATE_LIMIT_BYTES: Final = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Turn:
    """A day and the copy that followed it.

    Attributes:
        stages: Stage of the day -> what it took, in order.
        copied: What the copy took.
    """

    stages: Mapping[str, Usage]
    copied: Usage


def measure(
    *, sizes: Sequence[Size] = (SMALL, LARGE), repetitions: int = 3, folder: Path | None = None
) -> list[Measurement]:
    """Compute and copy a day of each size, in turns, and query the tables of the last one.

    Args:
        sizes: Of the clusters, the largest last.
        repetitions: Pairs of a day and a copy for each size.
        folder: An empty folder for what is written; it stays. None for a temporary one.

    Raises:
        RuntimeError: A program fails, or a copy does not have the rows of its day.
    """
    if folder is None:
        with TemporaryDirectory(prefix="whole-day-") as made:
            return measure(sizes=sizes, repetitions=repetitions, folder=Path(made))
    measured = []
    for number, size in enumerate(sizes):
        place = folder / str(number)
        run(collect_command(size, place))
        turns = [_turn(place) for _ in range(repetitions)]
        measured += _measurements(turns, manifest_of(place).size_bytes)
    return [*measured, _sql_latency(_warehouse(place))]


def _turn(folder: Path) -> Turn:
    """Compute the day of an export into an empty warehouse, and copy its input and its output."""
    warehouse, target = _warehouse(folder), folder / "copy"
    for earlier in (warehouse, target):
        shutil.rmtree(earlier, ignore_errors=True)
    stages = {stage: run(command) for stage, command in stage_commands(folder, warehouse).items()}
    copied = run(["python", "-m", "bench.whole_day", "copy", str(folder)])
    for name, place in _published(warehouse).items():
        if _row_count(place) != _row_count(str(target / name)):
            raise RuntimeError(f"The copy of {name} does not have its rows; a part of the rows has no speed.")
    return Turn(stages, copied)


def _measurements(turns: Sequence[Turn], size_bytes: int) -> list[Measurement]:
    """Return the figures of one size of export."""
    megabytes = f"{size_bytes / 1e6:,.0f}"
    suffix, what = f"of_{megabytes.replace(',', '')}_mb", f"of an export of {megabytes} MB"
    builds, gates = ([turn.stages[stage] for turn in turns] for stage in ("build", "gate"))
    return [
        Measurement(
            name=f"whole_day_{suffix}_cpu",
            what=f"verify, build, gate and publish {what}: CPU of all processes",
            baseline="plain Spark copy of input and output",
            seconds=tuple(sum(usage.cpu_seconds for usage in turn.stages.values()) for turn in turns),
            baseline_seconds=tuple(turn.copied.cpu_seconds for turn in turns),
            bar=_DAY_BAR if size_bytes >= _FULL_BYTES else None,
            note="The bar is one of a full-size day; the plans of a smaller one take longer than its rows.",
            extra={"export_bytes": float(size_bytes)}
            | {f"{stage}_cpu_seconds": usage.cpu_seconds for stage, usage in turns[-1].stages.items()},
        ),
        Measurement(
            name=f"whole_day_{suffix}_clock",
            what=f"verify, build, gate and publish {what}: clock",
            baseline="plain Spark copy of input and output",
            seconds=tuple(sum(usage.seconds for usage in turn.stages.values()) for turn in turns),
            baseline_seconds=tuple(turn.copied.seconds for turn in turns),
            bar=_DAY_BAR if size_bytes >= _FULL_BYTES else None,
            extra={f"{stage}_seconds": usage.seconds for stage, usage in turns[-1].stages.items()},
        ),
        Measurement(
            name=f"gate_{suffix}_cpu",
            what=f"gate {what}: CPU of all processes",
            baseline="build of the same day",
            seconds=tuple(usage.cpu_seconds for usage in gates),
            baseline_seconds=tuple(usage.cpu_seconds for usage in builds),
            bar=_GATE_BAR if size_bytes >= _GATE_BAR_BYTES else None,
        ),
        Measurement(
            name=f"gate_{suffix}_peak",
            what=f"gate {what}: most memory of its process",
            baseline=f"{_GATE_LIMIT_BYTES / 1e9:g} GB",
            seconds=tuple(float(usage.peak_bytes["python"]) for usage in gates),
            baseline_seconds=(float(_GATE_LIMIT_BYTES),),
            bar=1.0,
            unit="bytes",
        ),
    ]


def _sql_latency(warehouse: Path) -> Measurement:
    """Ask one query of a warehouse and open one of its tables, in turns."""
    opened = Warehouse.at(str(warehouse)).published(QUEUE_ASSIGNMENT)
    ours = ["ledger", "sql", "--warehouse", str(warehouse), _QUERY]
    turns = [(run(ours), run(["python", "-c", _OPEN, opened])) for _ in range(_QUERY_COUNT)]
    return Measurement(
        name="sql_latency_cpu",
        what=f"ledger sql, a count of {_row_count(opened):,} rows: CPU",
        baseline="import duckdb, pyarrow, deltalake; open one table",
        seconds=tuple(answered.cpu_seconds for answered, _ in turns),
        baseline_seconds=tuple(plain.cpu_seconds for _, plain in turns),
        bar=_QUERY_BAR,
        extra={"clock_seconds": min(answered.seconds for answered, _ in turns)},
    )


def _warehouse(folder: Path) -> Path:
    return folder / "warehouse"


def _published(warehouse: Path) -> dict[str, str]:
    """Return name -> place of each table that is there."""
    places = {
        table.qualified_name: Warehouse.at(str(warehouse)).published(table) for table in PUBLISHED_TABLES
    }
    return {name: place for name, place in places.items() if Path(place).exists()}


def _row_count(place: str) -> int:
    return int(DeltaTable(place).to_pyarrow_dataset().count_rows())


def _copy(folder: Path) -> None:
    """Copy export and tables by Spark, with the settings that a build of this size has."""
    manifest = manifest_of(folder)
    size_bytes = manifest.size_bytes
    directory, target = export_directory(folder / "exports", CLUSTER, DS), folder / "copy"
    spark = spark_session("bench: plain copy", size_bytes)
    with suited_to(spark, size_bytes):
        lines = spark.read.text([str(directory / file.path) for file in manifest.envelope_files])
        lines.write.parquet(str(target / "export"))
        for name, place in _published(_warehouse(folder)).items():
            spark.read.format("delta").load(place).write.format("delta").save(str(target / name))
    spark.stop()


def _by_hand(place: Path, repetitions: int, size: Size) -> None:
    """Measure one size, and write each figure with its ratio."""
    for one in measure(sizes=[size], repetitions=repetitions, folder=place):
        ours, beside = (
            ", ".join(f"{figure:,.2f}" for figure in figures)
            for figures in (one.seconds, one.baseline_seconds)
        )
        sys.stdout.write(f"{one.name:35} {ours} beside {beside} {one.unit}: {one.ratio:.2f}{os.linesep}")
        for key, value in one.extra.items():
            sys.stdout.write(f"    {key:31} {value:,.2f}{os.linesep}")


if __name__ == "__main__":
    # By hand, one size: python -m bench.whole_day FOLDER REPETITIONS BROKERS TOPICS GROUPS CLIENTS
    if sys.argv[1] == "copy":
        _copy(Path(sys.argv[2]))
    else:
        wanted_repetitions, *counts = map(int, sys.argv[2:])
        _by_hand(Path(sys.argv[1]), wanted_repetitions, Size(*counts))
