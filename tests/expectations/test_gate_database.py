"""The database of the gate: small days in memory with the same result, the limit of its memory, and its time zone."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from expectations.measurement import gate_database
from expectations.suites.metrics import METRIC_STATEMENTS
from rebalance_ledger.exports.catalog import EarlierExport
from rebalance_ledger.exports.manifest import MANIFEST_NAME
from rebalance_ledger.exports.sealing import seal
from rebalance_ledger.pipeline import gate_metrics
from rebalance_ledger.pipeline.gate_input import sources_of
from rebalance_ledger.pipeline.gate_metrics import gate_database_of, measure, show_tables
from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.sandbox import SANDBOX_CONFIG
from rebalance_ledger.warehouse.staging import read_build
from tests.conftest import SAMPLE_DAYS
from tests.support.computed_days import newest, sample_day

if TYPE_CHECKING:
    from pathlib import Path

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
def test_the_plans_of_a_small_day_measure_the_next_day(sample_warehouse: Warehouse) -> None:
    """A database of small days keeps its plans, and no row and no number of an earlier day."""

    def metrics(ds: str) -> list[dict[str, Any]]:
        day = sample_day(ds, sample_warehouse)
        stage = newest(day)
        with gate_database_of(stage, sources_of(day, day.settings, stage, read_build(stage))) as database:
            return sorted(measure(database, stage), key=lambda row: str(row["expectation_id"]))

    gate_metrics._waiting_databases.clear()
    alone = []
    for ds in SAMPLE_DAYS:
        alone.append(metrics(ds))
        [waiting] = gate_metrics._waiting_databases.values()
        assert waiting.database.rows("SELECT count(*) AS rows FROM gold_queue_assignment") == [{"rows": 0}]
        with pytest.raises(RuntimeError, match="are of no day"):
            waiting.database.metrics()
        gate_metrics._waiting_databases.clear()
    one_after_another = [metrics(ds) for ds in SAMPLE_DAYS]

    assert one_after_another == alone
    assert alone[0] != alone[1]


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


@pytest.mark.spark
def test_the_memory_of_the_gate_depends_on_the_longest_line_and_not_on_their_number(
    sample_warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB's filters join small batches into some of 2,048 rows, unless each cursor says otherwise."""
    day = sample_day(SAMPLE_DAYS[-1], sample_warehouse)
    stage = newest(day)
    sources = sources_of(day, day.settings, stage, read_build(stage))
    export = tmp_path / "exports" / day.cluster / str(day.ds)
    shutil.copytree(sources.export.directory, export)
    (export / MANIFEST_NAME).unlink()
    configs = export / "broker_topic_configs.jsonl"
    first, *_ = configs.read_text(encoding="utf-8").splitlines()
    topics = {f"topic-{number}": {"topicName": f"topic-{number}", "perm": 6} for number in range(10_000)}
    long = {**json.loads(first), "payload": json.dumps({"topicConfigTable": topics})}
    with configs.open("a", encoding="utf-8") as lines:
        lines.writelines(json.dumps({**long, "broker": f"b{number}"}) + "\n" for number in range(60))
    manifest = seal(export, cluster=day.cluster, ds=day.ds)
    assert manifest.size_bytes > gate_metrics._SMALL_EXPORT_BYTES
    [statement] = [text for text in METRIC_STATEMENTS if "'topic_config.equals_export'" in text]
    monkeypatch.setenv("LEDGER_GATE_MEMORY", "400MB")

    with gate_database_of(stage, sources._replace(export=EarlierExport(export, manifest))) as database:
        show_tables(database, stage)
        observed = {row["expectation_id"]: row["observed"] for row in database.rows(statement)}

    assert observed["topic_config.equals_export"] == 60


def test_each_statement_runs_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements have cursors of their own, and a cursor of DuckDB starts with the time zone of the machine."""
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    with gate_database(SANDBOX_CONFIG) as database:
        assert database.rows("SELECT unix_micros(CAST('1970-01-01 00:00:01' AS TIMESTAMP)) AS us") == [
            {"us": 1_000_000}
        ]
