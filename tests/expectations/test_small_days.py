"""The gate measures a small day in memory and without optimizing its statements, with the same result."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.pipeline import gate_metrics
from rebalance_ledger.pipeline.gate_input import sources_of
from rebalance_ledger.pipeline.gate_metrics import gate_database_of, measure
from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.staging import read_build
from tests.conftest import SAMPLE_DAYS
from tests.support.computed_days import newest, sample_day

if TYPE_CHECKING:
    from rebalance_ledger.warehouse.layout import Warehouse


@pytest.mark.spark
@pytest.mark.parametrize("excluded_groups", [(), ("order-service",)], ids=["whole", "without a group"])
def test_a_small_day_gives_the_same_metrics_as_a_large_one(
    sample_warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, excluded_groups: tuple[str, ...]
) -> None:
    day = sample_day(SAMPLE_DAYS[-1], sample_warehouse)
    stage = newest(day)
    sources = sources_of(day, day.settings, stage, read_build(stage))
    metrics = []
    for small_export_bytes in (0, 1_000_000_000):
        monkeypatch.setattr(gate_metrics, "_SMALL_EXPORT_BYTES", small_export_bytes)
        with gate_database_of(stage, sources) as database:
            whole = measure(database, stage)
            measured = measure(database, stage, excluded_groups) if excluded_groups else whole
            metrics.append(sorted(measured, key=lambda row: str(row["expectation_id"])))

    large, small = metrics
    assert small == large
    assert len(large) > 200


@pytest.mark.spark
@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        (
            "1MB",
            "needs more than 1MB of memory, and nothing is published: set LEDGER_GATE_MEMORY to a larger size",
        ),
        ("much", "LEDGER_GATE_MEMORY is 'much': write a size, for example 1200MB or 4GB"),
    ],
)
def test_a_gate_without_enough_memory_ends_in_one_sentence(
    sample_warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, limit: str, sentence: str
) -> None:
    monkeypatch.setenv("LEDGER_GATE_MEMORY", limit)
    monkeypatch.setattr(gate_metrics, "_SMALL_EXPORT_BYTES", 0)
    day = sample_day(SAMPLE_DAYS[-1], sample_warehouse)
    stage = newest(day)

    with (
        pytest.raises(StagingError, match=re.escape(sentence)),
        gate_database_of(stage, sources_of(day, day.settings, stage, read_build(stage))) as database,
    ):
        measure(database, stage)


def test_lines_are_read_in_batches_that_duckdb_does_not_join() -> None:
    """DuckDB joins batches of less than 64 rows: with lines of 28 kB, the gate of 270 MB then needed more than its memory."""
    short, long = ["x"] * 5_000_000, ["x" * 200_000] * 300

    assert [len(batch) for batch in gate_metrics._batches(iter(long))] == [128, 128, 44]
    assert [len(batch) for batch in gate_metrics._batches(iter(short))] == [1024 * 1024] * 4 + [
        5_000_000 % (1024 * 1024)
    ]
