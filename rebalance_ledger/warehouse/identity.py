"""The identity of a computation: its export, settings, code and baseline.

It contains no time and no random number, so a re-run of a day has the same `run_id`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_ledger.warehouse.staging import Build

if TYPE_CHECKING:
    from datetime import date

_PACKAGES = (
    "expectations",
    "rebalance_ledger/exports",
    "rebalance_ledger/rocketmq",
    "rebalance_ledger/settings",
    "rebalance_ledger/storage",
    "rebalance_ledger/tables",
    "rebalance_ledger/warehouse",
    "spark_jobs",
    "strategies",
)
"""The packages whose code can change a published number; not `sql/`, which is read at query time."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """The input of a computation.

    Attributes:
        manifest_sha256: SHA-256 of the export's manifest, which covers every byte of the export.
        settings_sha256: SHA-256 of the cluster's settings.
        code_version: See `code_version`.
        compared_exports: Earlier exports that were searched for offset files, the newest first, each as the day, `=`, and the
            manifest's SHA-256. None for a day without offset files.
        baseline_ds: Day of the baseline; None without one.
        compared_content: Content of the baseline: for each table that was read, its name, `=`, and its content hash. It has hashes and
            not the run id, so that recomputing the baseline with equal rows does not change the identity.
    """

    manifest_sha256: str
    settings_sha256: str
    code_version: str
    compared_exports: tuple[str, ...] | None = None
    baseline_ds: date | None = None
    compared_content: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        """A hash of the identity, 16 hexadecimal digits."""
        parts = (
            self.manifest_sha256,
            self.settings_sha256,
            self.code_version,
            *(self.compared_exports or ()),
            *(() if self.baseline_ds is None else (self.baseline_ds.isoformat(), *self.compared_content)),
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    @property
    def build(self) -> Build:
        """The record of the identity in a stage and in `publication`."""
        return Build(
            self.run_id,
            self.manifest_sha256,
            self.settings_sha256,
            self.code_version,
            self.baseline_ds,
            None if self.baseline_ds is None else list(self.compared_content),
            None if self.compared_exports is None else list(self.compared_exports),
        )


@cache
def code_version() -> str:
    """Return the version of the package and a hash of its source, for example `0.1.0+3f2a9c0d1e5b`."""
    try:
        release = version("rebalance-ledger")
    except PackageNotFoundError:
        release = "unreleased"
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{release}+{digest.hexdigest()[:12]}"
