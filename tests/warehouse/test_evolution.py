"""A warehouse is used across releases: current code reads the tables that older code published, and adds days to them."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from rebalance_ledger.exports.sealing import verify
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.tables import ALL_TABLES, FINDING, QUEUE_ASSIGNMENT, Column, Table
from rebalance_ledger.warehouse import commits, inventory
from rebalance_ledger.warehouse import publish as publish_module
from rebalance_ledger.warehouse.arrow_schema import COMMENT_KEY
from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.fingerprint import fingerprint
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish, quarantine
from rebalance_ledger.warehouse.staging import write_verdict
from tests.support.computed_days import asked, compute_and_publish, published_state
from tests.support.staging_fixtures import (
    MONDAY,
    TUESDAY,
    owners,
    record_again,
    result,
    stage_day,
    write_staged,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = Path(__file__).parent / "data" / "older_release" / "older_release.tar.gz"
CLUSTER = "shop-test"
WEDNESDAY = date(2026, 11, 18)

FORMER_COLUMNS = {"assignment_fairness": {"multi_owned_queue_count"}, "finding": {"queue_id"}}
"""Table -> columns of the older release that no longer exist."""

OLDER_ROWS = """SELECT ds, severity, kind, consumer_group, evidence FROM finding WHERE ds < '2026-11-18' ORDER BY ALL"""
OLDER_OWNERS = "FROM queue_assignment WHERE ds < '2026-11-18' ORDER BY ALL"


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """Return the exports and the warehouse of the older release."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def older_warehouse(older: Path) -> Warehouse:
    return Warehouse.at(str(older / "warehouse"))


class TestOlderRelease:
    def test_its_days_are_read_before_anything_is_published(self, older_warehouse: Warehouse) -> None:
        assert asked(
            older_warehouse, "SELECT ds::VARCHAR, count(*) FROM finding GROUP BY ALL ORDER BY ALL"
        ) == [
            ("2026-11-16", 4),
            ("2026-11-17", 4),
        ]
        for table in ALL_TABLES:
            asked(older_warehouse, f"FROM {table.qualified_name}")

    def test_a_new_day_is_added_and_its_days_stay_as_they_were(self, older_warehouse: Warehouse) -> None:
        before = asked(older_warehouse, OLDER_ROWS), asked(older_warehouse, OLDER_OWNERS)

        stage_day(older_warehouse, WEDNESDAY, CLUSTER, queue_assignment=owners("a", "b"), finding=[{}])
        publish(older_warehouse, CLUSTER, WEDNESDAY)

        assert (asked(older_warehouse, OLDER_ROWS), asked(older_warehouse, OLDER_OWNERS)) == before
        assert asked(older_warehouse, "SELECT count(*) FROM latest.queue_assignment") == [(2,)]

    def test_new_columns_are_null_in_its_days_in_every_query(self, older_warehouse: Warehouse) -> None:
        stage_day(older_warehouse, WEDNESDAY, CLUSTER, finding=[{"page": "docs/findings/x.md"}])
        publish(older_warehouse, CLUSTER, WEDNESDAY)

        counts = "SELECT ds::VARCHAR, count(*) FROM finding WHERE page IS {} NULL GROUP BY ALL ORDER BY ALL"
        assert asked(older_warehouse, counts.format("")) == [("2026-11-16", 4), ("2026-11-17", 4)]
        assert asked(older_warehouse, counts.format("NOT")) == [("2026-11-18", 1)]

    def test_new_tables_have_no_rows_of_its_days_and_its_publications_do_not_name_them(
        self, older_warehouse: Warehouse
    ) -> None:
        drift = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0}
        stage_day(older_warehouse, WEDNESDAY, CLUSTER, ownership_drift=[drift])
        publish(older_warehouse, CLUSTER, WEDNESDAY)

        assert asked(older_warehouse, "SELECT DISTINCT ds FROM ownership_drift") == [(WEDNESDAY,)]
        named = """SELECT ds FROM (SELECT ds, unnest("tables") AS named FROM publication)
            WHERE named.table_name = 'gold.ownership_drift'"""
        assert asked(older_warehouse, named) == [(WEDNESDAY,)]

    def test_comments_and_descriptions_become_todays(self, older_warehouse: Warehouse) -> None:
        stage_day(older_warehouse, WEDNESDAY, CLUSTER)
        publish(older_warehouse, CLUSTER, WEDNESDAY)

        for table in ALL_TABLES:
            delta = DeltaTable(older_warehouse.published(table))
            comments = {field.name: field.metadata.get(COMMENT_KEY) for field in delta.schema().fields}
            assert comments.items() >= {column.name: column.comment for column in table.all_columns}.items()
            # Columns that the older release named differently stay in its files, and current readers do not see them.
            former = comments.keys() - {column.name for column in table.all_columns}
            assert former == FORMER_COLUMNS.get(table.name, set())
            assert delta.metadata().description == f"One row per {table.grain}."

    def test_a_second_publication_changes_nothing(self, older_warehouse: Warehouse) -> None:
        stage_day(older_warehouse, WEDNESDAY, CLUSTER, queue_assignment=owners("a"))
        publish(older_warehouse, CLUSTER, WEDNESDAY)
        before = published_state(older_warehouse)

        assert publish(older_warehouse, CLUSTER, WEDNESDAY).changed_tables == ()
        assert published_state(older_warehouse) == before

    @pytest.mark.spark
    @pytest.mark.e2e
    def test_one_of_its_days_is_recomputed_from_the_export_that_it_sealed(
        self, spark: SparkSession, older: Path, older_warehouse: Warehouse
    ) -> None:
        untouched = asked(older_warehouse, "FROM assignment_fairness WHERE ds = '2026-11-17' ORDER BY ALL")
        assert verify(older / "exports" / CLUSTER / f"{MONDAY}").contract_version == 1

        compute_and_publish(spark, Day(CLUSTER, MONDAY, older / "exports", older_warehouse, None))

        assert asked(older_warehouse, "SELECT DISTINCT ds FROM ownership_drift") == [(MONDAY,)]
        pages = "SELECT ds, count(*) > 0, count(page) = count(*) FROM finding GROUP BY ALL ORDER BY ALL"
        assert asked(older_warehouse, pages) == [(MONDAY, True, True), (TUESDAY, True, False)]
        assert (
            asked(older_warehouse, "FROM assignment_fairness WHERE ds = '2026-11-17' ORDER BY ALL")
            == untouched
        )


