"""Ctrl-C, and a time limit that holds, for commands that only read and for builds.

While an engine runs a statement, Python does not handle signals, and a build would end its running queries first. So a separate thread waits
for the signal and ends the process. This is safe: such a command writes nothing, and the stage of a killed build is removed by the next one.

Belongs here: ending the process. Does not belong here: asking duckdb to stop (`rebalance_ledger.warehouse.query`).
"""

from __future__ import annotations

import os
import select
import signal
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
_SHOW_CURSOR: Final = "\x1b[?25h"


@contextmanager
def ended_at_once(after_s: float | None, late_sentence: str, *, is_line_open: bool = False) -> Iterator[None]:
    """End the process on Ctrl-C and after a time limit, even if an engine is running.

    A process that ignores the signal (`nohup`) continues to ignore it.

    Args:
        after_s: Time limit in seconds; None for no limit.
        late_sentence: Last line on standard error after the time limit.
        is_line_open: Whether the last line on standard error has no end yet.
    """
    if current_thread() is not main_thread():  # Only the main thread may set what a signal does.
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    error_stream = os.dup(2)  # A build redirects standard error to its log.
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    # Python's own handler waits until the engine returns; this descriptor gets the signal's number at once.
    previous_fd = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    previous = signal.SIG_IGN if is_ignored else signal.signal(signal.SIGINT, lambda *_: None)

    def watch() -> None:
        while True:
            if not select.select([reader], [], [], after_s)[0]:
                _end(error_stream, late_sentence, _TIMED_OUT, is_line_open=is_line_open)
            received = os.read(reader, 1)
            if received == _STOP:
                return
            if received[0] == signal.SIGINT:
                _end(error_stream, INTERRUPTED_SENTENCE, INTERRUPTED, is_line_open=is_line_open)

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
        for descriptor in (reader, writer, error_stream):
            os.close(descriptor)


def _end(error_stream: int, sentence: str, exit_code: int, *, is_line_open: bool) -> None:
    """End the process immediately, without exit handlers, because the main thread may hold a lock."""
    # A terminal shows `^C` at the start of the line, and a progress bar hides the cursor.
    beginning = f"{_SHOW_CURSOR}\n" if os.isatty(error_stream) else "\n" if is_line_open else ""
    os.write(error_stream, f"{beginning}{sentence}\n".encode())
    os._exit(exit_code)
