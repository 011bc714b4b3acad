"""Concurrent runs, abandoned runs that resume, and input or machines that fail during a run."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.real_cluster.processes import descendants, wait_until
from tests.support.fault_injection import Strike
from tests.support.ledger_process import CLUSTER, MONDAY, TUESDAY

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.support.ledger_process import Days

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200)]

TIMEOUT_S = 300
ROOT = Path(__file__).resolve().parents[2]
_WRITE = "spark_jobs.staging:write_table"


def ends(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, output = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, output


def is_stopped(process: subprocess.Popen[str]) -> Callable[[], str | None]:
    own = psutil.Process(process.pid)
    return lambda: None if own.status() == psutil.STATUS_STOPPED else f"{own.pid} is {own.status()}"


def test_two_concurrent_runs_of_one_day_both_succeed(days: Days, tmp_path: Path) -> None:
    ledger = days.monday.copied_to(tmp_path)
    both = [ledger.start("run") for _ in range(2)]
    assert [ends(process)[0] for process in both] == [0, 0]
    assert ledger.fingerprint() == days.contents[1]


def test_concurrent_runs_of_an_old_day_and_today_do_not_affect_each_other(days: Days, tmp_path: Path) -> None:
    ledger = days.monday.copied_to(tmp_path)
    both = [ledger.start("run", ds=ds) for ds in (MONDAY, TUESDAY)]
    assert [ends(process)[0] for process in both] == [0, 0]
    assert ledger.fingerprint() == days.contents[1]


@pytest.mark.parametrize(
    "strike",
    [
        Strike(_WRITE, 2, "after", "stop"),
        Strike("spark_jobs.staged_day:finish", 1, "before", "stop"),
        Strike("rebalance_ledger.pipeline.steps:publish", 1, "before", "stop"),
    ],
    ids=str,
)
def test_a_zombie_run_that_resumes_after_its_retry_has_published_changes_nothing(
    days: Days, tmp_path: Path, strike: Strike
) -> None:
    ledger = days.monday.copied_to(tmp_path)
    zombie = ledger.start("run", strike=strike)
    wait_until(is_stopped(zombie), TIMEOUT_S)
    ledger.run("run")
    assert ledger.fingerprint() == days.contents[1]

    zombie.send_signal(signal.SIGCONT)

    code, output = ends(zombie)
    assert code == 0, output
    assert ledger.fingerprint() == days.contents[1]
    ledger.run("run")
    assert ledger.fingerprint() == days.contents[1]


def test_a_zombie_run_with_a_replaced_export_publishes_nothing(days: Days, tmp_path: Path) -> None:
    ledger = days.monday.copied_to(tmp_path)
    old = ledger.with_another_tuesday(tmp_path)
    zombie = old.start("run", strike=Strike("spark_jobs.staged_day:check_unchanged", 1, "before", "stop"))
    wait_until(is_stopped(zombie), TIMEOUT_S)
    # The export is uploaded again, and the day runs from the new one.
    landed = old.exports / CLUSTER / str(TUESDAY)
    shutil.rmtree(landed)
    shutil.copytree(ledger.exports / CLUSTER / str(TUESDAY), landed)
    replace(old, settings=ledger.settings).run("run")
    assert ledger.fingerprint() == days.contents[1]

    zombie.send_signal(signal.SIGCONT)

    code, output = ends(zombie)
    assert code == 2, output
    assert ledger.fingerprint() == days.contents[1]


def test_an_export_that_changes_while_it_is_read_is_named_and_nothing_is_published(
    days: Days, tmp_path: Path
) -> None:
    ledger = days.monday.copied_to(tmp_path)
    exports = tmp_path / "exports"
    shutil.copytree(ledger.exports, exports)
    own = replace(ledger, exports=exports)
    file = exports / CLUSTER / str(TUESDAY) / "nameserver_routes.jsonl"
    whole = file.read_bytes()

    output = own.run("run", strike=Strike(_WRITE, 2, "after", "spoil", str(file)), expect=2)

    assert "nameserver_routes.jsonl" in output
    assert ledger.fingerprint() == days.contents[0]
    assert "no whole stage" in own.run("step", "gate", expect=2)
    file.write_bytes(whole)
    own.run("run")
    assert ledger.fingerprint() == days.contents[1]


def test_a_killed_jvm_is_a_crash_and_the_next_run_succeeds(days: Days, tmp_path: Path) -> None:
    ledger = days.monday.copied_to(tmp_path)
    run = ledger.start("run", strike=Strike(_WRITE, 2, "after", "stop"))
    wait_until(is_stopped(run), TIMEOUT_S)
    for jvm in descendants(run.pid, "SparkSubmit"):
        jvm.kill()
    run.send_signal(signal.SIGCONT)
    code, output = ends(run)
    assert code == 1, output
    assert ledger.fingerprint() == days.contents[0]
    ledger.run("run")
    assert ledger.fingerprint() == days.contents[1]


def test_a_lost_executor_costs_time_and_no_row(days: Days, tmp_path: Path) -> None:
    """Two executors run in separate processes, as on a cluster; one is killed during the run."""
    ledger = days.monday.copied_to(tmp_path)
    run = ledger.start("run", strike=Strike(_WRITE, 2, "after", "stop"), **_two_executors(tmp_path))
    wait_until(is_stopped(run), TIMEOUT_S)
    executors = descendants(run.pid, "CoarseGrainedExecutorBackend")
    assert len(executors) == 2
    executors[0].kill()
    run.send_signal(signal.SIGCONT)
    code, output = ends(run)
    assert code == 0, output
    assert ledger.fingerprint() == days.contents[1]


def _two_executors(folder: Path) -> dict[str, str]:
    """Return Spark's configuration with a master that starts two executors of one core each."""
    own = Path(os.environ.get("SPARK_CONF_DIR", str(ROOT / ".local" / "spark-conf")))
    conf = folder / "spark-conf"
    shutil.copytree(own, conf)
    with (conf / "spark-defaults.conf").open("a") as settings:
        settings.write("\nspark.master local-cluster[2,1,1024]\n")
    return {"SPARK_CONF_DIR": str(conf)}


def test_a_publisher_that_is_suspended_is_waited_for(days: Days, tmp_path: Path) -> None:
    ledger = days.judged.copied_to(tmp_path)
    slow = ledger.start(
        "step",
        "publish",
        strike=Strike("rebalance_ledger.warehouse.commits:replace_day", 4, "after", "stop"),
    )
    wait_until(is_stopped(slow), TIMEOUT_S)
    second = ledger.start("step", "publish")
    assert ledger.fingerprint() == days.contents[0]
    slow.send_signal(signal.SIGCONT)
    assert [ends(process)[0] for process in (slow, second)] == [0, 0]
    assert ledger.fingerprint() == days.contents[1]
