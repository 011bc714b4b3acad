"""What identifies a computation, so that the same export, settings and code are known to be the same.

No clock and no random number is in it: a re-run of a day has the same `run_id`.
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
"""The packages whose code can change a published number. `sql/` is not one of them: it is read at query time."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What a day was computed from.

    Attributes:
        manifest_sha256: SHA-256 of the export's manifest, which names every byte of the export.
        settings_sha256: SHA-256 of the cluster's settings.
        code_version: see `code_version`.
        compared_exports: the earlier exports in which offset files were looked for to compare the day's with, the newest
            first: the day, `=`, the manifest's SHA-256. None for a day without offset files.
        baseline_ds: the earlier published day that the day was compared with.
        compared_content: what was read of baseline_ds: for each table its name, `=`, its content hash. The hash and not
            the run, so that an earlier day whose rows come out the same makes no other day of this one.
    """

    manifest_sha256: str
    settings_sha256: str
    code_version: str
    compared_exports: tuple[str, ...] | None = None
    baseline_ds: date | None = None
    compared_content: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        """16 hexadecimal digits that stand for all of it."""
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
        """What the stage and the publication keep of it."""
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
