"""The terminal during a build: a progress bar; Spark's output goes to a log file.

Belongs here: the bar and the redirection of stderr. Does not belong here: the records of the build (`rebalance_ledger.progress`).
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rebalance_ledger.cli.user_state import state_folder
from rebalance_ledger.warehouse.layout import path_segment
from rebalance_ledger.writable import why_file_not_writable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

_LOGS = Path(__file__).resolve().parents[2] / ".local" / "logs"


class _Bar(logging.Handler):
    """Advance a progress bar by one for each log record."""

    def __init__(self, progress: Progress, total: int) -> None:
        super().__init__()
        self._progress = progress
        self._task = progress.add_task("starting Spark", total=total)

    def emit(self, record: logging.LogRecord) -> None:
        self._progress.update(self._task, advance=1, description=record.getMessage().partition(":")[0])


def log_file(cluster: str, ds: date, *, program: str = "run") -> Path:
    """Return the file with the output of the newest build of a day by `ledger run`, or of a backfill that begins with it.

    It is in the checkout, or in the user's own folder (`user_state`) if only that can be written.
    """
    name = f"ledger-{program}-{path_segment(cluster)}-{ds}.log"
    state = state_folder()
    folders = [_LOGS] if state is None else [_LOGS, state / "logs"]
    files = [folder / name for folder in folders]
    return next((file for file in files if why_file_not_writable(file) is None), files[0])


@contextmanager
def build_progress(log: Path, logger: logging.Logger, record_count: int) -> Iterator[None]:
    """Show the records of a logger as a progress bar if stderr is a terminal, and send all other output to the log.

    The redirection is done on the file descriptor, because Spark's JVM writes to it.

    Args:
        log: File for the logger's records and the output to stderr; replaced if it exists.
        logger: Logger with one record for each piece of work.
        record_count: Expected number of records.

    Raises:
        OSError: If the log cannot be written.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    terminal = os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    os.dup2(target, 2)
    os.close(target)
    records = logging.FileHandler(log)
    logger.addHandler(records)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        with os.fdopen(os.dup(terminal), "w") as screen:
            console = Console(file=screen)
            columns = (
                TextColumn("  {task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
            )
            with Progress(
                *columns, console=console, transient=True, disable=not console.is_terminal
            ) as progress:
                bar = _Bar(progress, record_count)
                logger.addHandler(bar)
                try:
                    yield
                finally:
                    logger.removeHandler(bar)
    finally:
        logger.removeHandler(records)
        records.close()
        sys.stderr.flush()
        os.dup2(terminal, 2)
        os.close(terminal)
