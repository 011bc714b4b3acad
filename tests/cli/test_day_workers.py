"""Days that one Spark application computes in sequence equal days that are computed alone."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from datetime import date
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from rebalance_ledger.cli.day_worker import Text
from rebalance_ledger.cli.interruption import INTERRUPTED, INTERRUPTED_SENTENCE
from rebalance_ledger.driver_options import LARGE_EXPORT_BYTES, SIDE_BY_SIDE_BYTES
from rebalance_ledger.exports.sealing import seal
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.pipeline.day_workers import (
    RECORD_MARK,
    DayWorker,
    WorkerLimits,
)
from rebalance_ledger.pipeline.processes import is_alive
from rebalance_ledger.warehouse.fingerprint import fingerprint
from rebalance_ledger.warehouse.layout import Warehouse
from tests.conftest import SAMPLE_DAYS
from tests.real_cluster.processes import wait_until
from tests.support.computed_days import ROOT, SAMPLE_EXPORTS, SETTINGS_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from rebalance_ledger.warehouse.fingerprint import TableDay

CLUSTER = "shop-prod"
MONDAY, TUESDAY, WEDNESDAY = SAMPLE_DAYS
SUNDAY = date(2026, 11, 15)


class Batch:
    """Days of the sample and a worker for them.

    Attributes:
        lines: The worker's messages for the user.
        worker: The worker.
    """

    def __init__(self, folder: Path) -> None:
        self.exports = folder / "exports"
        shutil.copytree(SAMPLE_EXPORTS / CLUSTER, self.exports / CLUSTER)
        self.warehouse = Warehouse.at(str(folder / "warehouse"))
        self.lines: list[str] = []
        self.log = folder / "log"
        self.worker = DayWorker(self.day(MONDAY), self.log, self.lines.append)

    def day(self, ds: date) -> Day:
        return Day(CLUSTER, ds, self.exports, self.warehouse, SETTINGS_FILE)

    def run(self, ds: date, ahead: Sequence[date] = ()) -> int:
        return self.worker.run(self.day(ds), 0, [(self.day(later), 0) for later in ahead]).exit_code

    @property
    def tables(self) -> list[TableDay]:
        return list(fingerprint(self.warehouse.root, CLUSTER))


def spoil(export: Path) -> None:
    """Damage a file of a sealed export."""
    with (export / "nameserver_routes.jsonl").open("ab") as file:
        file.write(b"{}\n")


def land_again(export: Path) -> None:
    """Add a line to an export, and seal it again."""
    routes = export / "nameserver_routes.jsonl"
    lines = routes.read_bytes().splitlines(keepends=True)
    routes.write_bytes(b"".join([*lines, lines[-1]]))
    seal(export, replace=True)


@pytest.mark.e2e
@pytest.mark.spark
def test_days_of_a_batch_with_a_bad_export_and_a_killed_worker_equal_days_computed_alone(
    tmp_path: Path, sample_warehouse: Warehouse
) -> None:
    batch = Batch(tmp_path)
    shutil.copytree(batch.exports / CLUSTER / str(MONDAY), batch.exports / CLUSTER / str(SUNDAY))
    spoil(batch.exports / CLUSTER / str(SUNDAY))

    with batch.worker as worker:
        assert batch.run(SUNDAY) == 2
        assert batch.run(MONDAY, ahead=[TUESDAY]) == 0
        first_pid = worker.pid
        assert first_pid is not None
        jvms = psutil.Process(first_pid).children(recursive=True)
        psutil.Process(first_pid).kill()
        assert batch.run(TUESDAY) == 0, batch.lines
        assert worker.pid != first_pid

    assert any(
        line.startswith("The worker failed (its process ended with signal SIGKILL") for line in batch.lines
    )
    psutil.wait_procs(jvms, timeout=60)
    assert not any(map(is_alive, jvms))
    alone = fingerprint(sample_warehouse.root, CLUSTER)
    assert batch.tables == [table for table in alone if table.ds in {MONDAY, TUESDAY}]
    # The killed worker had also computed Tuesday. Nothing of that computation remains.
    attempts = [path for path in Path(batch.warehouse.attempts(CLUSTER, TUESDAY)).iterdir() if path.is_dir()]
    assert len(attempts) == 1


@pytest.mark.e2e
@pytest.mark.nightly
@pytest.mark.spark
def test_an_export_that_changes_during_the_read_fails_only_its_day_and_workers_have_a_limit(
    tmp_path: Path, sample_warehouse: Warehouse
) -> None:
    batch = Batch(tmp_path)
    sunday, changed = (batch.exports / CLUSTER / str(ds) for ds in (SUNDAY, TUESDAY))
    shutil.copytree(changed, sunday)
    verified_count = 0

    def change_the_second(line: str) -> None:
        nonlocal verified_count
        verified_count += line.startswith("verify the export")
        if line.startswith("verify the export") and verified_count == 2:
            while batch.log.read_text().count("silver.broker: ") < 2:
                assert worker.pid is not None
                assert is_alive(psutil.Process(worker.pid))
            land_again(changed)

    with DayWorker(batch.day(MONDAY), batch.log, change_the_second, WorkerLimits(days=2)) as worker:
        monday = worker.run(batch.day(MONDAY), 0)
        first_pid = worker.pid
        tuesday = worker.run(batch.day(TUESDAY), 0)
        assert worker.pid == first_pid
        shutil.rmtree(changed)
        sunday.rename(changed)
        again = worker.run(batch.day(TUESDAY), 0)
        assert worker.pid != first_pid
    assert (monday.exit_code, tuesday.exit_code, again.exit_code) == (0, 2, 0)
    assert "The export was landed again while it was read" in tuesday.reason
    assert batch.tables == [
        table for table in fingerprint(sample_warehouse.root, CLUSTER) if table.ds in {MONDAY, TUESDAY}
    ]


def test_a_worker_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    batch = Batch(tmp_path)
    spoil(batch.exports / CLUSTER / str(MONDAY))
    with batch.worker as worker:
        assert batch.run(MONDAY) == 2
        assert worker.pid is not None
        process = psutil.Process(worker.pid)
    assert not is_alive(process)


# Tests that run in the background ignore SIGINT, and their processes would inherit that.
_INTERRUPTIBLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from rebalance_ledger.cli.app import main
sys.argv = ["ledger", *sys.argv[1:]]
main()
"""


