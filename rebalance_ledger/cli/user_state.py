"""The folder for files that commands keep for their user between runs.

Belongs here: its path. Does not belong here: its files.
"""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> Path | None:
    """Return the folder by the XDG Base Directory Specification; None for a user without a home."""
    state = os.environ.get("XDG_STATE_HOME")
    if state:
        return Path(state) / "rebalance-ledger"
    try:
        return Path.home() / ".local" / "state" / "rebalance-ledger"
    except RuntimeError:  # A container may run with a user id that the system does not know.
        return None
