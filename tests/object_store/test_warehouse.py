"""Days computed and published in an object store have the rows of days on a disk, also with concurrent publishers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rebalance_ledger.storage.location import ObjectPath
from rebalance_ledger.warehouse.commits import PUBLISHED_TABLES
from tests.object_store.conftest import ROOT, SAMPLE, Ledger

pytestmark = [pytest.mark.e2e_cluster, pytest.mark.timeout(2400)]

_SETTINGS = str(ROOT / "conf" / "ledger.yaml")
# The second is compared with the first, in its owners and in its offset files.
_DAYS = ("2026-11-16", "2026-11-17")


@pytest.fixture(scope="module")
def in_the_store(ledger: Ledger) -> str:
    """Write the exports and tables of the sample's first two days to the store; return the warehouse.

    The days are computed together, by tasks of Spark that read the store and write to it.
    """
    warehouse = f"{ledger.place}/warehouse"
    for day in _DAYS:
        ledger("exports", "upload", str(SAMPLE / "shop-prod" / day), f"--exports={ledger.exports}")
    ledger(
        "backfill", "--cluster=shop-prod", f"--from={_DAYS[0]}", f"--to={_DAYS[1]}", f"--exports={ledger.exports}",
        f"--settings={_SETTINGS}", f"--warehouse={warehouse}",
    )  # fmt: skip
    return warehouse


@pytest.fixture(scope="module")
def on_a_disk(ledger: Ledger, tmp_path_factory: pytest.TempPathFactory) -> str:
    warehouse = str(tmp_path_factory.mktemp("disk") / "warehouse")
    for day in _DAYS:
        ledger(
            "run", "--cluster=shop-prod", f"--ds={day}", f"--exports={SAMPLE}", f"--settings={_SETTINGS}",
            f"--warehouse={warehouse}",
        )  # fmt: skip
    return warehouse


def _fingerprint(ledger: Ledger, warehouse: str) -> list[str]:
    return ledger("fingerprint", "--cluster=shop-prod", f"--warehouse={warehouse}").splitlines()


def test_the_rows_equal_those_on_a_disk(ledger: Ledger, in_the_store: str, on_a_disk: str) -> None:
    assert _fingerprint(ledger, in_the_store) == _fingerprint(ledger, on_a_disk)


def test_publishing_again_changes_nothing(ledger: Ledger, in_the_store: str) -> None:
    before = _fingerprint(ledger, in_the_store)
    output = ledger(
        "step", "publish", "--cluster=shop-prod", f"--ds={_DAYS[1]}", f"--exports={ledger.exports}",
        f"--warehouse={in_the_store}",
    )  # fmt: skip
    assert "0 tables changed" in output
    assert _fingerprint(ledger, in_the_store) == before


def test_two_days_published_concurrently_are_both_visible(
    ledger: Ledger, in_the_store: str, in_store: str
) -> None:
    new = f"{in_store}/published-at-once"
    # Copy the computed and evaluated stages into a warehouse without tables.
    stages = ObjectPath.of(f"{in_the_store}/staging")
    for path in stages.files():
        (ObjectPath.of(f"{new}/staging") / path).write((stages / path).open().read())

    def publish(day: str) -> str:
        return ledger(
            "step", "publish", "--cluster=shop-prod", f"--ds={day}", f"--exports={ledger.exports}",
            f"--warehouse={new}",
        )  # fmt: skip

    with ThreadPoolExecutor(2) as pool:
        output = list(pool.map(publish, _DAYS))
    # The first publisher created the tables; the second had no row for some of them.
    assert sorted(f"{len(PUBLISHED_TABLES)} tables changed" in each for each in output) == [False, True]
    assert all("tables changed" in each for each in output)
    assert _fingerprint(ledger, new) == _fingerprint(ledger, in_the_store)


def test_sql_answers_equal_those_on_a_disk(ledger: Ledger, in_the_store: str, on_a_disk: str) -> None:
    question = "SELECT ds, kind, count(*) FROM finding GROUP BY ALL ORDER BY ALL"
    answers = [ledger("sql", f"--warehouse={place}", question) for place in (in_the_store, on_a_disk)]
    assert "2026-11-17" in answers[0]
    assert answers[0] == answers[1]


def test_explain_output_equals_that_on_a_disk(ledger: Ledger, in_the_store: str, on_a_disk: str) -> None:
    in_store, on_disk = (
        ledger("explain", "order-service", f"--warehouse={place}").replace(place, "")
        for place in (in_the_store, on_a_disk)
    )
    assert "order-service in shop-prod" in in_store
    assert in_store == on_disk


def test_maintenance_keeps_every_row(ledger: Ledger, in_the_store: str) -> None:
    before = _fingerprint(ledger, in_the_store)
    ledger("maintain", "--apply", f"--warehouse={in_the_store}", f"--settings={_SETTINGS}")
    assert _fingerprint(ledger, in_the_store) == before


def test_a_location_without_a_warehouse_is_reported(ledger: Ledger) -> None:
    assert "There is no warehouse at" in ledger("summary", f"--warehouse={ledger.place}/none", ends_with=2)
