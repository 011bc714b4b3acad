"""Run the daily ledger for every bundled day through Airflow, with progress on the terminal: `make run`.

Belongs here: driving `dag.test()`, the progress lines, and the report of a failed step. Does not belong here: the steps (the DAG) and the
set-up (`setup/`).

All days run in one process, because importing Airflow takes longer than most steps. The DAG file is that of the scheduler; only retries are
off, so that the first error appears immediately.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, Any, NoReturn

from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.listener import get_listener_manager
from pluggy import HookimplMarker

from rebalance_ledger.exports.manifest import ExportError, export_directory
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.pipeline.outdated import is_up_to_date
from rebalance_ledger.pipeline.processes import RunningElsewhereError, begin_run, end_children
from rebalance_ledger.progress import RECORD_COUNT
from rebalance_ledger.settings import SettingsError, load_cluster_names, load_settings
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.layout import Warehouse

if TYPE_CHECKING:
    from types import FrameType

    from airflow.sdk import DAG

DAG_ID = "cluster_ledger"
CRASHED, BAD_INPUT, REFUSED = 1, 2, 3
_KILLED_BY = 128  # shells add this to the number of the signal
_WHAT_TO_DO = {
    CRASHED: "Run the same command again; what is published stays, and a day is published whole or not at all.",
    BAD_INPUT: "Fix what the sentence above names and run the same command again.",
    REFUSED: "The published tables are as they were, and the staged day is kept for inspection.",
}
_TRY_NEXT = """
Try next:
  .venv/bin/ledger ask open_findings
  .venv/bin/ledger sql "SELECT consumer_group, topic, strategy, max_over_mean FROM assignment_fairness
      WHERE ds = DATE '{ds}' AND is_effective ORDER BY max_over_mean DESC LIMIT 5"
  make airflow"""
_BUILD_RECORD = re.compile(r"((?:silver|gold)\.\w+): (?:\d+ rows?, )?\d+\.\d s")
_REFRESH_INTERVAL_S = 1.0
_SAVE_CURSOR, _RESTORE_CURSOR, _CLEAR_TO_END_OF_LINE = "\x1b7", "\x1b8", "\x1b[K"
_hook = HookimplMarker("airflow")


class UnusableError(Exception):
    """The run cannot start; the message is one sentence."""


class Progress:
    """A listener of Airflow that shows each task as one line on the terminal.

    Args:
        terminal: The terminal or pipe of the user.
        log: File with the output of Airflow and of the steps.

    Attributes:
        cluster: Cluster of the current run.
        failed_step: The first failed step; None if no step has failed.
        error: Error of the failed step.
    """

    def __init__(self, terminal: IO[str], log: Path) -> None:
        self._terminal = terminal
        self._log = log
        self._begin = 0.0
        self._table_at_work: _TableAtWork | None = None
        self.cluster = ""
        self.failed_step: str | None = None
        self.error: BaseException | str | None = None

    def say(self, text: str, end: str = "\n") -> None:
        """Print and flush, so that a pipe gets the line immediately."""
        self._terminal.write(f"{text}{end}")
        self._terminal.flush()

    def running(self, task_instance: Any) -> None:  # noqa: ANN401  # Airflow has two unrelated classes for it
        """Print the step and its description."""
        self._begin = time.monotonic()
        task = task_instance.task
        what = (task.doc_md or "").split(". ")[0].strip().rstrip(".")
        line = f"  {self.cluster:<12} {task.task_id:<14} {what} … "
        self.say(line, end="")
        if self._terminal.isatty():
            self._table_at_work = _TableAtWork(self._terminal, self._log, len(line))

    def success(self) -> None:
        """End the step's line with its time."""
        self._end_line()
        self.say(f"{time.monotonic() - self._begin:.1f} s")

    def skipped(self) -> None:
        """End the line of a skipped step."""
        self._end_line()
        self.say("skipped")

    def failed(self, task_instance: Any, error: BaseException | str | None) -> None:  # noqa: ANN401  # as above
        """Keep the first failure, because later ones follow from it."""
        self._end_line()
        self.say("failed")
        if self.failed_step is None:
            self.failed_step = f"{task_instance.task_id} of {self.cluster}"
            self.error = error

    def _end_line(self) -> None:
        if self._table_at_work:
            self._table_at_work.close()
            self._table_at_work = None


