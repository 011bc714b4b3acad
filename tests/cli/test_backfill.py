"""Days computed in any order give the same tables as days computed in order."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.cli.backfill import report_published
from rebalance_ledger.pipeline.backfill import (
    ASKED_FOR,
    NO_EXPORT,
    NO_REPORT,
    PUBLISHED,
    UP_TO_DATE,
    DayOutcome,
    backfill,
    exit_code_of,
)
from rebalance_ledger.pipeline.steps import RefusedError
from rebalance_ledger.warehouse.layout import Warehouse
from tests.conftest import SAMPLE_DAYS
from tests.support.command_line import ledger
from tests.support.computed_days import SAMPLE_EXPORTS, SETTINGS_FILE, sample_day
from tests.support.three_days import CLUSTER, MONDAY, THURSDAY, TUESDAY, ThreeDays, sealed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from rebalance_ledger.pipeline.day import Day


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    """Return the exports of three days. There is no export of the day before the last one."""
    return sealed(tmp_path / "exports")


@pytest.mark.e2e
@pytest.mark.nightly
@pytest.mark.spark
def test_days_in_reverse_give_the_same_tables_as_in_order(
    three_days: ThreeDays, spark: SparkSession, tmp_path: Path
) -> None:
    """The tables are equal even if a group was quarantined on one of the days."""
    own = ThreeDays.below(tmp_path, spark)

    ran = own.backfill(MONDAY, THURSDAY, is_reversed=True)

    assert ran == [THURSDAY, TUESDAY, MONDAY, TUESDAY, THURSDAY]
    assert own.tables == three_days.tables


@pytest.mark.e2e
@pytest.mark.nightly
@pytest.mark.spark
def test_days_run_one_by_one_in_any_order_and_from_a_replaced_export_give_the_same_tables(
    three_days: ThreeDays, spark: SparkSession, tmp_path: Path
) -> None:
    own = ThreeDays.below(tmp_path, spark)
    sealed(own.exports, Tuesday=["c9"])

    ran = [own.backfill(ds, ds) for ds in (TUESDAY, THURSDAY, MONDAY)]
    # The baseline of Thursday is Tuesday, whose rows do not depend on Monday.
    assert ran == [[TUESDAY], [THURSDAY], [MONDAY, TUESDAY]]
    others = set(own.tables) - set(three_days.tables)
    assert {(line.ds, line.table_name) for line in others} >= {
        (TUESDAY, "gold.queue_assignment"),
        (THURSDAY, "gold.assignment_churn"),
    }

    sealed(own.exports)
    assert own.backfill(TUESDAY, TUESDAY) == [TUESDAY, THURSDAY]
    assert own.tables == three_days.tables


@pytest.mark.e2e
@pytest.mark.nightly
@pytest.mark.spark
def test_a_refused_day_is_no_baseline_and_later_days_are_recomputed_once_it_is_published(
    three_days: ThreeDays, spark: SparkSession, tmp_path: Path
) -> None:
    own = ThreeDays.below(tmp_path, spark)
    refused = []

    def run(day: Day, why: str, ahead: Iterable[Day]) -> DayOutcome:
        del ahead
        try:
            if day.ds == TUESDAY and not refused:
                own.run_without_quarantine(day.ds)
            else:
                own.run(day.ds)
        except RefusedError as error:
            refused.append(day.ds)
            return DayOutcome(day.cluster, day.ds, why, "refused", 3, str(error))
        return DayOutcome(day.cluster, day.ds, why, "published", 0, "")

    outcomes = list(backfill(own.day(MONDAY), MONDAY, THURSDAY, is_reversed=False, run=run))
    assert [(outcome.ds, outcome.outcome) for outcome in outcomes if outcome.outcome != NO_EXPORT] == [
        (MONDAY, "published"),
        (TUESDAY, "refused"),
        (THURSDAY, "published"),
    ]
    assert {table.ds for table in own.tables} == {MONDAY, THURSDAY}
    assert own.backfill(TUESDAY, TUESDAY) == [TUESDAY, THURSDAY]
    assert own.tables == three_days.tables


@pytest.mark.parametrize(
    ("codes", "worst"), [((0, 0), 0), ((0, 2), 2), ((2, 3, 0), 3), ((3, 1, 2), 1)], ids=str
)
def test_the_exit_code_is_that_of_the_worst_day(codes: tuple[int, ...], worst: int) -> None:
    outcomes = [DayOutcome(CLUSTER, MONDAY, ASKED_FOR, "", code, "") for code in codes]

    assert exit_code_of([*outcomes, DayOutcome(CLUSTER, TUESDAY, ASKED_FOR, NO_EXPORT, 0, "")]) == worst


@pytest.mark.parametrize("order", [(), ("--reversed",)])
def test_a_failed_day_does_not_stop_the_others_and_each_failure_is_reported_with_its_reason(
    order: tuple[str, ...], exports: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for ds in (MONDAY, THURSDAY):
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
    output = {line.split()[0]: line for line in lines}
    assert output["2026-11-17"] == "2026-11-17  no export  asked for"
    for ds in (MONDAY, THURSDAY):
        assert output[str(ds)].startswith(f"{ds}  bad input  asked for  ")
        assert "nameserver_routes.jsonl" in output[str(ds)]


def test_several_clusters_are_computed_in_parallel_and_named(
    exports: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spoiled = exports / CLUSTER / str(THURSDAY) / "nameserver_routes.jsonl"
    spoiled.write_bytes(spoiled.read_bytes() + b"{}\n")
    shutil.copytree(exports / CLUSTER, exports / "other")

    code = ledger(
        "backfill",
        *(f"--cluster={cluster}" for cluster in (CLUSTER, "other", CLUSTER)),
        f"--from={THURSDAY}",
        f"--to={THURSDAY}",
        f"--exports={exports}",
        f"--warehouse={tmp_path / 'warehouse'}",
    )

    written = capfd.readouterr()
    assert code == 2
    assert [line.split("  ")[:3] for line in written.out.splitlines()] == [
        [cluster, str(THURSDAY), "bad input"] for cluster in (CLUSTER, "other")
    ]
    assert f"2 days are computed side by side, to other {THURSDAY}.\n" in written.err


@pytest.mark.spark
def test_days_that_are_published_and_up_to_date_can_be_skipped(
    sample_warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    code = ledger(
        "backfill",
        "--cluster=shop-prod",
        "--from=2026-11-16",
        "--to=2026-11-18",
        f"--exports={SAMPLE_EXPORTS}",
        f"--warehouse={sample_warehouse.root}",
        f"--settings={SETTINGS_FILE}",
        "--skip-published",
    )

    assert code == 0
    assert [line.split("  ")[:2] for line in capsys.readouterr().out.splitlines()] == [
        [f"2026-11-{day}", "up to date"] for day in (16, 17, 18)
    ]


@pytest.mark.spark
def test_only_days_with_another_export_are_run_where_published_days_are_skipped(
    sample_warehouse: Warehouse, tmp_path: Path
) -> None:
    exports = tmp_path / "exports"
    shutil.copytree(SAMPLE_EXPORTS, exports)
    first, second, third = SAMPLE_DAYS
    manifest = exports / "shop-prod" / str(second) / "manifest.json"
    manifest.write_text(f"{manifest.read_text(encoding='utf-8')}\n", encoding="utf-8")

    def refuse(day: Day, why: str, ahead: Iterable[Day]) -> DayOutcome:
        assert list(ahead) == []
        return DayOutcome(day.cluster, day.ds, why, "refused", 3, "")

    day = replace(sample_day(first, sample_warehouse), exports=exports)
    outcomes = backfill(day, first, third, is_reversed=False, run=refuse, is_published_skipped=True)

    assert [(outcome.ds, outcome.outcome) for outcome in outcomes] == [
        (first, UP_TO_DATE),
        (second, "refused"),
        (third, UP_TO_DATE),
    ]


@pytest.mark.spark
def test_a_report_that_cannot_be_written_is_reported_and_the_day_stays_published(
    sample_warehouse: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = Warehouse.at(str(tmp_path / "warehouse"))
    shutil.copytree(sample_warehouse.root, warehouse.root, ignore=shutil.ignore_patterns("data_docs"))
    day = replace(sample_day(SAMPLE_DAYS[0], sample_warehouse), warehouse=warehouse)
    pages = Path(warehouse.pages(day.cluster, day.ds))
    published = DayOutcome(day.cluster, day.ds, ASKED_FOR, PUBLISHED, 0, "")

    assert report_published(day, published) is None
    assert (pages / "report.html").is_file()
    assert f"{day.cluster} {day.ds}: Problems of the day: " in capsys.readouterr().err

    shutil.rmtree(pages)
    pages.touch()
    failed = report_published(day, published)

    assert failed is not None
    assert (failed.outcome, failed.exit_code) == (NO_REPORT, 1)
    assert failed.reason.startswith("The day is published, and its report was not written: ")
    assert failed.reason in capsys.readouterr().err


def test_an_invalid_cluster_among_several_is_refused_before_any_day_is_run(
    exports: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = ledger(
        "backfill",
        f"--cluster={CLUSTER}",
        "--cluster=a/b",
        f"--from={THURSDAY}",
        f"--to={THURSDAY}",
        f"--exports={exports}",
        f"--warehouse={tmp_path / 'warehouse'}",
    )

    assert code == 2
    written = capfd.readouterr()
    assert written.out == ""
    assert written.err == (
        "No such export:\n- the cluster's name 'a/b' cannot be the name of a folder; give the name of one cluster\n"
    )


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
