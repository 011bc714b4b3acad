"""Run a program of the project, and say what it and all processes below it took.

A JVM that PySpark starts outlives the Python that started it, so no process is given its CPU time. Therefore a program runs below a
watcher (`python -m bench.watched PROGRAM …`), which adopts such processes and waits for them too. Nobody waits for the workers that
PySpark's daemon starts (it ignores SIGCHLD), so the kernel gives their CPU time to no process: the watcher looks at it once a second.

Belongs here: clock, CPU time and memory of processes. Does not belong here: which programs (`stages`).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil  # type: ignore[import-untyped]  # it ships no types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent

_LOOK_EVERY_S: Final = 1.0
_BYTES_PER_KIB: Final = 1024
_PR_SET_CHILD_SUBREAPER: Final = 36


@dataclass(frozen=True, slots=True)
class Usage:
    """What one program took.

    Attributes:
        seconds: From its start to its end.
        cpu_seconds: Of it and of all processes below it; of a Python worker of Spark that ends before the program, without its last second.
        peak_bytes: By role (`python`, `jvm`, `python_worker`), the most resident memory that any one process had, looked at once a second.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: Mapping[str, int]


def run(command: Sequence[str]) -> Usage:
    """Run a program of the project in its environment, its output on standard error.

    Raises:
        RuntimeError: It fails.
    """
    watcher = [str(ROOT / "setup" / "in-environment"), "python", "-m", "bench.watched", *command]
    done = subprocess.run(watcher, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)  # noqa: S603  # our own programs
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}; see above.")
    return Usage(**json.loads(done.stdout))


def _watch(command: Sequence[str]) -> tuple[int, Usage]:
    """Run a program; return its exit code and what it took."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise RuntimeError("The kernel does not let this process adopt the children of its children.")
    begin = time.monotonic()
    peaks: dict[str, int] = defaultdict(int)
    worker_seconds: dict[int, float] = {}
    with subprocess.Popen(command, stdout=sys.stderr) as started:  # noqa: S603  # our own programs
        while True:
            for process in psutil.Process().children(recursive=True):
                _look(process, peaks, worker_seconds)
            with suppress(subprocess.TimeoutExpired):
                started.wait(_LOOK_EVERY_S)
                break
    seconds = time.monotonic() - begin
    with suppress(ChildProcessError):
        while True:
            waited_for, _ = os.wait()
            worker_seconds.pop(waited_for, None)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = usage.ru_utime + usage.ru_stime + sum(worker_seconds.values())
    return started.returncode, Usage(seconds, cpu_seconds, dict(peaks))


def _look(process: psutil.Process, peaks: dict[str, int], worker_seconds: dict[int, float]) -> None:
    """Keep the highest resident memory that the process has had by now, and the CPU time of a Python worker by its process id."""
    with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        if process.name() == "java":
            role = "jvm"
        elif "pyspark.daemon" in process.cmdline():
            role = "python_worker"
            # The daemon itself is a child of the JVM, which waits for it.
            parent = process.parent()
            if parent is not None and "pyspark.daemon" in parent.cmdline():
                times = process.cpu_times()
                worker_seconds[process.pid] = times.user + times.system
        elif process.name().startswith("python") or process.name() == "ledger":
            role = "python"
        else:
            return
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if "VmHWM" in lines:  # A process that has just ended has no memory any more.
            peaks[role] = max(peaks[role], int(lines["VmHWM"].split()[0]) * _BYTES_PER_KIB)


if __name__ == "__main__":
    exit_code, taken = _watch(sys.argv[1:])
    sys.stdout.write(json.dumps(asdict(taken)) + "\n")
    sys.exit(exit_code)