class _TableAtWork:
    """A display of the newest table in the log, after the line of the running step, until it is closed.

    Args:
        terminal: A terminal that can save and restore the cursor.
        log: File to which the build writes a line for each table.
        column: Width of the step's line in cells; the rest of the terminal's width is used.
    """

    def __init__(self, terminal: IO[str], log: Path, column: int) -> None:
        self._terminal = terminal
        self._log = log
        self._cells = os.get_terminal_size(terminal.fileno()).columns - column - 1
        self._begin_bytes = log.stat().st_size
        self._is_over = Event()
        self._thread = Thread(target=self._refresh, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Clear the rest of the line."""
        self._is_over.set()
        self._thread.join()
        self._terminal.write(_CLEAR_TO_END_OF_LINE)

    def _refresh(self) -> None:
        while not self._is_over.wait(_REFRESH_INTERVAL_S):
            with self._log.open("rb") as log:
                log.seek(self._begin_bytes)
                names = _BUILD_RECORD.findall(log.read().decode(errors="replace"))
            if names:
                text = f"{len(names)}/{RECORD_COUNT} {names[-1]}"[: max(0, self._cells)]
                self._terminal.write(f"{_SAVE_CURSOR}{text}{_CLEAR_TO_END_OF_LINE}{_RESTORE_CURSOR}")
                self._terminal.flush()


def main() -> int:
    """Run every day that has a folder among the exports, in order.

    Returns:
        0, or the exit code of the failed step: 1 crash, 2 bad input, 3 refused by the gate.
    """
    root = Path(os.environ["LEDGER_ROOT"])
    exports = Path(os.environ["LEDGER_EXPORTS"])
    log = root / ".local" / "logs" / "run.log"
    try:
        lock = begin_run(root)
        days, clusters = _days(exports), _clusters()
    except (RunningElsewhereError, UnusableError) as error:
        sys.stderr.write(f"{error}\n")
        return BAD_INPUT
    with lock, _output_goes_to(log) as terminal:
        _end_on_signal(terminal)
        progress = Progress(terminal, log)
        _listen(progress, terminal)
        return _run(days, clusters, progress, log)


def _run(days: list[date], clusters: list[str], progress: Progress, log: Path) -> int:
    begin = time.monotonic()
    progress.say(f"The ledger of {len(days)} days, through Airflow (its output: {_from_here(log)})")
    _name_clusters_without_settings(progress)
    dag = _load_dag()
    is_forced = bool(os.environ.get("LEDGER_FORCE"))
    note = " (its build also stages the days after it)" if _stages_ahead() and not is_forced else ""
    for day in days:
        if not is_forced and _is_up_to_date(day):
            progress.say(
                f"{day} is published from this export, settings and code; LEDGER_FORCE=1 computes it again"
            )
            continue
        day_begin = time.monotonic()
        progress.say(f"{day}{note if day != days[-1] else ''}")
        note = ""
        for number, cluster in enumerate(clusters):
            progress.cluster = cluster
            # `dag.test` replaces the run of the same logical date, which therefore stands for one cluster and day.
            run = dag.test(
                logical_date=datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=number),
                # The first build stages all days, because starting Spark for each day takes longer than computing its rows.
                run_conf={
                    "cluster": cluster,
                    "ds": f"{day}",
                    "stage_through": f"{days[-1]}",
                    "force": is_forced,
                },
            )
            if run.state != "success":
                return _report_failure(progress, day, log)
        progress.say(f"  {day} took {time.monotonic() - day_begin:.1f} s")
    progress.say(f"{len(days)} days in {time.monotonic() - begin:.1f} s\n")
    return _close(progress, days[-1])


def _is_up_to_date(ds: date) -> bool:
    """Return whether the day is published from its export for every cluster of the settings that has one."""
    exports = Path(os.environ["LEDGER_EXPORTS"])
    settings_file = Path(os.environ["LEDGER_SETTINGS"])
    warehouse = Warehouse.at(os.environ["LEDGER_WAREHOUSE"])
    try:
        days = [
            Day(cluster, ds, exports, warehouse, settings_file)
            for cluster in load_settings(settings_file).clusters
            if export_directory(exports, cluster, ds).is_dir()
        ]
        return bool(days) and all(map(is_up_to_date, days))
    except (ExportError, QueryError, SettingsError):
        return False  # The run names what is wrong.


def _stages_ahead() -> bool:
    """Return whether a build also stages the following days."""
    return load_settings(Path(os.environ["LEDGER_SETTINGS"])).build.beside_landed


def _name_clusters_without_settings(progress: Progress) -> None:
    """Report clusters with exports that are not in the settings file, because the DAG does not run them."""
    exports, settings_file = Path(os.environ["LEDGER_EXPORTS"]), Path(os.environ["LEDGER_SETTINGS"])
    known = load_settings(settings_file).clusters
    folders = {manifest.parent.parent.name for manifest in exports.glob("*/*/manifest.json")}
    for name in sorted(folders - known.keys()):
        progress.say(
            f"{name} has exports in {exports} and is not in {settings_file}: add it under `clusters:` to run it."
        )


def _report_failure(progress: Progress, day: date, log: Path) -> int:
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
    """Return every UTC day for which at least one cluster has a folder."""
    clusters = set()
    for folder in exports.glob("*/*/"):
        try:
            clusters.add(date.fromisoformat(folder.name))
        except ValueError:
            continue
    if not clusters:
        raise UnusableError(
            f"{exports} holds no day; LEDGER_EXPORTS must name a folder with <cluster>/<YYYY-MM-DD> below."
        )
    return sorted(clusters)


def _clusters() -> list[str]:
    """Return the clusters of the settings file."""
    try:
        return load_cluster_names(Path(os.environ["LEDGER_SETTINGS"]))
    except SettingsError as error:
        raise UnusableError(str(error)) from error


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
            _end_on_signal(terminal)  # Airflow puts a handler of its own for SIGTERM when a task starts
            progress.running(task_instance)

        @_hook
        def on_task_instance_success(self) -> None:
            progress.success()

        @_hook
        def on_task_instance_skipped(self) -> None:
            progress.skipped()

        @_hook
        def on_task_instance_failed(self, task_instance: Any, error: BaseException | str | None) -> None:  # noqa: ANN401
            progress.failed(task_instance, error)

    get_listener_manager().add_listener(Listener())  # type: ignore[no-untyped-call]  # pluggy's


def _output_goes_to(log: Path) -> IO[str]:
    """Redirect the output of this process and its children to the log, and return the terminal.

    The file descriptors are redirected, because Airflow's logging writes to the standard output of the process.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    terminal = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(target, sys.stdout.fileno())
    os.dup2(target, sys.stderr.fileno())
    os.close(target)
    return terminal


def _end_on_signal(terminal: IO[str]) -> None:
    """End immediately on Ctrl-C or SIGTERM; no clean-up is needed, because a run can be continued from any point."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        del frame
        end_children()
        os.write(
            terminal.fileno(),
            b"\nInterrupted. The same command continues with the days that are not published.\n",
        )
        os._exit(_KILLED_BY + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


if __name__ == "__main__":
    sys.exit(main())
