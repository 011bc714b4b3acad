"""Runs commands of `ledger` on a full disk, and again with free space; prints the result of each as JSON.

    unshare --mount --map-root-user python tests/support/on_full_disk.py WAREHOUSE DISK FREE_KIB WORD…

A small in-memory file system is mounted over the folder DISK, visible only to this process and its children. The warehouse
is copied there, and the rest is filled except for FREE_KIB.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

_LEDGER = (sys.executable, "-c", "import rebalance_ledger.cli.app as c; c.main()")
_KIB = 1024
_ROOM_KIB = 400 * 1024
_PAGE_BYTES = 4096  # The allocation unit of the in-memory file system.


def main(warehouse: str, disk: str, free_kib: str, *words: str) -> None:
    """Mount, fill, run, free space, run again."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_ROOM_KIB}k", "tmpfs", disk], check=True)
    copied = Path(disk, "warehouse")
    shutil.copytree(warehouse, copied)
    filler = Path(disk, "filler")
    with filler.open("wb") as file:
        room = shutil.disk_usage(disk).free - int(free_kib) * _KIB
        for _ in range(room // _PAGE_BYTES):
            file.write(bytes(_PAGE_BYTES))
    full = _ran(*words)
    read_when_full = _fingerprint(words)
    filler.unlink()
    read_after = _fingerprint(words)
    again = _ran(*words)
    report = {
        "full": full,
        "read_when_full": read_when_full,
        "read_after": read_after,
        "again": again,
        "read_again": _fingerprint(words),
    }
    sys.stdout.write(json.dumps(report))


def _ran(*words: str) -> tuple[int, str]:
    ended = subprocess.run([*_LEDGER, *words], capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr


def _fingerprint(words: tuple[str, ...]) -> list[str]:
    places = [word for word in words if word.startswith(("--cluster=", "--warehouse="))]
    answer = subprocess.run([*_LEDGER, "fingerprint", *places], capture_output=True, text=True, check=True)
    return answer.stdout.splitlines()


if __name__ == "__main__":
    main(*sys.argv[1:])