def _name(process: psutil.Process) -> str:
    """Return the name of a process, or an empty string if it has just ended."""
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""


def family_of_interrupted(*command: str, warehouse: Path, staged: str | None = None) -> list[psutil.Process]:
    """Interrupt a command as soon as it has started a JVM, and staged a table; return its child processes after it has ended."""
    places = (f"--cluster={CLUSTER}", f"--exports={SAMPLE_EXPORTS}", f"--warehouse={warehouse}")
    with subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTIBLE, *command, *places], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        family: list[psutil.Process] = []
        while not any(_name(child) == "java" for child in family):
            assert process.poll() is None
            family = psutil.Process(process.pid).children(recursive=True)
        while staged is not None and not any(warehouse.rglob(staged)):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        written = process.stderr.read()
    assert process.returncode == INTERRUPTED
    assert written.endswith(f"\n{INTERRUPTED_SENTENCE}\n")
    assert "Traceback" not in written
    return family


@pytest.mark.spark
def test_ctrl_c_while_the_jvm_starts_ends_a_run_and_the_jvm(tmp_path: Path) -> None:
    family = family_of_interrupted("run", f"--ds={MONDAY}", warehouse=tmp_path / "warehouse")
    wait_until(lambda: f"{family} are alive" if any(map(is_alive, family)) else None, 30)


@pytest.mark.spark
def test_ctrl_c_during_the_queries_of_a_build_ends_a_run_and_the_jvm(tmp_path: Path) -> None:
    family = family_of_interrupted(
        "run", f"--ds={MONDAY}", warehouse=tmp_path / "warehouse", staged="consumer_client*"
    )
    wait_until(lambda: f"{family} are alive" if any(map(is_alive, family)) else None, 30)


