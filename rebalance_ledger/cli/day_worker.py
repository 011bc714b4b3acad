"""`python -m rebalance_ledger.cli.day_worker`: run the days that `rebalance_ledger.pipeline.day_workers` requests.

Belongs here: the worker's side of the protocol. Does not belong here: the steps of a day (`day_run`).
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, TYPE_CHECKING, Any, Final, cast

from rich.console import Console

from rebalance_ledger.cli.console import end_process
from rebalance_ledger.cli.day_run import publish_day
from rebalance_ledger.cli.failures import CRASHED, logged_failure
from rebalance_ledger.pipeline import steps
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.pipeline.day_workers import RECORD_MARK, DayResult
from rebalance_ledger.printable import visible
from rebalance_ledger.progress import logged_to
from rebalance_ledger.storage.location import location_of
from rebalance_ledger.warehouse.layout import Warehouse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_LINE_WIDTH: Final = 200


class Text(io.TextIOBase):
    """Text for people on the stream of the records; a name from a cluster must not look like a record."""

    def __init__(self, channel: IO[str]) -> None:
        self._channel = channel

    def write(self, text: str) -> int:
        """Write text, with control characters that begin records made visible."""
        return self._channel.write(text.replace(RECORD_MARK, visible(RECORD_MARK)))

    def flush(self) -> None:
        """Flush the stream."""
        self._channel.flush()


def main() -> int:
    """Run days until standard input is closed; return 0."""
    places: dict[str, Any] = json.loads(sys.argv[1])
    channel = _take_standard_output()
    console = Console(file=cast("IO[str]", Text(channel)), highlight=False, markup=False, width=_LINE_WIDTH)
    with logged_to(sys.stderr), ExitStack() as applications:
        build: Callable[[Day, Sequence[Day]], None] | None = None

        def build_day(day: Day, ahead: Sequence[Day]) -> None:
            nonlocal build
            if build is None:  # A day without a usable export needs no JVM.
                build = applications.enter_context(
                    steps.spark_application("rebalance-ledger backfill", day, steps.export_bytes(day))
                )
            build(day, ahead)

        any_day = Day(
            "",
            date.min,
            location_of(places["exports"]),
            Warehouse.at(places["warehouse"]),
            Path(places["settings"]) if places["settings"] else None,
        )
        for request in _requests():
            day, *ahead = (
                replace(any_day, cluster=cluster, ds=date.fromisoformat(ds))
                for cluster, ds in request["days"]
            )
            result = _result_of(day, console, partial(build_day, day, ahead), Path(places["log"]))
            channel.write(f"{RECORD_MARK}{json.dumps(result._asdict())}\n")
            channel.flush()
    return 0


def _result_of(day: Day, console: Console, build: Callable[[], None], log: Path) -> DayResult:
    try:
        publish_day(day, console, build, build_log=log)
    except Exception as error:  # noqa: BLE001  # the worker tells every end of a day, and is replaced after a defect
        return DayResult(*logged_failure(error))
    return DayResult(0, "")


def _take_standard_output() -> IO[str]:
    """Return the stream to the parent process, and redirect all other output to standard output to the log."""
    channel = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return channel


def _requests() -> Iterator[dict[str, Any]]:
    """Yield the requests. If the parent dies, end the process immediately, even during a day, because a day can be run again."""
    requests: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
    is_idle = True

    def receive() -> None:
        for line in sys.stdin:
            requests.put(json.loads(line))
        if not is_idle:
            os._exit(CRASHED)
        requests.put(None)

    Thread(target=receive, daemon=True).start()
    while True:
        request = requests.get()
        if request is None:
            return
        is_idle = False
        yield request
        is_idle = True


if __name__ == "__main__":
    end_process(main())
