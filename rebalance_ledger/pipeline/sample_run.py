"""Runs the daily ledger for every bundled day through Airflow and shows how it goes: `make run`.

Belongs here: driving `dag.test()`, the progress lines, and how a failed step is reported. Does not belong here: what
the steps do (they are the DAG's) and any set-up (see `setup/`).

One process for all days, because importing Airflow costs more than most steps. It is the same DAG file that the
scheduler runs; only retries are off, since somebody is watching and wants the first error at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.listener import get_listener_manager
from pluggy import HookimplMarker

from rebalance_ledger.pipeline.processes import RunningElsewhereError, begin_run, end_children

if TYPE_CHECKING:
    from types import FrameType

    from airflow.sdk import DAG

DAG_ID = "queue_ledger"
CRASHED, BAD_INPUT, REFUSED = 1, 2, 3
_KILLED_BY = 128  # what shells add to the signal's number
_WHAT_TO_DO = {
    CRASHED: "Run the same command again; what is published stays, and a day is published whole or not at all.",
    BAD_INPUT: "Fix the problem named above and run the same command again.",
    REFUSED: "The published tables are unchanged, and the staged day is kept for inspection.",
}
_TRY_NEXT = """
Try next:
  .venv/bin/ledger tables
  .venv/bin/ledger sql "SELECT consumer_group, topic, strategy, max_over_mean FROM assignment_fairness
      WHERE ds = DATE '{ds}' AND is_effective ORDER BY max_over_mean DESC LIMIT 5"
  make airflow"""
_hook = HookimplMarker("airflow")


class UnusableError(Exception):
    """The run cannot start; the message is one sentence."""


class Progress:
    """A listener of Airflow's that turns the life of each task into one line on the terminal.

    Args:
        terminal: Where people look; Airflow's own output goes elsewhere.
    """

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal = terminal
        self._begin = 0.0
        self.failed_step: str | None = None
        self.error: BaseException | str | None = None

    def say(self, text: str, end: str = "\n") -> None:
        """Print at once, also into a pipe."""
        self._terminal.write(f"{text}{end}")
        self._terminal.flush()

    def running(self, task_instance: Any) -> None:  # noqa: ANN401  # Airflow has two unrelated classes for it
        """Name the step and what it does."""
        self._begin = time.monotonic()
        task = task_instance.task
        what = (task.doc_md or "").split(". ")[0].strip().rstrip(".")
        self.say(f"  {getattr(task, 'cluster', ''):<12} {_short(task.task_id):<14} {what} … ", end="")

    def success(self) -> None:
        """End the step's line with its time."""
        self.say(f"{time.monotonic() - self._begin:.1f} s")

    def failed(self, task_instance: Any, error: BaseException | str | None) -> None:  # noqa: ANN401  # as above
        """Keep the first failure; what follows from it is of no interest."""
        self.say("failed")
        if self.failed_step is None:
            cluster = getattr(task_instance.task, "cluster", None)
            step = _short(task_instance.task_id)
            self.failed_step = f"{step} of {cluster}" if cluster else step
            self.error = error


def _short(task_id: str) -> str:
    return task_id.rpartition(".")[2]


def main() -> int:
    """Run every day that has a folder among the exports, in order.

    Returns:
        0, or the exit code of the stage that failed: 1 crash, 2 bad input, 3 refused by the gate.
    """
    root = Path(os.environ["LEDGER_ROOT"])
    exports = Path(os.environ["LEDGER_EXPORTS"])
    log = root / ".local" / "logs" / "run.log"
    try:
        lock = begin_run(root)
        days = _days(exports)
    except (RunningElsewhereError, UnusableError) as error:
        sys.stderr.write(f"{error}\n")
        return BAD_INPUT
    with lock, _output_goes_to(log) as terminal:
        _end_when_told(terminal)
        progress = Progress(terminal)
        _listen(progress, terminal)
        return _run(days, progress, log)