@pytest.mark.spark
def test_ctrl_c_ends_a_backfill_with_its_worker_and_jvm(tmp_path: Path) -> None:
    days = (f"--from={MONDAY}", f"--to={WEDNESDAY}")
    family = family_of_interrupted("backfill", *days, warehouse=tmp_path / "warehouse")
    assert not any(map(is_alive, family))


@pytest.mark.spark
def test_a_day_leaves_nothing_in_the_spark_session(spark: SparkSession, sample_warehouse: Warehouse) -> None:
    del sample_warehouse  # This fixture computed three days.
    views = [row["viewName"] for row in spark.sql("SHOW VIEWS").collect() if row["isTemporary"]]
    assert [name for name in views if name.startswith(("silver_", "gold_", "baseline_"))] == []
    jsession = spark._jsparkSession  # PySpark has no other access to the cache
    assert jsession.sharedState().cacheManager().isEmpty()
    # Delta keeps the files of a table that it has read, and removes them itself.
    kept = [str(rdd.name()) for rdd in spark.sparkContext._jsc.getPersistentRDDs().values()]
    assert [name for name in kept if not name.startswith("Delta Table State")] == []


@pytest.mark.parametrize(
    ("limits", "export_bytes"),
    [
        (WorkerLimits(days=2), (0, 0, 0)),
        (WorkerLimits(export_bytes=10), (4, 6, 1)),
        (WorkerLimits(), (0, 0, LARGE_EXPORT_BYTES)),
    ],
    ids=["days", "bytes", "a large export"],
)
def test_a_worker_is_replaced_at_its_limits(
    tmp_path: Path, limits: WorkerLimits, export_bytes: tuple[int, ...]
) -> None:
    batch = Batch(tmp_path)
    pids = []
    with DayWorker(batch.day(MONDAY), batch.log, batch.lines.append, limits) as worker:
        for ds, size in zip(SAMPLE_DAYS, export_bytes, strict=True):
            spoil(batch.exports / CLUSTER / str(ds))
            assert worker.run(batch.day(ds), size).exit_code == 2
            pids.append(worker.pid)
    assert pids[0] == pids[1] != pids[2]


@pytest.mark.parametrize(
    ("limits", "sizes", "last"),
    [
        (WorkerLimits(), (1, 1, 1), WEDNESDAY),
        (WorkerLimits(days=2), (1, 1, 1), TUESDAY),
        (WorkerLimits(), (1, SIDE_BY_SIDE_BYTES - 1, 1), TUESDAY),
        (WorkerLimits(export_bytes=2), (1, 1, 1), TUESDAY),
        (WorkerLimits(), (SIDE_BY_SIDE_BYTES, 1, 1), None),
    ],
    ids=["all", "days", "bytes side by side", "bytes", "a day of that size"],
)
def test_only_days_that_are_computed_in_parallel_are_announced(
    tmp_path: Path, limits: WorkerLimits, sizes: tuple[int, ...], last: date | None
) -> None:
    batch = Batch(tmp_path)
    spoil(batch.exports / CLUSTER / str(MONDAY))
    (_, first_bytes), *ahead = [(batch.day(ds), size) for ds, size in zip(SAMPLE_DAYS, sizes, strict=True)]
    with DayWorker(batch.day(MONDAY), batch.log, batch.lines.append, limits) as worker:
        assert worker.run(batch.day(MONDAY), first_bytes, ahead).exit_code == 2
    announced = [line for line in batch.lines if "side by side" in line]
    if last is None:
        assert announced == []
    else:
        count = SAMPLE_DAYS.index(last) + 1
        assert announced == [f"{count} days are computed side by side, to {CLUSTER} {last}."]


def test_a_cluster_name_cannot_be_mistaken_for_a_protocol_record() -> None:
    channel = StringIO()
    forged = f"\n{RECORD_MARK}{{}}\n"

    Text(channel).write(f"warning: {forged}")

    assert RECORD_MARK not in channel.getvalue()
    assert channel.getvalue().count("\n") == 2
