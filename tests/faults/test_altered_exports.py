"""Days with randomly altered answers and random settings: each is published, because an answer is evidence even if it is unreadable.

`LEDGER_SEED` and `LEDGER_CLUSTERS` draw others.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rebalance_ledger.exports.manifest import MANIFEST_NAME, export_directory
from tests.spark_jobs import (
    test_assignment_churn,
    test_groups_without_answer,
    test_presence,
    test_route_divergence,
)
from tests.support import (
    broadcasting_cluster,
    drifting_cluster,
    edge_case_cluster,
    sharing_cluster,
    three_days,
)
from tests.support.altered_exports import alter
from tests.support.random_settings import draw_settings, let_members_report, names_in

pytestmark = [pytest.mark.faults, pytest.mark.e2e, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "exports" / "shop-prod"
FIRST_DAY = date(2026, 11, 16)
MOST_DAYS = 3
"""Days of the cluster with the most."""
_ODD_ENVIRONMENT = {
    "LC_ALL": "C",
    "PYSPARK_PYTHON": "/nonexistent/python",
    # Libraries cannot be loaded from the folder for temporary files, as if /tmp were mounted with `noexec`.
    "JDK_JAVA_OPTIONS": "-Dorg.xerial.snappy.tempdir=/dev/null/none",
}
"""Variables of a user's environment that must have no effect."""


def good_exports(folder: Path) -> list[list[Path]]:
    """Return the exports of clusters that together have most kinds of lines and edge cases, each cluster in the order of its days."""
    exports = folder / "exports"
    drifting_cluster.write(folder)
    edge_case_cluster.OddCluster().seal(exports)
    sharing_cluster.sharing_export().seal(exports)
    broadcasting_cluster.write_exports(exports)
    three_days.sealed(exports)
    test_assignment_churn.write_migration(exports)
    test_groups_without_answer.write_exports(exports)
    test_presence.write_with_proxies(exports)
    test_presence.write_without_proxies(exports)
    test_route_divergence.write_exports(exports)
    clusters = [SAMPLE, *sorted(exports.iterdir())]
    days_by_cluster = [sorted(path for path in cluster.iterdir() if path.is_dir()) for cluster in clusters]
    return [days if len(days) > 1 else days * 2 for days in days_by_cluster]


def write_altered_exports(folder: Path, exports: Path) -> dict[str, dict[str, Any]]:
    """Seal altered exports of successive days, and return their clusters with settings; every third cluster has none."""
    seed, count = int(os.environ.get("LEDGER_SEED", "20261128")), int(os.environ.get("LEDGER_CLUSTERS", "5"))
    good = good_exports(folder / "good")
    Random(seed).shuffle(good)  # noqa: S311  repeatable
    clusters: dict[str, dict[str, Any]] = {f"altered-{number}": {} for number in range(count)}
    for number, cluster in enumerate(clusters):
        sources = good[number % len(good)]
        if number % 3:
            names = names_in(sources[0])
            clusters[cluster] = draw_settings(names, Random(f"{seed} {number} settings"))  # noqa: S311  repeatable
        for place, source in enumerate(sources):
            ds = FIRST_DAY + timedelta(days=place)
            directory = export_directory(exports, cluster, ds)
            shutil.copytree(source, directory)
            (directory / MANIFEST_NAME).unlink()
            if clusters[cluster]:
                let_members_report(directory, clusters[cluster], Random(f"{seed} {number} reports"))  # noqa: S311  repeatable
            alter(directory, cluster, ds, Random(f"{seed} {number} {ds}"))  # noqa: S311  repeatable
    return clusters


def test_every_altered_day_is_published(tmp_path: Path) -> None:
    exports = tmp_path / "exports"
    clusters = write_altered_exports(tmp_path, exports)
    settings = tmp_path / "ledger.yaml"
    settings.write_text(json.dumps({"clusters": clusters}), encoding="utf-8")
    ended = subprocess.run(
        [
            sys.executable, "-m", "rebalance_ledger.cli.app", "backfill",
            *(f"--cluster={cluster}" for cluster in clusters),
            f"--from={FIRST_DAY}", f"--to={FIRST_DAY + timedelta(days=MOST_DAYS - 1)}",
            f"--exports={exports}", f"--warehouse={tmp_path / 'wärehouse 日本'}", f"--settings={settings}",
        ],
        cwd=ROOT,
        env=os.environ | _ODD_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
