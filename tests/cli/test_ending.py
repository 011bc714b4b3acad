"""A process that ends without freeing its objects writes its output and runs its exit handlers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import atexit, sys
from rebalance_ledger.cli.console import end_process
atexit.register(print, "exit handler", file=sys.stderr, flush=True)
print("buffered", end="")
end_process(3)
"""


def test_output_and_exit_handlers_are_not_lost() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "buffered", "exit handler\n")


def test_output_that_cannot_be_written_is_not_a_success() -> None:
    program = PROGRAM.replace("end_process(3)", "end_process(0)")
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode != 0
    assert "No space left on device" in ended.stderr
