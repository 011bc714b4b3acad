"""The gate refuses a staged day with injected faults and names them. Published rows do not change."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.cli.failures import REFUSED
from rebalance_ledger.pipeline import gate_input, steps
from rebalance_ledger.pipeline.steps import RefusedError
from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.layout import Warehouse
from tests.support.command_line import ledger
from tests.support.computed_days import (
    asked,
    copy_stage,
    newest,
    published_state,
    sample_day,
    staged_rows,
)
from tests.support.staging_fixtures import MONDAY, TABLES, record_again, write_staged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rebalance_ledger.pipeline.day import Day

pytestmark = pytest.mark.spark

Row = dict[str, Any]

STRANGER = "10.9.9.9@stranger"


@pytest.fixture(scope="module")
def published_once(sample_warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Day:
    """Return the first day of the sample, published in a separate warehouse of this module."""
    day = copy_stage(sample_day(MONDAY, sample_warehouse), tmp_path_factory.mktemp("published") / "warehouse")
    steps.publish(day)
    return day


@pytest.fixture
def published(published_once: Day, tmp_path: Path) -> Day:
    """Return the published day in a separate warehouse of the test."""
    shutil.copytree(published_once.warehouse.root, tmp_path / "warehouse")
    return replace(published_once, warehouse=Warehouse.at(str(tmp_path / "warehouse")))


def spoil(day: Day, table: str, change: Callable[[list[Row]], list[Row]]) -> None:
    """Change the staged rows of a table after the build."""
    place = newest(day).table(TABLES[table])
    write_staged(place, TABLES[table], day.cluster, day.ds, change(staged_rows(newest(day), table)))


def order_queue(queue_id: int, row: Row) -> bool:
    """Return whether the row is the effective one of this queue of `order-service`, which uses AVG."""
    return (
        row["is_effective"]
        and (row["consumer_group"], row["topic"]) == ("order-service", "order-events")
        and (row["broker_name"], row["queue_id"]) == ("hz@broker-a", queue_id)
    )


def the_row(rows: list[Row], queue_id: int) -> Row:
    [row] = [row for row in rows if order_queue(queue_id, row)]
    return row


def with_every_fault(rows: list[Row]) -> list[Row]:
    """Return the rows with a second owner, a missing queue, a foreign owner, and rows of another day and cluster."""
    foreign, elsewhere = the_row(rows, 2), the_row(rows, 3)
    return [
        *(
            {**row, "client_id": STRANGER} if row is foreign else row
            for row in rows
            if not order_queue(1, row)
        ),
        {**the_row(rows, 0), "client_id": "10.1.0.9@order-1"},
        {**elsewhere, "ds": MONDAY.replace(day=15)},
        {**elsewhere, "cluster": "pay-prod"},
    ]


FAULTS = {
    ("queue_assignment.one_owner", "10.1.0.9@order-1"),
    ("queue_assignment.queues_equal_route", "group order-service"),
    ("queue_assignment.owner_is_member", STRANGER),
    ("queue_assignment.one_cluster_and_day", "day 2026-11-15"),
    ("queue_assignment.one_cluster_and_day", "cluster pay-prod"),
}
"""Expectations that the day above violates, and an example that each must name."""


def test_injected_faults_are_refused_by_name_and_published_rows_do_not_change(
    spark: SparkSession, published: Day, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = published
    before = published_state(day.warehouse)
    kept = tmp_path / "stage"
    shutil.copytree(newest(day).root, kept)
    spoil(day, "queue_assignment", with_every_fault)
    record_again(day.warehouse, day.cluster, day.ds, newest(day))

    words = ["step", "gate", "--cluster", day.cluster, "--ds", str(day.ds), "--exports", str(day.exports)]
    code = ledger(*words, "--warehouse", day.warehouse.root)

    assert code == REFUSED == 3
    output = capsys.readouterr().err
    refused = asked(
        day.warehouse,
        "SELECT expectation_id, array_to_string(examples, ' ') FROM quarantine.gate_result WHERE NOT is_success",
    )
    for expectation, example in FAULTS:
        assert f"gold.queue_assignment fails {expectation}" in output
        assert example in output
        assert [name for name, examples in refused if name.startswith(expectation) and example in examples]
    with pytest.raises(StagingError, match="The gate refused the staging area"):
        steps.publish(day)
    assert published_state(day.warehouse) == before

    stage = newest(day)
    shutil.rmtree(stage.root)
    shutil.copytree(kept, stage.root)
    steps.gate(day)
    assert steps.publish(day).changed_tables == ()
    assert published_state(day.warehouse) == before
    assert asked(day.warehouse, "SELECT count(*) FROM quarantine.gate_result") == [(0,)]


def test_a_missing_metric_refuses_the_day(published: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a defect of the gate that loses a metric."""
    measure = gate_input.measure
    monkeypatch.setattr(
        gate_input,
        "measure",
        lambda *of_day: [
            row for row in measure(*of_day) if row["expectation_id"] != "queue_assignment.one_owner"
        ],
    )

    with pytest.raises(RefusedError, match=r"queue_assignment\.one_owner[^\n]*it was not measured"):
        steps.gate(published)
