"""A refused computation of a day is published after approval, and only that computation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rebalance_ledger.cli.failures import BAD_INPUT, REFUSED
from rebalance_ledger.tables import GATE_RESULT, QUEUE_ASSIGNMENT
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.layout import Warehouse
from tests.support.command_line import ledger
from tests.support.computed_days import asked
from tests.support.staging_fixtures import MONDAY, let_gate_find, stage_measured_day

Row = dict[str, Any]

TWO_OWNERS = "queue_assignment.one_owner"
STRANGER = "queue_assignment.owner_is_member"


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Return a warehouse with only two tables per day: all tables are published in the same way, and each takes time."""
    monkeypatch.setattr(commits, "PUBLISHED_TABLES", (QUEUE_ASSIGNMENT, GATE_RESULT))
    return Warehouse.at(str(tmp_path / "warehouse"))


@pytest.fixture(scope="module")
def refused_once(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Return a warehouse with a computation that the gate refused for two owners of a queue."""
    warehouse = Warehouse.at(str(tmp_path_factory.mktemp("refused") / "warehouse"))
    with pytest.MonkeyPatch.context() as patched:
        stage_measured_day(patched, warehouse, {TWO_OWNERS: 2.0})
        assert day_command(warehouse, "step", "gate") == REFUSED
    return warehouse


@pytest.fixture
def refused(refused_once: Warehouse, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Return a copy of the warehouse with the refused computation. The gate would refuse it again."""
    shutil.copytree(refused_once.root, warehouse.root)
    let_gate_find(monkeypatch, {TWO_OWNERS: 2.0})
    return warehouse


def day_command(warehouse: Warehouse, *words: str) -> int:
    return ledger(*words, "--cluster=shop", f"--ds={MONDAY}", f"--warehouse={warehouse.root}")


def approve(warehouse: Warehouse, *options: str, name: str = "ana", reason: str = "ticket 7") -> int:
    return day_command(warehouse, "gate", "approve", f"--approved-by={name}", f"--reason={reason}", *options)


def test_an_approved_day_is_published_with_name_and_reason(
    refused: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    assert day_command(refused, "step", "publish") == BAD_INPUT

    assert approve(refused, "--run-id=run-1", reason="two racks,\n ticket 7 <b>") == 0
    options = f"--cluster shop --ds {MONDAY} --warehouse {refused.root}"
    assert f"run `ledger step gate {options}` and `ledger step publish {options}`; add" in (
        capsys.readouterr().out
    )
    assert day_command(refused, "step", "publish") == BAD_INPUT, "an approval alone publishes nothing"
    assert day_command(refused, "step", "gate") == 0
    assert day_command(refused, "step", "publish") == 0

    assert asked(refused, "SELECT gate_verdict FROM publication") == [("approved",)]
    assert asked(
        refused,
        "SELECT expectation_id, outcome, is_success, approved_by, approval_reason FROM gate_result WHERE outcome NOT IN ('passed', 'skipped')",
    ) == [(TWO_OWNERS, "approved", False, "ana", "two racks, ticket 7 <b>")]
    assert asked(refused, "SELECT client_id FROM queue_assignment") == [("c1",)]
    capsys.readouterr()
    assert day_command(refused, "gate", "show") == 0
    shown = capsys.readouterr().out
    assert "shop 2026-11-16: approved (run run-1" in shown
    assert "failed and approved: 1, by ana: two racks, ticket 7 <b>\n" in shown
    text = Path(refused.data_docs_index("shop", MONDAY)).read_text(encoding="utf-8")
    assert "Approved by ana: two racks, ticket 7 &lt;b&gt;." in text


def test_the_same_computation_is_accepted_again_and_no_other(
    monkeypatch: pytest.MonkeyPatch, refused: Warehouse
) -> None:
    approve(refused)
    day_command(refused, "step", "gate")
    day_command(refused, "step", "publish")
    published = asked(refused, "SELECT * FROM gate_result ORDER BY expectation_id")

    assert day_command(refused, "step", "gate") == 0
    assert day_command(refused, "step", "publish") == 0
    assert asked(refused, "SELECT * FROM gate_result ORDER BY expectation_id") == published

    stage_measured_day(monkeypatch, refused, {TWO_OWNERS: 2.0}, run_id="run-2")
    assert day_command(refused, "step", "gate") == REFUSED
    assert asked(refused, "SELECT DISTINCT run_id FROM gate_result") == [("run-1",)]


def test_violations_other_than_the_approved_still_refuse_the_day(
    monkeypatch: pytest.MonkeyPatch, refused: Warehouse
) -> None:
    approve(refused)

    stage_measured_day(monkeypatch, refused, {TWO_OWNERS: 2.0, STRANGER: 1.0})

    assert day_command(refused, "step", "gate") == REFUSED
    assert asked(refused, "SELECT DISTINCT approved_by FROM quarantine.gate_result") == [(None,)]


@pytest.mark.parametrize(
    ("violations", "sentence"),
    [
        (
            {},
            "There is no refusal of shop 2026-11-16 to approve: the verdict on the newest computation is passed.",
        ),
        ({TWO_OWNERS: None}, f"cannot be approved, because {TWO_OWNERS} was not measured"),
    ],
)
def test_an_impossible_approval_is_refused_in_one_sentence_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch,
    warehouse: Warehouse,
    capsys: pytest.CaptureFixture[str],
    violations: dict[str, float | None],
    sentence: str,
) -> None:
    stage_measured_day(monkeypatch, warehouse, violations)
    day_command(warehouse, "step", "gate")

    assert_not_approved(warehouse, capsys, sentence)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--run-id=run-0",), "the refused computation is now run-1 and not run-0"),
        (("--reason= ",), "An approval needs the name of a person and a reason."),
    ],
)
def test_an_incomplete_approval_or_one_of_another_run_is_refused_and_writes_nothing(
    refused: Warehouse, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], sentence: str
) -> None:
    assert_not_approved(refused, capsys, sentence, *options)


def assert_not_approved(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str], sentence: str, *options: str
) -> None:
    capsys.readouterr()

    assert approve(warehouse, *options) == BAD_INPUT

    assert sentence in capsys.readouterr().err.replace("\n", " ")
    assert not Path(warehouse.approval("shop", MONDAY)).exists()


def test_a_day_without_a_verdict_cannot_be_approved(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    assert approve(warehouse) == BAD_INPUT
    assert "the gate has not judged a computation that is still staged" in capsys.readouterr().err.replace(
        "\n", " "
    )


def test_a_computation_after_the_refusal_is_evaluated_first(
    monkeypatch: pytest.MonkeyPatch, refused: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    stage_measured_day(monkeypatch, refused, {TWO_OWNERS: 2.0}, run_id="run-2")

    assert approve(refused) == BAD_INPUT
    assert "was computed again after the refusal" in capsys.readouterr().err.replace("\n", " ")


def test_a_damaged_approval_is_reported_in_one_sentence(
    refused: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    approve(refused)
    file = Path(refused.approval("shop", MONDAY))
    file.write_text(json.dumps({"run_id": "run-1", "approved_by": "ana"}), encoding="utf-8")
    capsys.readouterr()

    assert day_command(refused, "step", "gate") == BAD_INPUT
    assert (
        f"{file} is damaged ('reason' is not a text): remove it, and approve the day again."
        in capsys.readouterr().err
    )
