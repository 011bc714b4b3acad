"""Commands find a folder for their user's files, also for users whom the system does not know."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rebalance_ledger.cli.user_state import state_folder


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/ana"}, Path("/state/rebalance-ledger")),
        ({"XDG_STATE_HOME": "", "HOME": "/home/ana"}, Path("/home/ana/.local/state/rebalance-ledger")),
        ({"XDG_STATE_HOME": ""}, None),
    ],
)
def test_the_folder_of_a_user_id_without_a_name(
    environment: dict[str, str], folder: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)

    assert state_folder() == folder
