"""Leases of writers in an object store, including those of dead writers."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rebalance_ledger.storage import lease
from rebalance_ledger.storage.engines import storage_options
from rebalance_ledger.storage.lease import LeaseLostError, hold_lease
from rebalance_ledger.storage.location import ObjectPath
from rebalance_ledger.tables import GATE_RESULT
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.commits import writer_lock
from rebalance_ledger.warehouse.data_files import data_files
from rebalance_ledger.warehouse.errors import WriteError
from rebalance_ledger.warehouse.layout import Warehouse
from tests.object_store.server import object_store
from tests.support.staging_fixtures import MONDAY, TUESDAY, result

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(600)]


def test_rows_without_a_staged_file_replace_those_of_their_day_only(in_store: str) -> None:
    place = f"{in_store}/results/gate_result"

    def publish(ds: date, run_id: str) -> None:
        rows = commits.rows_of(GATE_RESULT, "shop", ds, [result(run_id=run_id)])
        commits.replace_day(commits.open_table(place), place, GATE_RESULT, ClusterDay("shop", ds), rows)

    publish(MONDAY, "one")
    publish(TUESDAY, "two")
    publish(TUESDAY, "three")

    delta = commits.open_table(place)
    assert delta is not None
    rows = commits.rows_of_version(place, delta, GATE_RESULT, None).to_table(columns=["ds", "run_id"])
    assert sorted(rows.to_pylist(), key=lambda row: row["ds"]) == [
        {"ds": MONDAY, "run_id": "one"},
        {"ds": TUESDAY, "run_id": "three"},
    ]


def test_merged_days_keep_their_rows_and_one_of_them_can_be_replaced(in_store: str) -> None:
    place = f"{in_store}/merged/gate_result"
    week = [MONDAY + timedelta(days=number) for number in range(7)]

    def opened() -> DeltaTable:
        delta = commits.open_table(place)
        assert delta is not None
        return delta

    def publish(ds: date, run_id: str) -> None:
        rows = commits.rows_of(GATE_RESULT, "shop", ds, [result(run_id=run_id)])
        commits.replace_day(commits.open_table(place), place, GATE_RESULT, ClusterDay("shop", ds), rows)

    def run_ids(day: ClusterDay | None) -> list[str]:
        rows = commits.rows_of_version(place, opened(), GATE_RESULT, day).to_table(columns=["run_id"])
        return sorted(rows["run_id"].to_pylist())

    for ds in week:
        publish(ds, f"{ds}")
    commits.merge_files(opened(), place, GATE_RESULT, [data_files(opened())])

    [merged] = data_files(opened())
    assert (merged.first_ds, merged.last_ds) == (week[0], week[-1])
    assert run_ids(None) == [f"{ds}" for ds in week]
    assert run_ids(ClusterDay("shop", week[3])) == [f"{week[3]}"]
    publish(week[3], "new")
    assert run_ids(ClusterDay("shop", week[3])) == ["new"]
    assert run_ids(None) == [*(f"{ds}" for ds in week if ds != week[3]), "new"]


class TestSeveralWriters:
    @pytest.fixture
    def root(self, in_store: str) -> str:
        return f"{in_store}/turns"

    def test_concurrent_commits_are_all_kept(self, root: str) -> None:
        place = f"{root}/table"
        options = storage_options(place)
        write_deltalake(place, pa.table({"writer": [-1]}), storage_options=options)
        begin = threading.Barrier(3)

        def append(writer: int) -> None:
            begin.wait()
            for _ in range(5):
                write_deltalake(place, pa.table({"writer": [writer]}), mode="append", storage_options=options)

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(append, range(3)))
        rows = DeltaTable(place, storage_options=options).to_pyarrow_table().column("writer").to_pylist()
        assert sorted(rows) == [-1, *([0] * 5), *([1] * 5), *([2] * 5)]

    def test_only_one_writer_at_a_time_holds_the_lease(self, root: str) -> None:
        inside: list[int] = []
        most: list[int] = []

        def work(writer: int) -> None:
            with hold_lease(f"{root}/one"):
                inside.append(writer)
                most.append(len(inside))
                inside.remove(writer)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert most == [1] * 4

    def test_the_lease_of_a_lost_writer_expires(self, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lease, "_LEASE_TTL_S", 0.5)
        monkeypatch.setattr(lease, "_POLL_INTERVAL_S", 0.1)
        left_behind = ObjectPath.of(f"{root}/gone/publishing.json")
        left_behind.write(json.dumps({"writer": "killed"}).encode())
        with hold_lease(f"{root}/gone"):
            assert b"killed" not in left_behind.open().read()
        assert not left_behind.is_file()

    def test_a_writer_that_lost_its_lease_stops_writing(
        self, root: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lease, "_RENEW_INTERVAL_S", 0.05)
        taken_over = ObjectPath.of(f"{root}/slow/publishing.json")
        renewed = threading.Event()
        with hold_lease(f"{root}/slow") as mine:
            mine.check()
            # Overwrite the lease, as another writer does after this one has not renewed it for a long time.
            taken_over.write(b'{"writer": "another"}')
            while mine.is_ours:
                renewed.wait(0.05)
            with pytest.raises(LeaseLostError, match="another"):
                mine.check()
        assert taken_over.open().read() == b'{"writer": "another"}'


@pytest.mark.parametrize("condition", ["If-None-Match", "If-Match"])
def test_a_store_that_ignores_conditional_writes_is_not_written(
    condition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with object_store(tmp_path, "lake", condition) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        warehouse = Warehouse("s3a://lake/warehouse")
        with (
            pytest.raises(WriteError, match=f"the store ignores {condition} when an object is put"),
            writer_lock(warehouse),
        ):
            pytest.fail("somebody writes")
        assert not list(ObjectPath.of(warehouse.root).files())
