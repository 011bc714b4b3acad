"""Days with randomly altered answers: each is published, because an answer is evidence even if it is unreadable.

`LEDGER_SEED` and `LEDGER_DAYS` draw others.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.exports.manifest import MANIFEST_NAME, export_directory
from tests.support import broadcasting_cluster, drifting_cluster, edge_case_cluster, sharing_cluster
from tests.support.altered_exports import alter

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "exports" / "shop-prod"
DS = date(2026, 11, 17)


def good_exports(folder: Path) -> list[Path]:
    """Return the directories of exports that together have most kinds of lines and edge cases."""
    drifting_cluster.write(folder / "drifting")
    return [
        *sorted(path for path in SAMPLE.iterdir() if path.is_dir()),
        edge_case_cluster.OddCluster().seal(folder),
        sharing_cluster.sharing_export().seal(folder),
        broadcasting_cluster.day().seal(folder),
        *(path.parent for path in (folder / "drifting").rglob(MANIFEST_NAME)),
    ]


def altered(folder: Path, exports: Path) -> Iterator[tuple[str, str]]:
    """Seal altered exports; yield cluster and day of each."""
    seed, count = int(os.environ.get("LEDGER_SEED", "20261128")), int(os.environ.get("LEDGER_DAYS", "14"))
    good = good_exports(folder)
    for number in range(count):
        rng = Random(f"{seed} {number}")  # noqa: S311  repeatable
        source = good[number % len(good)]
        cluster, ds = f"altered-{number}", date.fromisoformat(source.name)
        directory = export_directory(exports, cluster, ds)
        shutil.copytree(source, directory)
        (directory / MANIFEST_NAME).unlink()
        alter(directory, cluster, ds, rng)
        yield cluster, source.name


def test_every_altered_day_is_published(tmp_path: Path) -> None:
    exports = tmp_path / "exports"
    days = list(altered(tmp_path, exports))
    ended = subprocess.run(
        [
            sys.executable, "-m", "rebalance_ledger.cli.app", "backfill",
            *(f"--cluster={cluster}" for cluster, _ in days),
            f"--from={min(ds for _, ds in days)}", f"--to={max(ds for _, ds in days)}",
            f"--exports={exports}", f"--warehouse={tmp_path / 'warehouse'}",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
