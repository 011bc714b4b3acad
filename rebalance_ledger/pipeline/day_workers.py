"""Worker processes that each run many days in one Spark application, and the requests to them.

A worker gets one JSON document as its argument, and reads one request per line from standard input, `{"days": [[cluster, ds], …]}`: the day to
run, and the following days, which are computed together with it. It writes text for people to standard output, and after each day one line
that begins with `RECORD_MARK`: the day's `DayResult` as JSON. It ends when its standard input is closed, also because its parent is killed.

Belongs here: starting and ending workers, and their limits. Does not belong here: running a day (`rebalance_ledger.cli.day_worker`), and
the choice of days (`rebalance_ledger.pipeline.backfill`).
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.driver_options import SIDE_BY_SIDE_BYTES, driver_options
from rebalance_ledger.pipeline.processes import end_in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import date
    from types import TracebackType
    from typing import Self

    from rebalance_ledger.pipeline.day import Day

RECORD_MARK: Final = "\x1e"
"""First character of a line with a record, as in RFC 7464; other lines are text for people."""

DAY_LIMIT: Final = 60
"""Largest number of days of a worker, because Spark's records of queries grow with it."""

BYTE_LIMIT: Final = 1_000_000_000
"""Largest size of the exports of a worker, except for a single day: after a large day, the JVM is as large as its heap allows."""

CRASHED: Final = 1
_BAD_INPUT: Final = 2

_MODULE: Final = "rebalance_ledger.cli.day_worker"
_ROOT: Final = Path(__file__).resolve().parents[2]


class DayResult(NamedTuple):
    """The result of running a day.

    Attributes:
        exit_code: Exit code of `ledger run` for the day.
        reason: Reason of an exit code other than 0.
    """

    exit_code: int
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """The limits of a worker, after which a new one replaces it.

    Attributes:
        days: Number of days.
        export_bytes: Size of their exports; a worker computes at least one day.
    """

    days: int = DAY_LIMIT
    export_bytes: int = BYTE_LIMIT


class DayWorker:
    """A runner of the days of one warehouse; it starts a worker for the first day and replaces it at its limits.

    If a worker dies, a new one computes the day again, unless it was the worker's first day, because memory that earlier days used must not
    fail a day that would succeed alone.
    """

    def __init__(
        self, any_day: Day, log: Path, write_line: Callable[[str], None], limits: WorkerLimits | None = None
    ) -> None:
        """Prepare; no process is started yet.

        Args:
            any_day: A day with the locations of exports and warehouse; its cluster and ds are not used.
            log: File for Spark's output.
            write_line: Called with each line of text.
            limits: Limits of each worker.
        """
        self._any_day = any_day
        self._log = log
        self._write_line = write_line
        self._limits = limits or WorkerLimits()
        self._process: subprocess.Popen[str] | None = None
        self._day_count = 0
        self._export_bytes = 0
        self._driver_options: dict[str, str] = {}
        self._computed: set[tuple[str, date]] = set()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the worker: immediately after an error or Ctrl-C, otherwise after it has closed its application."""
        del error, traceback
        self._end(is_urgent=error_type is not None)

    @property
    def pid(self) -> int | None:
        """The process id of the worker; None if there is none."""
        return None if self._process is None else self._process.pid

    def run(self, day: Day, export_bytes: int, ahead: Iterable[tuple[Day, int]] = ()) -> DayResult:
        """Run one day. Large and small exports have separate workers, because their JVMs need different options.

        Args:
            day: The day.
            export_bytes: Size of its export; 0 if there is no readable export.
            ahead: The following days, in order, with the sizes of their exports.
        """
        options = driver_options(export_bytes)
        if self._day_count and (
            self._day_count >= self._limits.days
            or self._export_bytes + export_bytes > self._limits.export_bytes
            or options != self._driver_options
        ):
            self._end(is_urgent=False)
        self._driver_options = options
        is_computed = (day.cluster, day.ds) in self._computed
        beside = [] if is_computed else list(self._beside(export_bytes, ahead))
        self._computed |= {(each.cluster, each.ds) for each in beside}
        is_alone = self._day_count == 0 and not beside
        if beside:
            self._write_line(
                f"{len(beside) + 1} days are computed side by side, to {beside[-1].cluster} {beside[-1].ds}."
            )
        result = self._ask(day, beside)
        self._day_count += 1
        self._export_bytes += export_bytes
        if result.exit_code == _BAD_INPUT:
            self._computed.clear()  # It may have failed before anything was computed.
        if result.exit_code == CRASHED:
            self._end(is_urgent=True)
            if not is_alone:
                self._write_line(f"The worker failed ({result.reason}); a new one computes the day again.")
                return self.run(day, export_bytes)
        return result

    def _beside(self, export_bytes: int, ahead: Iterable[tuple[Day, int]]) -> Iterator[Day]:
        """Yield the days that this worker computes side by side with one."""
        count, total_bytes = self._day_count + 1, export_bytes
        for day, size_bytes in ahead:
            count, total_bytes = count + 1, total_bytes + size_bytes
            if (
                count > self._limits.days
                or total_bytes > SIDE_BY_SIDE_BYTES
                or self._export_bytes + total_bytes > self._limits.export_bytes
            ):
                return
            yield day

    def _ask(self, day: Day, beside: Sequence[Day]) -> DayResult:
        process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("The worker was started without pipes.")
        try:
            days = [(each.cluster, each.ds.isoformat()) for each in (day, *beside)]
            process.stdin.write(json.dumps({"days": days}) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._death(process)
        for line in process.stdout:
            if line.startswith(RECORD_MARK):
                record = json.loads(line[len(RECORD_MARK) :])
                return DayResult(int(record["exit_code"]), str(record["reason"]))
            self._write_line(line.rstrip("\n"))
        return self._death(process)

    def _death(self, process: subprocess.Popen[str]) -> DayResult:
        code = process.wait()
        ending = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return DayResult(CRASHED, f"its process ended with {ending}; the output is in {self._log}")

    def _start(self) -> subprocess.Popen[str]:
        day = self._any_day
        places = {
            "exports": str(day.exports),
            "warehouse": day.warehouse.root,
            "settings": str(day.settings_file.resolve()) if day.settings_file else None,
            "log": str(self._log),
        }
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            # In a session of its own, so that Ctrl-C only reaches this process, which ends the worker and its JVM.
            self._process = subprocess.Popen(  # noqa: S603  # an argument list, never a shell
                [sys.executable, "-m", _MODULE, json.dumps(places)],
                cwd=_ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        return self._process

    def _end(self, *, is_urgent: bool) -> None:
        process, self._process = self._process, None
        self._day_count = self._export_bytes = 0
        self._computed.clear()
        if process is None:
            return
        if is_urgent:
            end_in_order([process.pid])
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
