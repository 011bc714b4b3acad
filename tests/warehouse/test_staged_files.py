"""Staged files become files of the published tables: no row is copied, and all readers see the same rows."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import given
from hypothesis import strategies as st

from rebalance_ledger.tables import PUBLICATION, QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse import staged_files
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.data_files import data_files
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.maintenance import RetentionPolicy, maintain
from rebalance_ledger.warehouse.publish import publish
from rebalance_ledger.warehouse.staged_files import statistics, write_to_table
from rebalance_ledger.warehouse.staging import newest_stage, write_verdict
from tests.support.computed_days import asked
from tests.support.staging_fixtures import MONDAY, TUESDAY, owners, record_again, result, stage_day

if TYPE_CHECKING:
    from rebalance_ledger.warehouse.layout import StagingArea

HOSTILE = "pay/eu =1%'; --"
CLIENTS = "SELECT client_id FROM queue_assignment ORDER BY 1"


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.at(str(tmp_path / "warehouse"))


def published_files(warehouse: Warehouse, cluster: str = "shop", ds: date = MONDAY) -> list[Path]:
    place = warehouse.published(QUEUE_ASSIGNMENT)
    return [Path(place, file.path) for file in data_files(DeltaTable(place), ClusterDay(cluster, ds))]


def staged_file(warehouse: Warehouse, cluster: str = "shop", ds: date = MONDAY) -> Path:
    [file] = Path(newest_stage(warehouse, cluster, ds).table(QUEUE_ASSIGNMENT)).glob("*.parquet")
    return file


def judged_again(warehouse: Warehouse, stage: StagingArea) -> None:
    record_again(warehouse, "shop", MONDAY, stage)
    write_verdict(warehouse, "shop", MONDAY, newest_stage(warehouse, "shop", MONDAY), "passed", [result()])


@pytest.mark.parametrize("cluster", ["shop", HOSTILE])
def test_a_staged_file_is_published_without_a_copy_and_every_reader_reads_it(
    warehouse: Warehouse, cluster: str
) -> None:
    stage_day(warehouse, MONDAY, cluster, queue_assignment=owners("c1", "c2"))
    publish(warehouse, cluster, MONDAY)

    [file] = published_files(warehouse, cluster)
    assert file.samefile(staged_file(warehouse, cluster))
    assert not file.stat().st_mode & 0o222, "it is two files' content: nobody may write into it"
    wanted = [(cluster, MONDAY, "c1"), (cluster, MONDAY, "c2")]
    sql = "SELECT cluster, ds, client_id FROM {} ORDER BY client_id"
    assert asked(warehouse, sql.format("queue_assignment")) == wanted
    delta = DeltaTable(warehouse.published(QUEUE_ASSIGNMENT))
    with duckdb.connect() as connection:
        connection.register("rows", delta.to_pyarrow_table())
        assert connection.execute(sql.format("rows")).fetchall() == wanted
    answer = pa.table(QueryBuilder().register("rows", delta).execute(sql.format("rows")))
    assert [tuple(row.values()) for row in answer.to_pylist()] == wanted


def test_the_rows_outlive_the_stage(warehouse: Warehouse) -> None:
    stage_day(warehouse, MONDAY, queue_assignment=owners("c1"))
    publish(warehouse, "shop", MONDAY)
    staged_file(warehouse).unlink()

    assert asked(warehouse, CLIENTS) == [("c1",)]


def test_another_computation_of_a_day_replaces_its_files_alone(warehouse: Warehouse) -> None:
    for ds, client_id in ((MONDAY, "c1"), (TUESDAY, "c2")):
        stage_day(warehouse, ds, queue_assignment=owners(client_id))
        publish(warehouse, "shop", ds)
    of_tuesday = published_files(warehouse, ds=TUESDAY)
    stage_day(warehouse, MONDAY, run_id="again", attempt="again", queue_assignment=owners("c3"))
    publish(warehouse, "shop", MONDAY)

    assert asked(warehouse, CLIENTS) == [("c2",), ("c3",)]
    assert published_files(warehouse, ds=TUESDAY) == of_tuesday


def test_the_files_of_a_day_without_rows_are_removed(warehouse: Warehouse) -> None:
    stage_day(warehouse, MONDAY, queue_assignment=owners("c1"))
    publish(warehouse, "shop", MONDAY)
    stage_day(warehouse, MONDAY, run_id="again", attempt="again")
    publish(warehouse, "shop", MONDAY)

    assert asked(warehouse, CLIENTS) == []
    assert published_files(warehouse) == []


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK])
def test_where_files_cannot_be_linked_they_are_copied(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refused(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(staged_files.os, "link", refused)
    stage_day(warehouse, MONDAY, queue_assignment=owners("c1"))
    publish(warehouse, "shop", MONDAY)

    assert asked(warehouse, CLIENTS) == [("c1",)]
    assert not published_files(warehouse)[0].samefile(staged_file(warehouse))


def test_files_with_other_column_types_are_rewritten_in_the_types_of_the_table(warehouse: Warehouse) -> None:
    stage_day(warehouse, MONDAY, verdict=None, queue_assignment=owners("c1"))
    file = staged_file(warehouse)
    rows = pq.read_table(file)
    position = rows.schema.get_field_index("queue_id")
    pq.write_table(rows.set_column(position, "queue_id", rows["queue_id"].cast(pa.int64())), file)
    judged_again(warehouse, newest_stage(warehouse, "shop", MONDAY))

    publish(warehouse, "shop", MONDAY)

    [published] = published_files(warehouse)
    assert not published.samefile(file)
    assert pq.read_schema(published).field("queue_id").type == pa.int32()
    assert asked(warehouse, "SELECT queue_id FROM queue_assignment") == [(0,)]


def test_maintenance_merges_many_staged_files(warehouse: Warehouse) -> None:
    stage_day(
        warehouse, MONDAY, verdict=None, queue_assignment=owners(*(f"c{number}" for number in range(12)))
    )
    file = staged_file(warehouse)
    rows = pq.read_table(file)
    for number in range(rows.num_rows):
        pq.write_table(rows.slice(number, 1), file.with_name(f"part-{number:05}.parquet"))
    file.unlink()
    judged_again(warehouse, newest_stage(warehouse, "shop", MONDAY))
    publish(warehouse, "shop", MONDAY)
    assert len(published_files(warehouse)) == 12
    before = asked(warehouse, "SELECT * FROM queue_assignment ORDER BY ALL")

    month = timedelta(days=30)
    maintain(warehouse, RetentionPolicy(month, month, month, month), now=datetime.now(UTC), is_applied=True)

    assert len(published_files(warehouse)) == 1
    assert asked(warehouse, "SELECT * FROM queue_assignment ORDER BY ALL") == before


def test_a_publisher_that_ends_before_its_commit_leaves_files_that_maintenance_removes(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage_day(warehouse, MONDAY, queue_assignment=owners("c1"))
    publish(warehouse, "shop", MONDAY)
    version = DeltaTable(warehouse.published(PUBLICATION)).version()
    stage_day(warehouse, MONDAY, run_id="again", attempt="again", queue_assignment=owners("c2"))
    with monkeypatch.context() as patched:
        patched.setattr(staged_files, "_synchronize", _die)
        with pytest.raises(KeyboardInterrupt):
            publish(warehouse, "shop", MONDAY)
    assert asked(warehouse, CLIENTS) == [("c1",)]
    assert DeltaTable(warehouse.published(PUBLICATION)).version() == version

    nothing = timedelta()
    later = datetime.now(UTC) + timedelta(days=1)
    maintain(
        warehouse, RetentionPolicy(nothing, timedelta(days=9), nothing, nothing), now=later, is_applied=True
    )

    folder = Path(warehouse.published(QUEUE_ASSIGNMENT), "data")
    assert list(folder.iterdir()) == published_files(warehouse)
    publish(warehouse, "shop", MONDAY)
    assert asked(warehouse, CLIENTS) == [("c2",)]


def _die(folder: Path) -> None:
    raise KeyboardInterrupt(folder)


COLUMNS = {
    "number": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "part": (pa.float64(), st.floats(allow_nan=True, allow_infinity=True)),
    "text": (pa.string(), st.text(max_size=40)),
    "day": (pa.date32(), st.dates()),
    "moment": (
        pa.timestamp("us", tz="UTC"),
        st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001  # hypothesis takes bounds without a zone
    ),
    "flag": (pa.bool_(), st.booleans()),
}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in COLUMNS.items()}),
    min_size=1,
    max_size=12,
)


@given(rows=ROWS, rows_per_group=st.integers(1, 12))
def test_statistics_of_a_file_are_correct(rows: list[dict[str, Any]], rows_per_group: int) -> None:
    schema = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, row_group_size=rows_per_group)

    stats = json.loads(statistics(pq.read_metadata(pa.BufferReader(sink.getvalue()))))

    assert stats["numRecords"] == len(rows)
    for name in COLUMNS:
        values = [row[name] for row in rows if row[name] is not None]
        assert stats["nullCount"][name] == len(rows) - len(values)
        if name in stats["minValues"]:
            low, high = (_value(name, stats[side][name]) for side in ("minValues", "maxValues"))
            key = str.encode if name == "text" else lambda value: value
            assert all(key(low) <= key(value) <= key(high) for value in values)
    values = [row["number"] for row in rows if row["number"] is not None]
    assert stats["minValues"].get("number") == min(values, default=None)


def _value(name: str, bound: Any) -> Any:
    match name:
        case "day":
            return date.fromisoformat(bound)
        case "moment":
            return datetime.fromisoformat(bound)
        case _:
            return bound


WRITTEN_SCHEMA = pa.schema([pa.field("name", pa.string(), nullable=False), pa.field("rank", pa.int64())])


def reader_of(*names_of_batches: list[str | None]) -> pa.RecordBatchReader:
    batches = (
        pa.record_batch([pa.array(names, pa.string()), pa.array(range(len(names)))], schema=WRITTEN_SCHEMA)
        for names in names_of_batches
    )
    return pa.RecordBatchReader.from_batches(WRITTEN_SCHEMA, batches)


def test_rows_of_many_batches_are_written_to_one_file_in_their_order(tmp_path: Path) -> None:
    batches = [[f"{batch}-{row}" for row in range(40_000)] for batch in range(4)]
    [entry] = write_to_table(reader_of([], *batches, []), str(tmp_path), {"cluster": HOSTILE})

    assert pq.read_table(tmp_path / entry.path)["name"].to_pylist() == [
        name for names in batches for name in names
    ]
    assert (entry.size, entry.partition_values) == (
        (tmp_path / entry.path).stat().st_size,
        {"cluster": HOSTILE},
    )
    stats = json.loads(entry.stats)
    assert (stats["numRecords"], stats["minValues"]["rank"], stats["maxValues"]["rank"]) == (
        160_000,
        0,
        39_999,
    )


def test_no_rows_are_written_to_no_file(tmp_path: Path) -> None:
    assert write_to_table(reader_of([], []), str(tmp_path), {"cluster": "shop"}) == []
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_null_in_a_required_column_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(pa.ArrowInvalid, match="'name' is declared non-nullable but contains nulls"):
        write_to_table(reader_of(["a", None]), str(tmp_path), {"cluster": "shop"})
