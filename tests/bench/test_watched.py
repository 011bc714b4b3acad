"""Benchmarks report the CPU time of every process, including processes that no parent waits for."""

from __future__ import annotations

from bench.watched import run

_BURNT_S = 4
_PROGRAM = f"""
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while time.process_time() < {_BURNT_S}:
        pass
    os._exit(0)
try:
    os.wait()
except ChildProcessError:
    pass
"""


def test_workers_of_a_daemon_that_does_not_wait_for_them_are_counted() -> None:
    # As `pyspark.daemon` does, which a process is by its command line.
    usage = run(["python", "-c", _PROGRAM, "pyspark.daemon"])

    assert usage.cpu_seconds > _BURNT_S / 2
