"""Ctrl-C, and a time limit that holds, for commands that only read.

While an engine runs a statement, Python does not handle signals, so a separate thread waits for the signal and ends the process. This is
safe, because such a command writes nothing.

Belongs here: ending the process. Does not belong here: asking duckdb to stop (`rebalance_ledger.warehouse.query`).
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C: 128 plus the number of the signal, as in shells."""

INTERRUPTED_SENTENCE: Final = "Interrupted; the same command can be run again."

_TIMED_OUT: Final = 2
_STOP: Final = b"\0"


@contextmanager
def ended_at_once(after_s: float | None, late_sentence: str) -> Iterator[None]:
    """End the process on Ctrl-C and after a time limit, even if an engine is running.

    A process that ignores the signal (`nohup`) continues to ignore it.

    Args:
        after_s: Time limit in seconds; None for no limit.
        late_sentence: Last line on standard error after the time limit.
    """
    if current_thread() is not main_thread():  # Only the main thread may set what a signal does.
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    # Python's own handler waits until the engine returns; this descriptor gets the signal's number at once.
    previous_fd = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    previous = signal.SIG_IGN if is_ignored else signal.signal(signal.SIGINT, lambda *_: None)

    def watch() -> None:
        while True:
            if not select.select([reader], [], [], after_s)[0]:
                _end(late_sentence, _TIMED_OUT)
            received = os.read(reader, 1)
            if received == _STOP:
                return
            if received[0] == signal.SIGINT:
                _end(INTERRUPTED_SENTENCE, INTERRUPTED)

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        os.write(writer, _STOP)
        watcher.join()
        if not is_ignored:
            signal.signal(signal.SIGINT, previous)
        signal.set_wakeup_fd(previous_fd)
        os.close(reader)
        os.close(writer)


def _end(sentence: str, exit_code: int) -> None:
    """End the process immediately, without exit handlers, because the main thread may hold a lock."""
    # A terminal shows `^C` at the start of the line.
    line = f"\n{sentence}\n" if sys.stderr.isatty() else f"{sentence}\n"
    os.write(2, line.encode())
    os._exit(exit_code)
