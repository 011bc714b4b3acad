"""(g) Many days in one backfill, against the same days one by one.

Copies of the sample's first day under other dates: the lines of its export with another `captured_at`, sealed again. What is timed, in turns:

- ours: `ledger backfill` over all of them, from the start of the process to its end;
- one by one: `ledger run` of the first of them into an empty warehouse, times their number. It has no baseline to compare with, which favours
  this side.

Belongs here: the days, the turns, and the check that both sides publish the same rows of the first day. Does not belong here: what a day does.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from bench.report import Measurement
from rebalance_ledger.exports.sealing import seal
from rebalance_ledger.warehouse.fingerprint import fingerprint
from rebalance_ledger.warehouse.layout import Warehouse

if TYPE_CHECKING:
    from rebalance_ledger.warehouse.fingerprint import TableDay

CLUSTER: Final = "shop-prod"
FIRST: Final = date(2026, 10, 1)

_ROOT: Final = Path(__file__).resolve().parent.parent
_SAMPLE: Final = _ROOT / "samples" / "exports" / CLUSTER / "2026-11-16"
_SETTINGS: Final = _ROOT / "conf" / "ledger.yaml"


def measure(*, day_count: int = 60, repetitions: int = 1) -> list[Measurement]:
    """Time a backfill and a single run, in turns.

    Args:
        day_count: Days of the backfill.
        repetitions: Pairs of a backfill and a single run.

    Raises:
        RuntimeError: A command fails, or both sides do not publish the same rows.
    """
    together, alone = [], []
    for _ in range(repetitions):
        with TemporaryDirectory() as name:
            folder = Path(name)
            days = copied_days(folder / "exports", day_count)
            single, batch = folder / "single", folder / "batch"
            alone.append(_seconds("run", f"--ds={days[0]}", exports=folder / "exports", warehouse=single))
            span = (f"--from={days[0]}", f"--to={days[-1]}")
            together.append(_seconds("backfill", *span, exports=folder / "exports", warehouse=batch))
            if _tables(single, days[0]) != _tables(batch, days[0]):
                raise RuntimeError(
                    f"The rows of {days[0]} differ from those of the day alone; wrong rows have no speed."
                )
            if len({table.ds for table in fingerprint(Warehouse.at(str(batch)).root, CLUSTER)}) != day_count:
                raise RuntimeError("The backfill has not published all of its days.")
    return [
        Measurement(
            name="backfill",
            what=f"ledger backfill of {day_count} days of the sample",
            baseline=f"{day_count} times ledger run of one",
            seconds=tuple(together),
            baseline_seconds=tuple(seconds * day_count for seconds in alone),
            bar=0.12,
            note="One day alone is run once and its time multiplied.",
            extra={"day_count": day_count},
        )
    ]


def _seconds(*command: str, exports: Path, warehouse: Path) -> float:
    places = (f"--exports={exports}", f"--warehouse={warehouse}", f"--settings={_SETTINGS}")
    begin = time.perf_counter()
    done = subprocess.run(  # noqa: S603  # an argument list, never a shell
        [sys.executable, "-m", "rebalance_ledger.cli.app", *command, f"--cluster={CLUSTER}", *places],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"ledger {command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return time.perf_counter() - begin


def _tables(warehouse: Path, ds: date) -> list[TableDay]:
    return list(fingerprint(Warehouse.at(str(warehouse)).root, CLUSTER, ds))


def copied_days(exports: Path, count: int) -> list[date]:
    """Write copies of the sample's first day under successive dates, sealed, and return the dates."""
    days = [FIRST + timedelta(days=number) for number in range(count)]
    for ds in days:
        folder = exports / CLUSTER / ds.isoformat()
        shutil.copytree(_SAMPLE, folder)
        for path in folder.glob("*.jsonl"):
            lines = path.read_text(encoding="utf-8").split("\n")
            path.write_text("\n".join(_moved(line, ds) if line else "" for line in lines), encoding="utf-8")
        seal(folder, cluster=CLUSTER, ds=ds, replace=True)
    return days


def _moved(line: str, ds: date) -> str:
    """Return a line of an export as if it had been captured at the same time of another day."""
    envelope = json.loads(line)
    envelope["captured_at"] = f"{ds}{envelope['captured_at'][len('2026-11-16') :]}"
    return json.dumps(envelope, ensure_ascii=False)