@pytest.fixture
def changing(tmp_path: Path) -> Warehouse:
    return Warehouse.at(str(tmp_path / "changing"))


def publish_as(
    monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse, ds: date, table: Table, **row: object
) -> None:
    """Publish a day as a release with this definition of the table would. The table has one row."""
    with monkeypatch.context() as release:
        for module, name in ((commits, "PUBLISHED_TABLES"), (inventory, "COMPUTED_GOLD_TABLES")):
            tables = tuple(table if own.name == table.name else own for own in getattr(module, name))
            release.setattr(module, name, tables)
        stage_day(warehouse, ds, verdict=None)
        stage = warehouse.stage("shop", ds, "only")
        write_staged(stage.table(table), table, "shop", ds, [row])
        record_again(warehouse, "shop", ds, stage)
        write_verdict(warehouse, "shop", ds, stage, "passed", [result()])
        publish(warehouse, "shop", ds)


def finding_with(*columns: Column) -> Table:
    return replace(FINDING, columns=(*FINDING.columns, *columns))


OLD_NAME = Column("old_name", "string", "As it was called.", nullable=False)


class TestChangedDefinition:
    def test_a_column_that_is_gone_keeps_its_old_values_and_is_null_in_new_days(
        self, changing: Warehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish_as(monkeypatch, changing, MONDAY, finding_with(OLD_NAME), old_name="kept")
        publish_as(monkeypatch, changing, TUESDAY, FINDING, kind="new")

        rows = (
            DeltaTable(changing.published(FINDING)).to_pyarrow_table(columns=["ds", "old_name"]).to_pylist()
        )
        assert sorted((row["ds"], row["old_name"]) for row in rows) == [(MONDAY, "kept"), (TUESDAY, None)]
        assert asked(changing, "SELECT ds, kind FROM finding ORDER BY ALL") == [
            (MONDAY, ""),
            (TUESDAY, "new"),
        ]

    def test_a_renamed_column_is_one_removed_and_one_added_column(
        self, changing: Warehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish_as(monkeypatch, changing, MONDAY, finding_with(OLD_NAME), old_name="a")
        publish_as(
            monkeypatch, changing, TUESDAY, finding_with(replace(OLD_NAME, name="new_name")), new_name="b"
        )

        rows = DeltaTable(changing.published(FINDING)).to_pyarrow_table().to_pylist()
        assert sorted((row["ds"], row["old_name"], row["new_name"]) for row in rows) == [
            (MONDAY, "a", None),
            (TUESDAY, None, "b"),
        ]

    @pytest.mark.parametrize(
        "definition",
        [
            finding_with(OLD_NAME),
            replace(FINDING, columns=(OLD_NAME, *FINDING.columns)),
            replace(FINDING, columns=tuple(reversed(FINDING.columns))),
        ],
        ids=["a column less", "the first column less", "another order"],
    )
    def test_a_day_is_verified_by_the_columns_of_the_release_that_published_it(
        self, definition: Table, changing: Warehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish_as(monkeypatch, changing, MONDAY, definition, old_name="a", kind="of an older release")
        [of_monday] = Path(changing.published(FINDING)).rglob("*.parquet")
        publish_as(monkeypatch, changing, TUESDAY, FINDING, kind="new")

        assert all(table.is_as_published for table in fingerprint(changing.root, "shop"))

        rows = pq.read_table(of_monday)
        changed = pa.array(["changed"], rows.schema.field("kind").type)
        pq.write_table(rows.set_column(rows.schema.get_field_index("kind"), "kind", changed), of_monday)
        assert [
            (table.ds, table.table_name)
            for table in fingerprint(changing.root, "shop")
            if not table.is_as_published
        ] == [(MONDAY, "gold.finding")]

    def test_an_older_release_can_still_add_days(
        self, changing: Warehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish_as(monkeypatch, changing, MONDAY, FINDING)
        publish_as(monkeypatch, changing, TUESDAY, finding_with(OLD_NAME), old_name="newer")
        publish_as(monkeypatch, changing, WEDNESDAY, FINDING, kind="back")

        assert asked(changing, "SELECT ds, kind FROM finding ORDER BY ALL")[-1] == (WEDNESDAY, "back")

    def test_a_column_that_may_be_null_now_takes_nulls(
        self, changing: Warehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish_as(monkeypatch, changing, MONDAY, finding_with(OLD_NAME), old_name="a")
        publish_as(
            monkeypatch, changing, TUESDAY, finding_with(replace(OLD_NAME, nullable=True)), old_name=None
        )

        rows = DeltaTable(changing.published(FINDING)).to_pyarrow_table(columns=["old_name"])["old_name"]
        assert sorted(rows.to_pylist(), key=str) == [None, "a"]

    @pytest.mark.parametrize("new_type", ["int", "bigint", "array<string>", "timestamp"])
    def test_another_type_is_refused_in_one_sentence_before_anything_is_written(
        self, new_type: str, changing: Warehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish_as(monkeypatch, changing, MONDAY, finding_with(OLD_NAME), old_name="a")
        before = published_state(changing)

        with pytest.raises(
            StagingError,
            match=r"gold/finding/? has string in the column old_name, where this release has .*: publish",
        ) as raised:
            publish_as(
                monkeypatch,
                changing,
                TUESDAY,
                finding_with(replace(OLD_NAME, type=new_type, nullable=True)),  # type: ignore[arg-type]
            )

        assert "\n" not in str(raised.value)
        assert published_state(changing) == before

    def test_verdicts_of_refused_days_get_new_columns_too(
        self, older_warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        quarantine(older_warehouse, CLUSTER, WEDNESDAY, [])
        wider = replace(
            publish_module.GATE_RESULT,
            columns=(*publish_module.GATE_RESULT.columns, replace(OLD_NAME, nullable=True)),
        )
        monkeypatch.setattr(publish_module, "GATE_RESULT", wider)

        quarantine(older_warehouse, CLUSTER, WEDNESDAY, [])

        names = [field.name for field in DeltaTable(older_warehouse.quarantine(wider)).schema().fields]
        assert "old_name" in names

    def test_a_stage_of_an_older_release_is_refused(self, changing: Warehouse) -> None:
        stage_day(changing)
        folder = Path(changing.stage("shop", MONDAY, "only").table(QUEUE_ASSIGNMENT))
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

        with pytest.raises(
            StagingError, match=r"has no gold\.queue_assignment, so another release computed it"
        ):
            publish(changing, "shop", MONDAY)
        assert published_state(changing) == {}
