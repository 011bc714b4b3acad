"""Days computed in any order come out as if they had been computed in order."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import pytest
from command_line import ledger
from computed_days import compute_and_publish
from export_builder import ExportBuilder

from ledger.backfill import ASKED_FOR, NO_EXPORT, DayOutcome, backfill, exit_code_of
from ledger.stages import Day
from ledger.stale import stale_days
from warehouse.fingerprint import TableDay, fingerprint
from warehouse.layout import Warehouse

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# Fifteen days are computed, one after the other: that is as long as all the other tests of these folders take.
FIFTEEN_DAYS = pytest.mark.e2e

CLUSTER = "shop-test"
DAYS = MONDAY, TUESDAY, WEDNESDAY = tuple(date(2026, 11, day) for day in (16, 17, 19))
MEMBERS = {MONDAY: ["c1", "c2"], TUESDAY: ["c1", "c2", "c3"], WEDNESDAY: ["c2", "c3"]}


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    """Three days on each of which other clients are there; the day before the last has no export."""
    return sealed(tmp_path / "exports")


def sealed(exports: Path, **members_of: list[str]) -> Path:
    """The three days, sealed anew, with other members where they are given by the day's name."""
    shutil.rmtree(exports / CLUSTER, ignore_errors=True)
    for ds in DAYS:
        export = ExportBuilder(CLUSTER, ds)
        export.route("orders", {"a": 4})
        export.group("g", ["orders"], members_of.get(f"{ds:%A}", MEMBERS[ds]), "a")
        export.seal(exports)
    return exports


@dataclass
class Ledger:
    """A warehouse of the three days whose backfills run in the tests' own Spark session."""

    spark: SparkSession
    exports: Path
    warehouse: Warehouse

    def backfill(self, first: date, last: date, *, is_reversed: bool = False) -> list[date]:
        """Gives the days that were run."""
        any_day = Day(CLUSTER, first, self.exports, self.warehouse, None)
        outcomes = backfill(any_day, first, last, is_reversed=is_reversed, run=self._run)
        return [outcome.ds for outcome in outcomes if outcome.outcome != NO_EXPORT]

    def _run(self, day: Day, why: str) -> DayOutcome:
        compute_and_publish(self.spark, day)
        return DayOutcome(day.ds, why, "published", 0, "")

    @property
    def tables(self) -> list[TableDay]:
        """What all published tables come to, of which none may be out of date."""
        assert stale_days(self.warehouse, CLUSTER) == ()
        return list(fingerprint(self.warehouse.root, CLUSTER))


@pytest.fixture(scope="module")
def in_order(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """The days computed in order; tests only read it."""
    folder = tmp_path_factory.mktemp("in-order")
    computed = Ledger(spark, sealed(folder / "exports"), Warehouse.at(str(folder / "warehouse")))
    assert computed.backfill(MONDAY, WEDNESDAY) == [MONDAY, TUESDAY, WEDNESDAY]
    return computed


@pytest.fixture
def empty(spark: SparkSession, exports: Path, tmp_path: Path) -> Ledger:
    """The same exports, and nothing published."""
    return Ledger(spark, exports, Warehouse.at(str(tmp_path / "warehouse")))


@FIFTEEN_DAYS
@pytest.mark.spark
def test_days_in_reverse_come_out_as_in_order(in_order: Ledger, empty: Ledger) -> None:
    ran = empty.backfill(MONDAY, WEDNESDAY, is_reversed=True)

    assert ran == [WEDNESDAY, TUESDAY, MONDAY, TUESDAY, WEDNESDAY]
    assert empty.tables == in_order.tables


@FIFTEEN_DAYS
@pytest.mark.spark
def test_days_one_by_one_in_any_order_come_out_as_in_order(in_order: Ledger, empty: Ledger) -> None:
    ran = [empty.backfill(ds, ds) for ds in (TUESDAY, WEDNESDAY, MONDAY, TUESDAY)]

    assert ran == [[TUESDAY], [WEDNESDAY], [MONDAY, TUESDAY], [TUESDAY]]
    assert empty.tables == in_order.tables


@FIFTEEN_DAYS
@pytest.mark.spark
def test_a_day_in_the_middle_from_another_export_takes_the_day_after_it_along(
    in_order: Ledger, empty: Ledger, tmp_path: Path
) -> None:
    shutil.copytree(in_order.warehouse.root, empty.warehouse.root)
    sealed(empty.exports, Tuesday=["c9"])

    assert empty.backfill(TUESDAY, TUESDAY) == [TUESDAY, WEDNESDAY]
    changed = set(empty.tables) - set(in_order.tables)
    assert {(line.ds, line.table_name) for line in changed} >= {
        (TUESDAY, "gold.queue_assignment"),
        (WEDNESDAY, "gold.assignment_churn"),
    }

    sealed(empty.exports)
    assert empty.backfill(TUESDAY, TUESDAY) == [TUESDAY, WEDNESDAY]
    assert empty.tables == in_order.tables


@pytest.mark.parametrize(
    ("codes", "worst"), [((0, 0), 0), ((0, 2), 2), ((2, 3, 0), 3), ((3, 1, 2), 1)], ids=str
)
def test_the_exit_code_is_that_of_the_worst_day(codes: tuple[int, ...], worst: int) -> None:
    outcomes = [DayOutcome(MONDAY, ASKED_FOR, "", code, "") for code in codes]

    assert exit_code_of([*outcomes, DayOutcome(TUESDAY, ASKED_FOR, NO_EXPORT, 0, "")]) == worst


@pytest.mark.parametrize("order", [(), ("--reversed",)])
def test_a_day_that_fails_does_not_stop_the_others_and_each_is_told_with_its_reason(
    order: tuple[str, ...], exports: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for ds in (MONDAY, WEDNESDAY):
        spoiled = exports / CLUSTER / str(ds) / "nameserver_routes.jsonl"
        spoiled.write_bytes(spoiled.read_bytes() + b"{}\n")
    (exports / CLUSTER / str(TUESDAY) / "manifest.json").unlink()

    code = ledger(
        "backfill",
        f"--cluster={CLUSTER}",
        "--from=2026-11-16",
        "--to=2026-11-19",
        f"--exports={exports}",
        f"--warehouse={tmp_path / 'warehouse'}",
        *order,
    )

    lines = capfd.readouterr().out.splitlines()
    assert code == 2
    assert [line.split()[0] for line in lines] == sorted(
        ("2026-11-16", "2026-11-17", "2026-11-18", "2026-11-19"), reverse=bool(order)
    )
    told = {line.split()[0]: line for line in lines}
    assert told["2026-11-17"] == "2026-11-17  no export  asked for"
    for ds in (MONDAY, WEDNESDAY):
        assert told[str(ds)].startswith(f"{ds}  bad input  asked for  ")
        assert "nameserver_routes.jsonl" in told[str(ds)]


def test_a_range_without_an_export_is_bad_input(
    exports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = ledger(
        "backfill",
        f"--cluster={CLUSTER}",
        "--from=2026-11-01",
        "--to=2026-11-03",
        f"--exports={exports}",
        f"--warehouse={tmp_path / 'warehouse'}",
    )

    assert code == 2
    assert f"No day from 2026-11-01 to 2026-11-03 has an export of {CLUSTER} in {exports}: land one.\n" in (
        capsys.readouterr().err
    )


def test_a_range_that_ends_before_it_begins_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert ledger("backfill", "--cluster=c", "--from=2026-11-02", "--to=2026-11-01") == 2

    assert "--from 2026-11-02 is after --to 2026-11-01" in " ".join(capsys.readouterr().err.split())
