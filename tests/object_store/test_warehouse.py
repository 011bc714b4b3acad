"""A warehouse in an object store: the rows of one on a disk, several writers, writers that are gone."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import obstore
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from obstore.store import S3Store

from tests.object_store.conftest import EXPORTS, ROOT, SAMPLE, Ledger
from topology.object_store import ObjectPath
from warehouse import turn as turns
from warehouse.commits import PUBLISHED_TABLES
from warehouse.storage import storage_options
from warehouse.turn import TurnLostError, turn

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]

_SETTINGS = str(ROOT / "conf" / "ledger.yaml")
_WAREHOUSE = "s3a://lake/warehouse"
# The second is compared with the first, in its owners and in its offset files.
_DAYS = ("2026-11-16", "2026-11-17")


@pytest.fixture(scope="module")
def in_the_store(ledger: Ledger) -> str:
    """The sample's first two days, exports and tables in the store; gives the warehouse."""
    for day in _DAYS:
        ledger("exports", "land", str(SAMPLE / "shop-prod" / day), f"--exports={EXPORTS}")
        _run(ledger, day, EXPORTS, _WAREHOUSE)
    return _WAREHOUSE


@pytest.fixture(scope="module")
def on_a_disk(ledger: Ledger, tmp_path_factory: pytest.TempPathFactory) -> str:
    warehouse = str(tmp_path_factory.mktemp("disk") / "warehouse")
    for day in _DAYS:
        _run(ledger, day, str(SAMPLE), warehouse)
    return warehouse


def _run(ledger: Ledger, day: str, exports: str, warehouse: str) -> None:
    ledger(
        "run", "--cluster=shop-prod", f"--ds={day}", f"--exports={exports}", f"--settings={_SETTINGS}",
        f"--warehouse={warehouse}",
    )  # fmt: skip


def _fingerprint(ledger: Ledger, warehouse: str) -> list[str]:
    return ledger("fingerprint", "--cluster=shop-prod", f"--warehouse={warehouse}").splitlines()


def test_the_rows_are_those_of_a_disk(ledger: Ledger, in_the_store: str, on_a_disk: str) -> None:
    assert _fingerprint(ledger, in_the_store) == _fingerprint(ledger, on_a_disk)


def test_publishing_again_changes_nothing(ledger: Ledger, in_the_store: str) -> None:
    before = _fingerprint(ledger, in_the_store)
    said = ledger(
        "stage", "publish", "--cluster=shop-prod", f"--ds={_DAYS[1]}", f"--exports={EXPORTS}",
        f"--warehouse={in_the_store}",
    )  # fmt: skip
    assert "0 tables changed" in said
    assert _fingerprint(ledger, in_the_store) == before


def test_two_days_that_are_published_at_the_same_time_are_both_there(
    ledger: Ledger, in_the_store: str, in_store: str
) -> None:
    new = f"s3a://{in_store}/published-at-once"
    # What has been computed and judged, in a warehouse that has no tables yet.
    stages = ObjectPath.of(f"{in_the_store}/stage")
    for path in stages.files():
        (ObjectPath.of(f"{new}/stage") / path).write((stages / path).open().read())

    def publish(day: str) -> str:
        return ledger(
            "stage", "publish", "--cluster=shop-prod", f"--ds={day}", f"--exports={EXPORTS}",
            f"--warehouse={new}",
        )  # fmt: skip

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(publish, _DAYS))
    assert all(f"{len(PUBLISHED_TABLES)} tables changed" in each for each in said)
    assert _fingerprint(ledger, new) == _fingerprint(ledger, in_the_store)


def test_it_answers_in_sql_as_one_on_a_disk(ledger: Ledger, in_the_store: str, on_a_disk: str) -> None:
    question = "SELECT ds, kind, count(*) FROM finding GROUP BY ALL ORDER BY ALL"
    answers = [ledger("sql", f"--warehouse={place}", question) for place in (in_the_store, on_a_disk)]
    assert "2026-11-17" in answers[0]
    assert answers[0] == answers[1]


def test_maintenance_leaves_every_row(ledger: Ledger, in_the_store: str) -> None:
    before = _fingerprint(ledger, in_the_store)
    ledger("maintain", "--apply", f"--warehouse={in_the_store}", f"--settings={_SETTINGS}")
    assert _fingerprint(ledger, in_the_store) == before


def test_a_place_without_a_warehouse_says_so(ledger: Ledger) -> None:
    assert "There is no warehouse at" in ledger("summary", "--warehouse=s3a://lake/none", ends_with=2)


@pytest.mark.usefixtures("in_store")
class TestSeveralWriters:
    """What holds writers apart, and what happens when one of them is gone."""

    root = "s3a://lake/turns"

    def test_commits_that_race_are_all_there(self) -> None:
        place = f"{self.root}/table"
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

    def test_one_at_a_time_has_the_turn(self) -> None:
        inside: list[int] = []
        most: list[int] = []

        def work(writer: int) -> None:
            with turn(f"{self.root}/one"):
                inside.append(writer)
                most.append(len(inside))
                inside.remove(writer)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert most == [1] * 4

    def test_a_writer_that_is_gone_is_waited_for_and_then_forgotten(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(turns, "_FORSAKEN_AFTER_S", 0.5)
        monkeypatch.setattr(turns, "_LOOKED_AT_EVERY_S", 0.1)
        left_behind = ObjectPath.of(f"{self.root}/gone/publishing.json")
        left_behind.write(json.dumps({"writer": "killed"}).encode())
        with turn(f"{self.root}/gone"):
            assert b"killed" not in left_behind.open().read()
        assert not left_behind.is_file()

    def test_a_writer_that_was_overtaken_writes_no_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(turns, "_RENEWED_EVERY_S", 0.05)
        taken_over = ObjectPath.of(f"{self.root}/slow/publishing.json")
        renewed = threading.Event()
        with turn(f"{self.root}/slow") as mine:
            mine.check()
            # As another does that has not heard of this one for long.
            obstore.put(_bucket(), taken_over.key.partition("/")[2], b'{"writer": "another"}')
            while mine.is_ours:
                renewed.wait(0.05)
            with pytest.raises(TurnLostError, match="another"):
                mine.check()
        assert taken_over.open().read() == b'{"writer": "another"}'


def _bucket() -> S3Store:
    said = storage_options("s3a://lake") or {}
    return S3Store(
        "lake",
        config={"endpoint": said["AWS_ENDPOINT_URL"], "region": said["AWS_REGION"]},
        client_options={"allow_http": True},
    )
