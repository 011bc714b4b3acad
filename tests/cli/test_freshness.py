"""`ledger freshness` names the clusters whose newest published day is too old, or that were never published."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from rebalance_ledger.cli.app import app
from rebalance_ledger.cli.freshness import Freshness, age_of, freshness
from rebalance_ledger.warehouse.layout import Warehouse

if TYPE_CHECKING:
    from pathlib import Path


def run(warehouse: str, *options: str) -> tuple[int, list[str]]:
    ended = CliRunner().invoke(app, ["freshness", "--warehouse", warehouse, *options])
    return ended.exit_code, ended.output.splitlines()


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "ledger.yaml"
    file.write_text("clusters: {shop-prod: {}, silent: {}}\n")
    return file


def test_a_limit_is_exceeded_one_moment_after_the_newest_day_is_that_old(shop_warehouse: str) -> None:
    newest = freshness(Warehouse.at(shop_warehouse), settings_file=None, cluster="shop-prod", max_age=None)[
        0
    ].ds
    assert newest is not None
    begin = datetime(newest.year, newest.month, newest.day, tzinfo=UTC)

    def is_stale(age: timedelta) -> bool:
        [of_cluster] = freshness(
            Warehouse.at(shop_warehouse),
            settings_file=None,
            cluster="shop-prod",
            max_age=timedelta(hours=26),
            now=begin + age,
        )
        return of_cluster.is_stale

    assert not is_stale(timedelta(hours=26))
    assert is_stale(timedelta(hours=26, seconds=1))


def test_a_day_in_the_future_is_not_fresh(shop_warehouse: str) -> None:
    [of_cluster] = freshness(
        Warehouse.at(shop_warehouse),
        settings_file=None,
        cluster="shop-prod",
        max_age=timedelta(hours=26),
        now=datetime(2026, 11, 17, 23, 59, tzinfo=UTC),
    )

    assert of_cluster.is_stale
    assert of_cluster.line == "shop-prod  2026-11-18  in the future: check the clock of its collector"


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (timedelta(minutes=59, seconds=59), "0 h 59 min old"),
        (timedelta(hours=47, minutes=59), "47 h 59 min old"),
        (timedelta(days=2), "2 d 0 h old"),
        (timedelta(days=12, hours=9, minutes=59), "12 d 9 h old"),
    ],
)
def test_an_age_is_shown_in_hours_or_days(age: timedelta, shown: str) -> None:
    assert Freshness("shop", date(2026, 11, 16), age, is_stale=False).line == f"shop  2026-11-16  {shown}"


def test_without_a_limit_every_age_is_shown_and_none_is_an_error(shop_warehouse: str, settings: Path) -> None:
    code, lines = run(shop_warehouse, f"--settings={settings}")
    assert code == 0
    assert [line.split()[0] for line in lines] == ["shop-prod", "silent"]
    assert lines[1] == "silent  never published"


def test_a_cluster_of_the_settings_that_was_never_published_is_too_old_for_every_limit(
    shop_warehouse: str, settings: Path
) -> None:
    code, lines = run(shop_warehouse, f"--settings={settings}", "--max-age=100000d")
    assert code == 6
    assert lines[-1] == "Too old, or never published: silent."


def test_a_missing_warehouse_is_stale(tmp_path: Path, settings: Path) -> None:
    assert run(str(tmp_path / "none"), f"--settings={settings}", "--max-age=26h")[0] == 6
    assert run(str(tmp_path / "none"), "--max-age=26h")[0] == 6


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("90m", timedelta(minutes=90)),
        ("26h", timedelta(hours=26)),
        ("2d", timedelta(days=2)),
        ("9999999999d", timedelta.max),
    ],
)
def test_ages_have_units(text: str, age: timedelta) -> None:
    assert age_of(text) == age


@pytest.mark.parametrize("text", ["26", "h", "1.5h", "-1h", "26 h"])
def test_a_malformed_age_is_a_usage_error(shop_warehouse: str, text: str) -> None:
    assert run(shop_warehouse, f"--max-age={text}")[0] == 2
