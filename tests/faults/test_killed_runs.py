"""A run killed at any point does not change what readers see, and the next run gives the same result as an undisturbed one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, PUBLICATION, SILVER_TABLES
from tests.support.fault_injection import Strike
from tests.support.ledger_process import TUESDAY

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ledger_process import Days

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200)]

_WRITE, _POINTER, _REPLACE = (
    "spark_jobs.staging:write_table",
    "rebalance_ledger.warehouse.staging:write_record",
    "rebalance_ledger.warehouse.commits:replace_day",
)

IN_THE_BUILD = [
    Strike("spark_jobs.silver.parsed_lines:parse_batches", 1, "within"),
    Strike("spark_jobs.silver.reader:stage_files", 1, "before"),
    Strike("spark_jobs.silver.reader:stage_files", len(SILVER_TABLES), "after"),
    Strike(_WRITE, 1, "within"),
    Strike("spark_jobs.build:write_work", 2, "before"),
    Strike(_WRITE, len(COMPUTED_GOLD_TABLES), "within"),
    Strike("spark_jobs.staged_day:inventory_of_stage", 1, "before"),
    Strike("spark_jobs.staged_day:inventory_of_stage", 1, "after"),
    Strike(_POINTER, 1, "after"),
    Strike(_POINTER, 2, "after"),
]
IN_THE_GATE = [
    Strike("rebalance_ledger.pipeline.gate_input:measure", 1, "before"),
    Strike("rebalance_ledger.pipeline.gate_input:measure", 1, "after"),
    Strike(_POINTER, 1, "before"),
    Strike(_POINTER, 1, "after"),
    Strike(_POINTER, 2, "after"),
]
AFTER_THE_PUBLICATION = [
    Strike("rebalance_ledger.warehouse.publish:_record", 1, "after"),
    Strike("rebalance_ledger.warehouse.commits:checkpoint_if_due", 2, "after"),
    Strike("rebalance_ledger.warehouse.publish:remove_superseded", 1, "before"),
    Strike("rebalance_ledger.warehouse.publish:remove_superseded", 1, "after"),
]


def strikes_in_the_publication(days: Days) -> list[Strike]:
    """Return strikes before, within and after the writes of Tuesday's tables; tables without rows of Tuesday are not written."""
    rows = [line.split() for line in days.contents[1] if line.startswith(f"{TUESDAY} ")]
    table_count = sum(int(count) > 0 and name != PUBLICATION.qualified_name for _, name, count, _ in rows)
    return [
        *(Strike(_REPLACE, nth, "before") for nth in range(1, table_count + 2, 5)),
        *(
            Strike("rebalance_ledger.warehouse.commits:give_to_table", nth, "after")
            for nth in range(2, table_count, 7)
        ),
        # The gate's results, and `publication`.
        *(Strike("rebalance_ledger.warehouse.commits:write_to_table", nth, "after") for nth in (1, 2)),
        *(Strike(_REPLACE, nth, "after") for nth in (3, table_count)),
        Strike("rebalance_ledger.warehouse.commits:_restore_interrupted", 1, "after"),
    ]


def test_a_day_whose_computation_is_killed_repeatedly_gives_the_same_result(
    days: Days, tmp_path: Path
) -> None:
    ledger = days.monday.copied_to(tmp_path)
    before, after = days.contents
    for strike in IN_THE_BUILD:
        ledger.run("run", strike=strike, expect=-9)
        assert ledger.fingerprint() == before, strike
    ledger.run("run")
    assert ledger.fingerprint() == after
    # Only the published one of all those attempts remains.
    attempts = [
        path
        for path in (ledger.warehouse / "staging" / "simulated" / "2026-11-17").iterdir()
        if path.is_dir()
    ]
    assert len(attempts) == 1


@pytest.mark.e2e
@pytest.mark.nightly
def test_a_killed_gate_gives_its_verdict_on_the_next_run(days: Days, tmp_path: Path) -> None:
    ledger = days.judged.copied_to(tmp_path)
    before, after = days.contents
    for strike in IN_THE_GATE:
        ledger.run("step", "gate", strike=strike, expect=-9)
        assert ledger.fingerprint() == before, strike
    ledger.run("step", "gate")
    ledger.run("step", "publish")
    assert ledger.fingerprint() == after


@pytest.mark.e2e
def test_a_publication_killed_anywhere_makes_the_day_visible_completely_or_not_at_all(
    days: Days, tmp_path: Path
) -> None:
    ledger = days.judged.copied_to(tmp_path)
    before, after = days.contents
    for strike in strikes_in_the_publication(days):
        ledger.run("step", "publish", strike=strike, expect=-9)
        assert ledger.fingerprint() == before, strike
    ledger.run("step", "publish")
    assert ledger.fingerprint() == after


@pytest.mark.parametrize("strike", AFTER_THE_PUBLICATION, ids=str)
def test_a_publisher_killed_after_its_last_commit_has_published(
    days: Days, tmp_path: Path, strike: Strike
) -> None:
    ledger = days.judged.copied_to(tmp_path)
    _, after = days.contents
    ledger.run("step", "publish", strike=strike, expect=-9)
    assert ledger.fingerprint() == after
    ledger.run("step", "publish")
    assert ledger.fingerprint() == after


def test_a_killed_republication_leaves_the_old_day_complete(days: Days, tmp_path: Path) -> None:
    """The new export of the same day is published for all tables or for none."""
    ledger = days.tuesday.copied_to(tmp_path)
    _, after = days.contents
    changed = ledger.with_another_tuesday(tmp_path)
    changed.run("run", strike=Strike("rebalance_ledger.pipeline.steps:publish"), expect=-9)
    for nth in (1, 5, 9):
        changed.run("step", "publish", strike=Strike(_REPLACE, nth, "after"), expect=-9)
        assert changed.fingerprint() == after
    changed.run("step", "publish")
    assert changed.fingerprint() != after
    ledger.run("run")
    assert ledger.fingerprint() == after
