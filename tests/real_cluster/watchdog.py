"""Ends the processes of a test whose own process has ended for any reason, including being killed.

It runs as a process in its own session. Each line of its input identifies a process to watch by its id and its creation
time, so that a later process with the same id is not affected. When the input ends, the remaining processes are killed.
"""

from __future__ import annotations

import contextlib
import sys

import psutil


def main() -> None:
    watched: list[tuple[int, float]] = []
    for line in sys.stdin:
        process_id, created = line.split()
        watched.append((int(process_id), float(created)))
    for number, created_at in watched:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(number)
            if process.create_time() == created_at:
                process.kill()


if __name__ == "__main__":
    main()
