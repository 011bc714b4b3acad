"""Computations of one day do not affect each other, and only an evaluated computation of the newest input is published."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.staging import (
    accepted_stage,
    attempt,
    newest_stage,
    remove_superseded,
    reserved,
)
from tests.support.staging_fixtures import MONDAY, owners, stage_day

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.at(str(tmp_path / "warehouse"))


def attempts(warehouse: Warehouse) -> set[str]:
    return {path.name for path in Path(warehouse.attempts("shop", MONDAY)).iterdir() if path.is_dir()}


def test_two_computations_of_a_day_have_separate_folders(warehouse: Warehouse) -> None:
    with attempt(warehouse, "shop", MONDAY) as one, attempt(warehouse, "shop", MONDAY) as other:
        assert one.root != other.root
        assert attempts(warehouse) == {one.attempt, other.attempt}


def test_an_incomplete_computation_is_not_the_newest(warehouse: Warehouse) -> None:
    stage_day(warehouse, attempt="before")
    with attempt(warehouse, "shop", MONDAY):
        assert newest_stage(warehouse, "shop", MONDAY).attempt == "before"


def test_a_late_computation_of_the_same_input_does_not_block_the_evaluated_one(warehouse: Warehouse) -> None:
    stage_day(warehouse, attempt="judged", run_id="same")
    stage_day(warehouse, attempt="late", run_id="same", verdict=None)

    assert newest_stage(warehouse, "shop", MONDAY).attempt == "late"
    assert accepted_stage(warehouse, "shop", MONDAY).stage.attempt == "judged"


def test_a_verdict_is_not_for_another_input(warehouse: Warehouse) -> None:
    stage_day(warehouse, attempt="judged", run_id="before")
    stage_day(warehouse, attempt="late", run_id="after", verdict=None)

    with pytest.raises(StagingError, match="run the gate again"):
        accepted_stage(warehouse, "shop", MONDAY)


def test_a_refusal_of_the_newest_is_not_forgotten_for_an_older_approval(warehouse: Warehouse) -> None:
    stage_day(warehouse, attempt="good")
    stage_day(warehouse, attempt="bad", verdict="refused")

    with pytest.raises(StagingError, match="refused"):
        accepted_stage(warehouse, "shop", MONDAY)


def test_superseded_stages_are_removed_and_newest_evaluated_or_unfinished_ones_are_kept(
    warehouse: Warehouse,
) -> None:
    stage_day(warehouse, attempt="old")
    stage_day(warehouse, attempt="judged", queue_assignment=owners("c1"))
    stage_day(warehouse, attempt="newest", verdict=None)
    with attempt(warehouse, "shop", MONDAY) as growing:
        remove_superseded(warehouse, "shop", MONDAY)

        assert attempts(warehouse) == {"judged", "newest", growing.attempt}


def _compute_until_killed(root: str, started: Connection) -> None:
    with attempt(Warehouse.at(root), "shop", MONDAY) as stage:
        started.send(stage.attempt)
        signal.pause()


def test_the_next_computation_removes_files_of_killed_computations_only(
    warehouse: Warehouse,
) -> None:
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    killed = context.Process(target=_compute_until_killed, args=(warehouse.root, there))
    killed.start()
    left = here.recv()
    with attempt(warehouse, "shop", MONDAY) as living:
        assert attempts(warehouse) == {left, living.attempt}
        assert killed.pid is not None
        os.kill(killed.pid, signal.SIGKILL)
        killed.join()
        with attempt(warehouse, "shop", MONDAY) as next_one:
            assert attempts(warehouse) == {living.attempt, next_one.attempt}


def test_a_day_is_reserved_for_one_application_until_it_ends(warehouse: Warehouse) -> None:
    with reserved(warehouse, "shop", MONDAY) as is_reserved:
        assert is_reserved
        with (
            reserved(warehouse, "shop", MONDAY) as is_reserved_twice,
            reserved(warehouse, "other", MONDAY) as is_other_reserved,
        ):
            assert (is_reserved_twice, is_other_reserved) == (False, True)

    here, there = multiprocessing.Pipe()
    killed = multiprocessing.get_context("spawn").Process(
        target=_reserve_until_killed, args=(warehouse.root, there)
    )
    killed.start()
    assert here.recv()
    with reserved(warehouse, "shop", MONDAY) as is_reserved:
        assert not is_reserved
    assert killed.pid is not None
    os.kill(killed.pid, signal.SIGKILL)
    with reserved(warehouse, "shop", MONDAY, is_waiting=True) as is_reserved:
        assert is_reserved
    killed.join()


def _reserve_until_killed(root: str, parent: Connection) -> None:
    with reserved(Warehouse.at(root), "shop", MONDAY) as is_reserved:
        parent.send(is_reserved)
        signal.pause()
