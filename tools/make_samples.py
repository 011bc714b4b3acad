"""Copy the days of a captured cluster into `samples/` and seal them.

Usage: `python -m tools.make_samples CAPTURE`, with CAPTURE a directory `<cluster>/<ds>/…` as the capturing program wrote
it. Files that no part of the ledger reads (mqadmin output) are not copied. The observed owners, as rows, are copied to
`tests/data/observed_owners/<ds>.csv`, because tests compare with them, and response bodies of brokers to
`tests/data/`. All bytes remain unchanged.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from rebalance_ledger.exports.sealing import seal

_ROOT = Path(__file__).resolve().parent.parent
_NOT_READ = "mqadmin"
_OBSERVED_OWNERS = "observed_owners.csv"
_WIRE_SAMPLES = "wire_samples.jsonl"


def main(capture: Path) -> None:
    """Replace the samples of the captured cluster."""
    exports = _ROOT / "samples" / "exports" / capture.name
    owners = _ROOT / "tests" / "data" / "observed_owners"
    if exports.exists():
        shutil.rmtree(exports)
    for day in sorted(path for path in capture.iterdir() if path.is_dir()):
        for file in sorted(path for path in day.rglob("*") if path.is_file()):
            inside = file.relative_to(day)
            if inside.name == _OBSERVED_OWNERS:
                _copy(file, owners / f"{day.name}.csv")
            elif inside.parts[0] != _NOT_READ:
                _copy(file, exports / day.name / inside)
        manifest = seal(exports / day.name)
        sys.stdout.write(f"{day.name}: {len(manifest.files)} files, manifest {manifest.sha256}\n")
    _copy(capture / _WIRE_SAMPLES, _ROOT / "tests" / "data" / _WIRE_SAMPLES)


def _copy(source: Path, target: Path) -> None:
    """Copy only the bytes: a capture that is mounted read-only must not make the samples read-only."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
