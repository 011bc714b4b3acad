"""Days with a fault in one group's assignment are published without that group if the settings allow it.

The fault simulates a defect of the code: each strategy gives the group's first queue a second, unconnected owner.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import lit

from rebalance_ledger.pipeline import steps
from rebalance_ledger.pipeline.steps import RefusedError
from rebalance_ledger.tables import TABLES_OF_GROUPS
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.staging import judged_stage
from spark_jobs import build as build_module
from tests.support.command_line import ledger
from tests.support.computed_days import asked, compute, copy_stage, published_state
from tests.support.three_days import (
    BAD,
    CLUSTER,
    GROUPS,
    MONDAY,
    QUARANTINE,
    THURSDAY,
    TUESDAY,
    ThreeDays,
    with_a_second_owner,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rebalance_ledger.pipeline.day import Day

# Slow: these tests compute days.
pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.nightly]


def test_the_day_is_published_without_the_group_which_is_listed_with_its_violations(
    three_days: ThreeDays,
) -> None:
    assert asked(three_days.warehouse, "SELECT ds, gate_verdict FROM publication ORDER BY ds") == [
        (MONDAY, "passed"),
        (TUESDAY, "passed_with_quarantine"),
        (THURSDAY, "passed_with_warnings"),
    ]
    for table in TABLES_OF_GROUPS:
        groups = (
            f"SELECT DISTINCT ds, consumer_group FROM {table.qualified_name} WHERE consumer_group IS NOT NULL"  # noqa: S608 - our own name
        )
        found = set(asked(three_days.warehouse, groups))
        assert (TUESDAY, BAD) not in found, table.name
        assert {(ds, group) for ds, group in found if ds == MONDAY} >= {
            (MONDAY, group) for ds, group in found if ds == TUESDAY
        }
    listed = asked(three_days.warehouse, "SELECT ds, consumer_group, expectation_id FROM quarantined_group")
    assert {(TUESDAY, BAD, f"queue_assignment.{rule}") for rule in ("one_owner", "owner_is_member")} <= set(
        listed
    )
    assert {row[:2] for row in listed} == {(TUESDAY, BAD)}


def test_adjacent_days_show_no_false_changes(three_days: ThreeDays) -> None:
    states = asked(
        three_days.warehouse,
        "SELECT DISTINCT ds, consumer_group, state FROM assignment_churn WHERE is_effective",
    )
    unknown = {(ds, group) for ds, group, state in states if state == "unknown_on_baseline"}
    assert unknown == {(THURSDAY, BAD)}
    assert {state for ds, group, state in states if ds > MONDAY and group in set(GROUPS) - {BAD}} == {
        "compared"
    }
    compared = asked(
        three_days.warehouse,
        "SELECT ds, outcome, examples FROM gate_result WHERE baseline_ds IS NOT NULL AND outcome <> 'passed'",
    )
    assert compared == [(THURSDAY, "failed", ["group gone"])]


def test_gate_show_lists_quarantined_groups_and_what_to_do(
    three_days: ThreeDays, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"--warehouse={three_days.warehouse.root}"
    assert ledger("gate", "show", f"--cluster={CLUSTER}", "--ds=2026-11-17", place) == 0

    message = capsys.readouterr().out
    assert "shop-test 2026-11-17: passed_with_quarantine (run " in message
    assert "quarantined groups: 1; with them the gate would have refused the day\n" in message
    assert f"quarantined: group {BAD}, by queue_assignment.one_owner\n" in message
    assert "what to do: The ledger may be wrong about this group" in message


def test_a_rerun_of_the_day_changes_no_row(three_days: ThreeDays, tmp_path: Path) -> None:
    own = replace(three_days, warehouse=Warehouse.at(str(tmp_path / "warehouse")))
    shutil.copytree(three_days.warehouse.root, own.warehouse.root)
    before = published_state(own.warehouse)

    own.run(TUESDAY)

    assert published_state(own.warehouse) == before


def refusal(day: Day, settings: str) -> str:
    """Return the gate's message for a staged day that it refuses with these settings."""
    assert day.settings_file is not None
    day.settings_file.write_text(settings)
    with pytest.raises(RefusedError) as refused:
        steps.gate(day)
    return str(refused.value)


@pytest.fixture
def tuesday(three_days: ThreeDays, tmp_path: Path) -> Day:
    """Return a copy of Tuesday's staging area and of its baseline's files in a separate warehouse, with separate settings."""
    place = tmp_path / "warehouse"
    staged = copy_stage(three_days.day(TUESDAY), place)
    for schema in ("silver", "gold"):
        shutil.copytree(
            f"{three_days.warehouse.root}/{schema}",
            place / schema,
            ignore=shutil.ignore_patterns("_delta_log"),
        )
    return replace(staged, settings_file=tmp_path / "own.yaml")


def test_without_the_setting_the_whole_day_is_refused(tuesday: Day) -> None:
    output = refusal(tuesday, "clusters: {}\n")

    assert "fails queue_assignment.one_owner" in output
    assert "quarantined" not in output


def test_a_waiver_readmits_the_group_without_another_build(tuesday: Day) -> None:
    waived = "".join(
        f"{{expectation: {name}, expires_on: 2026-12-01, approved_by: ana, reason: known}}, "
        for name in {row["expectation_id"] for row in quarantined(tuesday)}
    )
    assert tuesday.settings_file is not None
    tuesday.settings_file.write_text(QUARANTINE % f", waivers: [{waived}]")

    verdict = steps.gate(tuesday)

    assert verdict.verdict == "passed"
    assert verdict.quarantined == []


def quarantined(day: Day) -> list[dict[str, Any]]:
    judged = judged_stage(day.warehouse, day.cluster, day.ds)
    assert judged is not None
    return judged.quarantined


def test_more_violating_groups_than_allowed_refuse_the_whole_day(tuesday: Day) -> None:
    output = refusal(tuesday, QUARANTINE % ", limits: {quarantined_group.count_within_limit: 0.1}")

    assert (
        "note: no group is quarantined, because the day also fails quarantined_group.count_within_limit without it's -- "
        in output
    )


def test_groups_that_the_build_did_not_know_are_one_sentence(tuesday: Day, three_days: ThreeDays) -> None:
    kinds = asked(
        three_days.warehouse, "SELECT DISTINCT ds, kind FROM finding WHERE consumer_group = 'orders-a'"
    )
    raised = ", ".join(f"{kind}: block" for ds, kind in kinds if ds == TUESDAY)
    assert raised

    output = refusal(
        tuesday, QUARANTINE % f", findings: {{{raised}}}, limits: {{quarantined_group.count_within_limit: 1}}"
    )

    assert "which alone refuse it under the current settings: build it again" in output


def test_a_violation_without_a_group_refuses_the_whole_day(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ThreeDays.below(tmp_path, spark)
    monkeypatch.setattr(build_module, "queue_assignment", with_a_second_owner(build_module.queue_assignment))
    spread = build_module.producer_spread
    monkeypatch.setattr(
        build_module, "producer_spread", lambda silver: spread(silver).withColumn("share", lit(0.7))
    )
    day = own.day(MONDAY)
    compute(spark, day)

    with pytest.raises(RefusedError) as refused:
        steps.gate(day)

    assert "fails producer_spread.shares_add_up" in str(refused.value)
    assert (
        "no group is quarantined, because some failed expectations of this day do not belong to a group"
        in str(refused.value)
    )
    assert published_state(own.warehouse) == {}
