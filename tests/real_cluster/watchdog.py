"""Ends the processes of a test whose own process has ended, however it ended: it may have been killed.

It is a process by itself, in a session by itself. Each line of its input names a process to watch: its id and when it
was created, so that no later process with the same id is meant. When the input ends, what is left of them is killed.
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
