"""The stages of one day of a simulated cluster, as Airflow runs them: each a program of its own.

Belongs here: their commands, and where export, settings and warehouse are in a folder. Does not belong here: running and watching
them (`watched`).
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from bench.watched import ROOT
from rebalance_ledger.driver_options import driver_options
from rebalance_ledger.exports.manifest import export_directory, load_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from rebalance_ledger.exports.manifest import Manifest
    from tools.simulated_cluster import Size

CLUSTER: Final = "simulated"
DS: Final = date(2026, 11, 16)


def collect_command(size: Size, folder: Path) -> list[str]:
    """Return the command that writes the export and the settings of a simulated cluster into a folder."""
    simulated = [
        "--brokers", str(size.broker_count), "--topics", str(size.topic_count), "--groups", str(size.group_count),
        "--clients-per-group", str(size.clients_per_group),
    ]  # fmt: skip
    return ["python", "-m", "tools.simulated_cluster", *simulated, *_export_of_day(folder)]


def stage_commands(folder: Path, warehouse: Path) -> dict[str, list[str]]:
    """Return stage -> its command, in order, for the export that is in a folder.

    Raises:
        ExportError: There is none.
    """
    of_stage = [*_export_of_day(folder), "--warehouse", str(warehouse)]
    options = driver_options(manifest_of(folder).size_bytes)
    submit = [
        "spark-submit",
        "--master",
        "local[2]",
        *(f"--conf={name}={value}" for name, value in options.items()),
    ]
    return {
        "verify": ["ledger", "step", "verify", *of_stage],
        "build": [*submit, str(ROOT / "spark_jobs" / "day_job.py"), *of_stage],
        "gate": ["ledger", "step", "gate", *of_stage],
        "publish": ["ledger", "step", "publish", *of_stage],
    }


def manifest_of(folder: Path) -> Manifest:
    """Return the manifest of the export that is in a folder.

    Raises:
        ExportError: There is none.
    """
    return load_manifest(export_directory(folder / "exports", CLUSTER, DS))


def _export_of_day(folder: Path) -> list[str]:
    places = ["--exports", str(folder / "exports"), "--settings", str(folder / "settings.yaml")]
    return ["--cluster", CLUSTER, "--ds", DS.isoformat(), *places]
