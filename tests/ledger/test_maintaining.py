"""`ledger maintain` says what it would do, and does it when told."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hand_staged import MONDAY, owners, stage_day
from typer.testing import CliRunner

from ledger.cli import app
from warehouse.layout import Warehouse
from warehouse.publish import publish


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse.at(str(tmp_path / "warehouse"))
    stage_day(made, queue_assignment=owners("c1"))
    publish(made, "shop", MONDAY)
    return made


def maintain(warehouse: Warehouse, *options: str) -> list[str]:
    ended = CliRunner().invoke(app, ["maintain", "--warehouse", warehouse.root, *options])
    assert ended.exit_code == 0, ended.output
    return ended.output.splitlines()


def test_it_only_says_what_would_go_until_it_is_told_to_do_it(warehouse: Warehouse) -> None:
    assert maintain(warehouse, "--apply") == ["There is nothing to do."]
    stage = Path(warehouse.attempts("shop", MONDAY))
    long_ago = (datetime.now(UTC) - timedelta(days=15)).timestamp()
    for path in stage.rglob("*"):
        os.utime(path, (long_ago, long_ago))

    told = maintain(warehouse)

    assert told[0].startswith(f"{stage}: ")
    assert told[-1] == "Nothing was changed; say --apply to do it."
    assert stage.is_dir()
    maintain(warehouse, "--apply")
    assert not stage.exists()


def test_the_settings_say_how_long_things_are_kept(warehouse: Warehouse, tmp_path: Path) -> None:
    settings = tmp_path / "ledger.yaml"
    settings.write_text("maintenance: {stage_keep_days: 40}\n")
    stage = Path(warehouse.attempts("shop", MONDAY))
    for path in stage.rglob("*"):
        os.utime(path, (0, 0))
    young = (datetime.now(UTC) - timedelta(days=30)).timestamp()
    os.utime(stage / "newest.json", (young, young))

    assert maintain(warehouse, "--settings", str(settings)) == ["There is nothing to do."]
    settings.write_text("maintenance: {stage_keep_days: 20}\n")
    assert len(maintain(warehouse, "--settings", str(settings))) == 2
