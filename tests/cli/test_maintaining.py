"""`ledger maintain` prints its planned actions, and performs them with `--apply`."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rebalance_ledger.cli.app import app
from rebalance_ledger.cli.verify import sample_of
from rebalance_ledger.tables import ALL_TABLES, QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from tests.support.staging_fixtures import MONDAY, owners, stage_day

DRY_RUN = "This is a dry run: nothing is changed. `--apply`, and in Airflow `dry_run: false` in the settings, does it."
VERIFIED = f"shop 2026-11-16: 3 rows in {len(ALL_TABLES)} tables are as published"


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


def test_the_default_is_a_dry_run(warehouse: Warehouse) -> None:
    assert maintain(warehouse, "--apply") == ["There is nothing to do.", VERIFIED]
    stage = Path(warehouse.attempts("shop", MONDAY))
    long_ago = (datetime.now(UTC) - timedelta(days=15)).timestamp()
    for path in stage.rglob("*"):
        os.utime(path, (long_ago, long_ago))

    message = maintain(warehouse)

    assert message[0] == DRY_RUN
    assert message[1].startswith(f"{stage}: ")
    assert message[2:] == [VERIFIED]
    assert stage.is_dir()
    maintain(warehouse, "--apply")
    assert not stage.exists()


def test_the_settings_define_the_retention_periods(warehouse: Warehouse, tmp_path: Path) -> None:
    settings = tmp_path / "ledger.yaml"
    settings.write_text("maintenance: {staging_retention_days: 40}\n")
    stage = Path(warehouse.attempts("shop", MONDAY))
    for path in stage.rglob("*"):
        os.utime(path, (0, 0))
    young = (datetime.now(UTC) - timedelta(days=30)).timestamp()
    os.utime(stage / "newest.json", (young, young))

    assert maintain(warehouse, "--settings", str(settings)) == [DRY_RUN, "There is nothing to do.", VERIFIED]
    settings.write_text("maintenance: {staging_retention_days: 20}\n")
    assert len(maintain(warehouse, "--settings", str(settings))) == 3
    settings.write_text("maintenance: {staging_retention_days: 40, verified_day_count: 0}\n")
    assert maintain(warehouse, "--settings", str(settings)) == [DRY_RUN, "There is nothing to do."]


@pytest.mark.parametrize("days", [1_000_000, 10**12])
def test_periods_longer_than_the_calendar_keep_all(warehouse: Warehouse, tmp_path: Path, days: int) -> None:
    settings = tmp_path / "ledger.yaml"
    names = ("vacuum_retention_days", "staging_retention_days", "data_docs_retention_days")
    settings.write_text("maintenance: {" + ", ".join(f"{name}: {days}" for name in names) + "}\n")
    for path in Path(warehouse.root).rglob("*"):
        os.utime(path, (0, 0))
    assert maintain(warehouse, "--settings", str(settings)) == [DRY_RUN, "There is nothing to do.", VERIFIED]


def overwrite_monday(warehouse: Warehouse) -> None:
    """Overwrite Monday's rows in the Delta version that the publication names, as another writer could."""
    [data] = Path(warehouse.published(QUEUE_ASSIGNMENT)).rglob("*.parquet")
    rows = pq.read_table(data)
    clients = pa.array(["c2"] * rows.num_rows, rows.schema.field("client_id").type)
    pq.write_table(rows.set_column(rows.schema.get_field_index("client_id"), "client_id", clients), data)


def test_published_rows_that_changed_after_publication_fail_the_maintenance(warehouse: Warehouse) -> None:
    overwrite_monday(warehouse)

    ended = CliRunner().invoke(app, ["maintain", "--warehouse", warehouse.root])

    assert isinstance(ended.exception, QueryError)
    assert "gold.queue_assignment" in str(ended.exception)


def test_days_to_verify_depend_only_on_the_date() -> None:
    days = [ClusterDay("shop", date(2026, 1, 1) + timedelta(days=number)) for number in range(100)]
    dates = [date(2026, 11, number) for number in range(1, 11)]

    samples = [sample_of(days, 3, on) for on in dates]

    assert [len(sample) for sample in samples] == [3] * 10
    assert len({day for sample in samples for day in sample}) > 20
    assert sample_of(reversed(days), 3, dates[0]) == samples[0]


class TestVerify:
    def test_names_each_day_whose_rows_are_as_published(self, warehouse: Warehouse) -> None:
        ended = CliRunner().invoke(app, ["verify", "--warehouse", warehouse.root])
        assert (ended.exit_code, ended.output.splitlines()) == (0, [VERIFIED])

    def test_a_changed_row_is_named_with_its_day_and_table(self, warehouse: Warehouse) -> None:
        overwrite_monday(warehouse)

        ended = CliRunner().invoke(app, ["verify", "--cluster", "shop", "--warehouse", warehouse.root])

        assert ended.output.splitlines() == ["shop 2026-11-16: gold.queue_assignment not as published"]
        assert isinstance(ended.exception, QueryError)
        assert "shop 2026-11-16 gold.queue_assignment" in str(ended.exception)

    def test_a_day_that_is_not_published_is_reported_in_one_sentence(self, warehouse: Warehouse) -> None:
        words = ["verify", "--cluster", "shop", "--ds", "2026-11-20", "--warehouse", warehouse.root]
        ended = CliRunner().invoke(app, words)
        assert "has no published day of shop 2026-11-20" in str(ended.exception)


def test_a_warehouse_without_a_published_day_is_named(tmp_path: Path) -> None:
    nowhere = Warehouse.at(str(tmp_path / "nowhere"))

    assert maintain(nowhere) == [DRY_RUN, f"There is nothing to do: {nowhere.root} has no published day."]
