"""Progress of a day: one log record for each table and for the gate's metrics, and a heartbeat between them.

Belongs here: the logger, the form and the number of its records. Does not belong here: the output of records
(`spark_jobs.day_job`, `rebalance_ledger.cli.build_progress`).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import IO, TYPE_CHECKING, Final

from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, SILVER_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGGER: Final = logging.getLogger("rebalance_ledger.build")

RECORD_COUNT: Final = len(SILVER_TABLES) + len(COMPUTED_GOLD_TABLES)
"""Number of records of a build."""

HEARTBEAT_INTERVAL_S: Final = 20.0


class Work:
    """One piece of work that is logged.

    Attributes:
        row_count: Rows that it has written; None if they are not counted.
    """

    def __init__(self) -> None:
        self.row_count: int | None = None


class _Registry:
    """The current pieces of work, and the time of the newest record."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._names: Counter[str] = Counter()
        self.newest_record_s = time.monotonic()

    def change(self, name: str, by: int) -> None:
        with self._lock:
            self._names[name] += by

    def names(self) -> list[str]:
        with self._lock:
            return sorted(+self._names)


_registry: Final = _Registry()


@contextmanager
def logged(name: str) -> Iterator[Work]:
    """Log name, rows and duration of a piece of work when the block ends without an error."""
    work = Work()
    begin = time.monotonic()
    _registry.change(name, +1)
    try:
        yield work
    finally:
        _registry.change(name, -1)
    rows = "" if work.row_count is None else f"{work.row_count} {'row' if work.row_count == 1 else 'rows'}, "
    LOGGER.info("%s: %s%.1f s", name, rows, time.monotonic() - begin)
    _registry.newest_record_s = time.monotonic()


@contextmanager
def logged_to(stream: IO[str]) -> Iterator[None]:
    """Write the records only to a stream, for the duration of the block."""
    handler = logging.StreamHandler(stream)
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)


@contextmanager
def heartbeat(interval_s: float = HEARTBEAT_INTERVAL_S) -> Iterator[None]:
    """Log the current work whenever no record was logged for an interval.

    Args:
        interval_s: Length of the interval in seconds.
    """
    is_over = Event()
    begin = _registry.newest_record_s = time.monotonic()

    def beat() -> None:
        while not is_over.wait(max(0.0, _registry.newest_record_s + interval_s - time.monotonic())):
            now = time.monotonic()
            if now - _registry.newest_record_s >= interval_s:
                names = ", ".join(_registry.names()) or "between two tables"
                LOGGER.info("still at work after %.0f s: %s", now - begin, names)
                _registry.newest_record_s = now

    thread = Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
