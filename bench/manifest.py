"""(k) The check of a sealed export of about 500 MB against its manifest.

Beside it stands what every check of that kind costs at least: one process that reads the same files, hashes them and parses each line of the
files of envelopes with `json.loads`, without looking at what it says. Both in processes of their own, in turns; the start of Python and
its imports are not in the figures, the start of the processes that check beside the first one is.

Belongs here: the export and the clock. Does not belong here: how an export is checked.
"""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from bench.report import Measurement
from rebalance_ledger.exports.contract import KIND_BY_FILE_NAME
from rebalance_ledger.exports.manifest import load_manifest
from rebalance_ledger.exports.sealing import verify

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZE: Final = (40, 1_900, 1_100, 8)
"""Brokers, topics, groups, and clients of a group."""

_ROOT: Final = Path(__file__).resolve().parent.parent
_REPETITION_COUNT: Final = 5
_CLUSTER: Final = "bench"
_DS: Final = date(2026, 11, 16)
_CPU_BAR: Final = 2.0


def measure(*, size: tuple[int, int, int, int] = SIZE) -> list[Measurement]:
    """Check an export, in turns with the plain reading: CPU seconds of all processes, and the clock.

    Raises:
        RuntimeError: A run fails.
    """
    # The processes that are timed import this module too.
    from tools.simulated_cluster import Size  # noqa: PLC0415
    from tools.simulated_cluster.generate import generate  # noqa: PLC0415
    from tools.simulated_cluster.layout import Layout  # noqa: PLC0415

    with TemporaryDirectory(prefix="bench-manifest-") as made:
        generate(Layout(_CLUSTER, Size(*size)), Path(made), _DS)
        directory = Path(made) / _CLUSTER / _DS.isoformat()
        manifest = load_manifest(directory)
        turns = [(_run("verify", directory), _run("read", directory)) for _ in range(_REPETITION_COUNT)]
    size_bytes = manifest.size_bytes
    extra = {
        "export_bytes": float(size_bytes),
        "export_line_count": float(sum(file.line_count or 0 for file in manifest.files)),
    }
    return [
        Measurement(
            name=f"manifest_{figure}",
            what=f"check of an export of {size_bytes / 1e6:,.0f} MB: {what}",
            baseline="SHA-256 and json.loads of the same in one process",
            seconds=tuple(ours[f"{figure}_seconds"] for ours, _ in turns),
            baseline_seconds=tuple(plain[f"{figure}_seconds"] for _, plain in turns),
            bar=bar,
            extra=extra,
        )
        for figure, what, bar in (("cpu", "CPU of all processes", _CPU_BAR), ("clock", "clock", None))
    ]


def _run(step: str, directory: Path) -> Mapping[str, float]:
    """Run one step in a process of its own, and return what it printed last."""
    command = [sys.executable, "-m", "bench.manifest", step, str(directory)]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=False)  # noqa: S603  # our own module
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}; see above.")
    figures: Mapping[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _verify(directory: Path) -> None:
    verify(directory)


def _read(directory: Path) -> None:
    """Read every file once."""
    for file in load_manifest(directory).files:
        digest = hashlib.sha256()
        with (directory / file.path).open("rb") as lines:
            for line in lines:
                digest.update(line)
                if file.path in KIND_BY_FILE_NAME:
                    json.loads(line)
        if digest.hexdigest() != file.sha256:
            raise RuntimeError(f"{file.path} has changed.")


def _figures(step: str, directory: Path) -> dict[str, float]:
    begin, begin_cpu = time.perf_counter(), _cpu_seconds()
    {"verify": _verify, "read": _read}[step](directory)
    return {
        "clock_seconds": time.perf_counter() - begin,
        "cpu_seconds": _cpu_seconds() - begin_cpu,
    }


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    wanted_step, place = sys.argv[1:]
    sys.stdout.write(json.dumps(_figures(wanted_step, Path(place))) + "\n")
