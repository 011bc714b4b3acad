"""The strategy library needs only numpy, as in its installation without extras."""

from __future__ import annotations

import subprocess
import sys

_LOADED_FROM_PACKAGES = """
import sys
import strategies
from rebalance_ledger.rocketmq.offset_files import reading
files = {name: getattr(module, "__file__", None) or "" for name, module in list(sys.modules.items())}
print(*sorted({name.partition(".")[0] for name, file in files.items() if "site-packages" in file}))
"""


def test_strategies_and_offset_files_load_numpy_alone() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _LOADED_FROM_PACKAGES], capture_output=True, text=True, check=True
    )
    # Modules whose names begin with an underscore belong to the installer.
    loaded = {name for name in ended.stdout.split() if not name.startswith("_")}
    assert loaded == {"numpy"}
