"""Progress that a build logs."""

from __future__ import annotations

import logging
from queue import SimpleQueue

from rebalance_ledger.progress import LOGGER, heartbeat, logged


class Lines(logging.Handler):
    """A handler that records the messages of a logger in order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: SimpleQueue[str] = SimpleQueue()

    def emit(self, record: logging.LogRecord) -> None:
        self.queue.put(record.getMessage())


def test_a_table_that_takes_long_is_named_until_it_is_done() -> None:
    lines = Lines()
    LOGGER.addHandler(lines)
    LOGGER.setLevel(logging.INFO)
    try:
        with heartbeat(interval_s=0.05), logged("gold.finding") as work:
            first, second = (lines.queue.get(timeout=30) for _ in range(2))
            work.row_count = 12
        assert first.startswith("still at work after 0 s: gold.finding")
        assert second.startswith("still at work after 0 s: gold.finding")
        rest = []
        while not lines.queue.empty():
            rest.append(lines.queue.get())
        assert any(line.startswith("gold.finding: 12 rows, ") for line in rest)
    finally:
        LOGGER.removeHandler(lines)
