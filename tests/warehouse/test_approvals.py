"""A refused computation of a day is published after a person approved it, and only that computation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebalance_ledger.cli.failures import BAD_INPUT, REFUSED
from rebalance_ledger.tables import GATE_RESULT, QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.layout import Warehouse
from tests.support.command_line import ledger
from tests.support.computed_days import asked
from tests.support.staging_fixtures import MONDAY, stage_measured_day

Row = dict[str, Any]

TWO_OWNERS = "queue_assignment.one_owner"
STRANGER = "queue_assignment.owner_is_member"


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """A warehouse where a day is two tables: all are published alike, and each takes its time."""
    monkeypatch.setattr(commits, "PUBLISHED_TABLES", (QUEUE_ASSIGNMENT, GATE_RESULT))
    return Warehouse.at(str(tmp_path / "warehouse"))


def day_command(warehouse: Warehouse, *words: str) -> int:
    return ledger(*words, "--cluster=shop", f"--ds={MONDAY}", f"--warehouse={warehouse.root}")


def approve(warehouse: Warehouse, *options: str, name: str = "ana", reason: str = "ticket 7") -> int:
    return day_command(warehouse, "gate", "approve", f"--approved-by={name}", f"--reason={reason}", *options)


def test_an_approved_day_is_published_with_name_and_reason(
    monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    stage_measured_day(monkeypatch, warehouse, {TWO_OWNERS: 2.0})
    assert day_command(warehouse, "step", "gate") == REFUSED
    assert day_command(warehouse, "step", "publish") == BAD_INPUT

    assert approve(warehouse, "--run-id=run-1", reason="two racks,\n ticket 7 <b>") == 0
    assert day_command(warehouse, "step", "publish") == BAD_INPUT, "an approval alone publishes nothing"
    assert day_command(warehouse, "step", "gate") == 0
    assert day_command(warehouse, "step", "publish") == 0

    assert asked(warehouse, "SELECT gate_verdict FROM publication") == [("approved",)]
    assert asked(
        warehouse,
        "SELECT expectation_id, outcome, is_success, approved_by, approval_reason FROM gate_result WHERE outcome NOT IN ('passed', 'skipped')",
    ) == [(TWO_OWNERS, "approved", False, "ana", "two racks, ticket 7 <b>")]
    assert asked(warehouse, "SELECT client_id FROM queue_assignment") == [("c1",)]
    capsys.readouterr()
    assert day_command(warehouse, "gate", "show") == 0
    shown = capsys.readouterr().out
    assert "shop 2026-11-16: approved (run run-1" in shown
    assert "1 failed and were approved by ana: two racks, ticket 7 <b>." in shown
    text = Path(warehouse.data_docs_index("shop", MONDAY)).read_text(encoding="utf-8")
    assert "Approved by ana: two racks, ticket 7 &lt;b&gt;." in text


def test_the_same_computation_is_accepted_again_and_no_other(
    monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse
) -> None:
    stage_measured_day(monkeypatch, warehouse, {TWO_OWNERS: 2.0})
    day_command(warehouse, "step", "gate")
    approve(warehouse)
    day_command(warehouse, "step", "gate")
    day_command(warehouse, "step", "publish")
    published = asked(warehouse, "SELECT * FROM gate_result ORDER BY expectation_id")

    assert day_command(warehouse, "step", "gate") == 0
    assert day_command(warehouse, "step", "publish") == 0
    assert asked(warehouse, "SELECT * FROM gate_result ORDER BY expectation_id") == published

    stage_measured_day(monkeypatch, warehouse, {TWO_OWNERS: 2.0}, run_id="run-2")
    assert day_command(warehouse, "step", "gate") == REFUSED
    assert asked(warehouse, "SELECT DISTINCT run_id FROM gate_result") == [("run-1",)]


def test_what_fails_besides_the_approved_still_refuses_the_day(
    monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse
) -> None:
    stage_measured_day(monkeypatch, warehouse, {TWO_OWNERS: 2.0})
    day_command(warehouse, "step", "gate")
    approve(warehouse)

    stage_measured_day(monkeypatch, warehouse, {TWO_OWNERS: 2.0, STRANGER: 1.0})

    assert day_command(warehouse, "step", "gate") == REFUSED
    assert asked(warehouse, "SELECT DISTINCT approved_by FROM quarantine.gate_result") == [(None,)]


@pytest.mark.parametrize(
    ("violations", "options", "sentence"),
    [
        (
            {},
            (),
            "There is no refusal of shop 2026-11-16 to approve: the verdict on the newest computation is passed.",
        ),
        ({TWO_OWNERS: None}, (), f"cannot be approved, because {TWO_OWNERS} was not measured"),
        ({TWO_OWNERS: 1.0}, ("--run-id=run-0",), "the refused computation is now run-1 and not run-0"),
        ({TWO_OWNERS: 1.0}, ("--reason= ",), "An approval needs the name of a person and a reason."),
    ],
)
def test_what_cannot_be_approved_is_a_sentence_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch,
    warehouse: Warehouse,
    capsys: pytest.CaptureFixture[str],
    violations: dict[str, float | None],
    options: tuple[str, ...],
    sentence: str,
) -> None:
    stage_measured_day(monkeypatch, warehouse, violations)
    day_command(warehouse, "step", "gate")
    capsys.readouterr()

    assert approve(warehouse, *options) == BAD_INPUT

    assert sentence in capsys.readouterr().err.replace("\n", " ")
    assert not Path(warehouse.approval("shop", MONDAY)).exists()


def test_a_day_that_was_not_judged_cannot_be_approved(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    assert approve(warehouse) == BAD_INPUT
    assert "the gate has not judged a computation that is still staged" in capsys.readouterr().err.replace(
        "\n", " "
    )


def test_a_computation_after_the_refusal_is_judged_first(
    monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    stage_measured_day(monkeypatch, warehouse, {TWO_OWNERS: 2.0})
    day_command(warehouse, "step", "gate")
    stage_measured_day(monkeypatch, warehouse, {TWO_OWNERS: 2.0}, run_id="run-2")

    assert approve(warehouse) == BAD_INPUT
    assert "was computed again after the refusal" in capsys.readouterr().err.replace("\n", " ")


def test_a_damaged_approval_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    stage_measured_day(monkeypatch, warehouse, {TWO_OWNERS: 2.0})
    day_command(warehouse, "step", "gate")
    approve(warehouse)
    file = Path(warehouse.approval("shop", MONDAY))
    file.write_text(json.dumps({"run_id": "run-1", "approved_by": "ana"}), encoding="utf-8")
    capsys.readouterr()

    assert day_command(warehouse, "step", "gate") == BAD_INPUT
    assert (
        f"{file} is damaged ('reason' is not a text): remove it, and approve the day again."
        in capsys.readouterr().err
    )
