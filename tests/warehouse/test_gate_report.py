"""`ledger gate show` prints the latest gate result for a day and the next step."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.cli.failures import BAD_INPUT
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish, quarantine
from rebalance_ledger.warehouse.staging import newest_stage, write_verdict
from tests.support.command_line import ledger
from tests.support.staging_fixtures import MONDAY, TUESDAY, result, stage_day

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]

FAILED = result("queue_assignment.one_owner", is_success=False) | {
    "severity": "block",
    "outcome": "failed",
    "expectation": "One owner.",
    "observed": 2.0,
    "threshold_max": 0.0,
    "examples": ["group a", "group <b>\x1b[31m"],
}
RAISED = FAILED | {"expectation_id": "finding.no_unowned"}
WAIVED = FAILED | {
    "expectation_id": "finding.kind_known",
    "outcome": "waived",
    "waiver": "2 waived until 2026-12-01 by ana: ticket 7",
}
GONE = FAILED | {
    "expectation_id": "broker.brokers_still_there",
    "severity": "warn",
    "baseline_ds": MONDAY,
    "examples": ["broker broker-a"],
}
NOT_COMPARED = result("topic_route.topics_still_there") | {"outcome": "skipped", "severity": "warn"}


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.at(str(tmp_path / "warehouse"))


def judged(warehouse: Warehouse, verdict: str, *rows: Row) -> None:
    """Stage Tuesday, and write this gate verdict for it."""
    stage_day(warehouse, TUESDAY, verdict=None)
    stage = newest_stage(warehouse, "shop", TUESDAY)
    write_verdict(warehouse, "shop", TUESDAY, stage, verdict, [result(), *rows])


def forget_stage(warehouse: Warehouse) -> None:
    """Remove the staging areas of Tuesday, as maintenance does after their retention period."""
    shutil.rmtree(warehouse.attempts("shop", TUESDAY))


def shown(warehouse: Warehouse, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    code = ledger(
        "gate", "show", "--cluster", "shop", "--ds", "2026-11-17", "--warehouse", warehouse.root, *options
    )
    output = capsys.readouterr()
    assert code == 0, output.err
    return output.out


def test_a_refusal_is_shown_with_examples_waivers_and_what_to_do(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    judged(warehouse, "refused", FAILED, RAISED, WAIVED, GONE, NOT_COMPARED)

    output = shown(warehouse, capsys)

    assert output.startswith("shop 2026-11-17: refused (run run-1, from the staging area ")
    assert "passed: 1, waived: 1, failed: 3\n" in output
    assert "baseline: 2026-11-16\n" in output
    assert (
        "failed (block): queue_assignment.one_owner\n  One owner.\n  found 2, allowed 0\n  - group a\n"
        in output
    )
    assert "group <b>\\x1b[31m" in output
    assert "what to do: The ledger may be wrong" in output
    assert "docs/findings/unowned.md" in output
    assert "waived (block): finding.kind_known" in output
    assert "waiver: 2 waived until 2026-12-01 by ana: ticket 7" in output
    assert "what to do: Compare the two exports" in output
    assert "skipped: 1; there is no baseline day\n" in output


def test_machine_readable_output_has_a_row_for_each_violated_expectation(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    judged(warehouse, "passed_with_warnings", GONE, NOT_COMPARED)

    rows = json.loads(shown(warehouse, capsys, "--format", "json"))

    assert [(row["expectation_id"], row["outcome"]) for row in rows] == [
        ("broker.brokers_still_there", "failed"),
        ("topic_route.topics_still_there", "skipped"),
    ]
    assert rows[0]["baseline_ds"] == "2026-11-16"
    assert shown(warehouse, capsys, "--format", "csv").startswith("outcome,severity,expectation_id,")


def test_without_a_stage_the_published_verdict_is_shown(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    judged(warehouse, "passed_with_warnings", GONE)
    publish(warehouse, "shop", TUESDAY)
    forget_stage(warehouse)

    output = shown(warehouse, capsys)

    assert "2026-11-17: passed_with_warnings (run run-1, from gold.gate_result)" in output
    assert "broker broker-a" in output


def test_without_a_stage_a_refusal_takes_precedence_over_the_published_verdict(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    judged(warehouse, "passed")
    publish(warehouse, "shop", TUESDAY)
    quarantine(warehouse, "shop", TUESDAY, [result(), FAILED])
    forget_stage(warehouse)

    assert "2026-11-17: refused (run run-1, from quarantine.gate_result)" in shown(warehouse, capsys)


def test_a_recomputed_day_is_reported_as_such(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    judged(warehouse, "refused", FAILED)
    stage_day(warehouse, TUESDAY, run_id="run-2", verdict=None, attempt="second")

    assert "computed again and not yet evaluated" in shown(warehouse, capsys)


def test_a_day_without_a_gate_result_is_reported_in_one_sentence(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    code = ledger(
        "gate", "show", "--cluster", "the shop", "--ds", "2026-11-17", "--warehouse", warehouse.root
    )

    assert code == BAD_INPUT
    [sentence] = capsys.readouterr().err.splitlines()
    assert sentence.startswith("The gate has no result for the shop 2026-11-17 in ")
    assert f"`ledger run --cluster 'the shop' --ds 2026-11-17 --warehouse {warehouse.root}`" in sentence