def _run(days: list[date], progress: Progress, log: Path) -> int:
    begin = time.monotonic()
    progress.say(f"The ledger of {len(days)} days, through Airflow (log: {_from_here(log)})")
    dag = _load_dag()
    for day in days:
        day_begin = time.monotonic()
        progress.say(f"{day}")
        # At noon: the same day, but not the scheduler's own run of it, which a backfill would then not repeat.
        run = dag.test(logical_date=datetime(day.year, day.month, day.day, 12, tzinfo=UTC))
        if run.state != "success":
            return _tell_failure(progress, day, log)
        progress.say(f"  {day} took {time.monotonic() - day_begin:.1f} s")
    progress.say(f"{len(days)} days in {time.monotonic() - begin:.1f} s\n")
    return _close(progress, days[-1])


def _tell_failure(progress: Progress, day: date, log: Path) -> int:
    code = getattr(progress.error, "exit_code", CRASHED)
    progress.say(f"\n{progress.failed_step or 'A step'} failed for {day} (exit code {code}).")
    why = str(progress.error or "Airflow gave no reason.").replace("\n", "\n         ")
    progress.say(f"  why:   {why}")
    progress.say(f"  to do: {_WHAT_TO_DO[code]}")
    progress.say(f"  log:   {_from_here(log)}")
    return int(code)


def _close(progress: Progress, last_day: date) -> int:
    summary = subprocess.run(  # noqa: S603  # an argument list, never a shell
        ["ledger", "summary", f"--warehouse={os.environ['LEDGER_WAREHOUSE']}"],  # noqa: S607  # .venv/bin comes first
        capture_output=True,
        text=True,
        check=False,
    )
    progress.say(summary.stdout, end="")
    if summary.returncode != 0:
        progress.say(f"The days are published, but their summary failed: {summary.stderr.strip()}")
        return summary.returncode
    progress.say(_TRY_NEXT.format(ds=last_day))
    return 0


def _days(exports: Path) -> list[date]:
    """Every UTC day that some cluster has a folder for."""
    found = set()
    for folder in exports.glob("*/*/"):
        try:
            found.add(date.fromisoformat(folder.name))
        except ValueError:
            continue
    if not found:
        raise UnusableError(
            f"{exports} holds no day; LEDGER_EXPORTS must name a folder with <cluster>/<YYYY-MM-DD> below."
        )
    return sorted(found)


def _load_dag() -> DAG:
    bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    if bag.import_errors:
        raise RuntimeError(f"The DAG cannot be imported: {bag.import_errors}")
    dag: DAG = bag.dags[DAG_ID]
    for task in dag.tasks:
        task.retries = 0
    return dag


def _listen(progress: Progress, terminal: IO[str]) -> None:
    class Listener:
        @_hook
        def on_task_instance_running(self, task_instance: Any) -> None:  # noqa: ANN401  # as in Progress
            _end_when_told(terminal)  # Airflow puts a handler of its own for SIGTERM when a task starts
            progress.running(task_instance)

        @_hook
        def on_task_instance_success(self) -> None:
            progress.success()

        @_hook
        def on_task_instance_failed(self, task_instance: Any, error: BaseException | str | None) -> None:  # noqa: ANN401
            progress.failed(task_instance, error)

    get_listener_manager().add_listener(Listener())  # type: ignore[no-untyped-call]  # pluggy's


def _output_goes_to(log: Path) -> IO[str]:
    """Send this process's output, and its children's, to the log, and give back the terminal.

    Done on the file descriptors, because Airflow's logging writes to whatever standard output is.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    terminal = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(target, sys.stdout.fileno())
    os.dup2(target, sys.stderr.fileno())
    os.close(target)
    return terminal


def _end_when_told(terminal: IO[str]) -> None:
    """On Ctrl-C or SIGTERM end at once; a run can be taken up again from any point, so there is nothing to tidy."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        del frame
        end_children()
        os.write(terminal.fileno(), b"\nInterrupted. The same command takes it up again.\n")
        os._exit(_KILLED_BY + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


if __name__ == "__main__":
    sys.exit(main())
