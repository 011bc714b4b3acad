"""Writes small evaluated days to the staging area, as the build job and the gate do, without Spark."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from expectations.suites.all_suites import EXPECTATIONS
from rebalance_ledger.exports.manifest import load_manifest
from rebalance_ledger.pipeline import gate_input
from rebalance_ledger.pipeline.gate_input import GateInput
from rebalance_ledger.settings import ClusterSettings
from rebalance_ledger.tables import ALL_TABLES, COMPUTED_GOLD_TABLES, SILVER_TABLES, Table
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.inventory import inventory_of_stage
from rebalance_ledger.warehouse.staging import Build, finish, read_build, write_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from rebalance_ledger.warehouse.layout import StagingArea, Warehouse

TABLES = {table.name: table for table in ALL_TABLES}
MONDAY, TUESDAY = date(2026, 11, 16), date(2026, 11, 17)

Row = dict[str, Any]

_FILLED_IN: dict[str, Any] = {"string": "", "int": 0, "bigint": 0, "boolean": False, "array<string>": []}

_OFFSET_READING = pa.schema(
    [
        *((name, pa.string()) for name in ("host", "client_id", "consumer_group", "role")),
        ("moment", pa.int32()),
        *((name, pa.binary()) for name in ("main_content", "bak_content")),
    ]
)
"""The columns that the gate reads from the offset files of the build."""


def owner(queue_id: int, client_id: str | None) -> Row:
    """Return a row of `queue_assignment`."""
    return {
        "consumer_group": "g",
        "topic": "t",
        "broker_name": "b",
        "queue_id": queue_id,
        "client_id": client_id,
    }


def held_queue(queue_id: int, *client_ids: str, state: str = "match") -> Row:
    """Return a row of `ownership_drift` for a queue with these observed owners."""
    return owner(queue_id, None) | {
        "state": state,
        "strategy": "AVG",
        "group_state": "online",
        "observed_client_ids": list(client_ids),
        "observed_process_count": len(client_ids),
        "expected_client_ids": list(client_ids),
        "unasked_client_count": 0,
    }


def owners(*client_ids: str) -> list[Row]:
    """Return a queue for each client."""
    return [owner(queue_id, client_id) for queue_id, client_id in enumerate(client_ids)]


def result(
    expectation_id: str = "queue_assignment.one_owner", *, run_id: str = "run-1", is_success: bool = True
) -> Row:
    """Return a row of `gate_result`."""
    defaults = {
        column.name: None if column.nullable else _FILLED_IN.get(column.type)
        for column in TABLES["gate_result"].columns
    }
    return defaults | {
        "run_id": run_id,
        "expectation_id": expectation_id,
        "is_success": is_success,
        "examples": [],
    }


def quarantined_row(group: str) -> Row:
    """Return a row of `quarantined_group`."""
    return {
        "consumer_group": group,
        "expectation_id": "queue_assignment.one_owner",
        "table_name": "gold.queue_assignment",
        "expectation": "One owner.",
        "observed": 2.0,
        "examples": [f"group {group}, topic t"],
    }


def stage_day(
    warehouse: Warehouse,
    ds: date = MONDAY,
    cluster: str = "shop",
    run_id: str = "run-1",
    verdict: str | None = "passed",
    attempt: str = "only",
    build: Row | None = None,
    excluded_groups: Sequence[str] = (),
    **rows_of: list[Row],
) -> None:
    """Stage a complete day; tables without an argument have no rows.

    `build`: additional entries of the build's record. `excluded_groups`: the groups without which the gate accepts the day.
    """
    stage = warehouse.stage(cluster, ds, attempt)
    for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES):
        write_staged(stage.table(table), table, cluster, ds, rows_of.get(table.name, []))
    _write(stage.offset_readings, _OFFSET_READING.empty_table())
    usual = {"run_id": run_id, "manifest_sha256": "m", "settings_sha256": "s", "code_version": "c"}
    finish(
        warehouse,
        cluster,
        ds,
        stage,
        Build(**usual | (build or {})),
        inventory_of_stage(stage, ClusterDay(cluster, ds)),
    )
    if verdict is None:
        Path(stage.gate_verdict).unlink(missing_ok=True)
    else:
        quarantined = [quarantined_row(group) for group in excluded_groups]
        write_verdict(warehouse, cluster, ds, stage, verdict, [result(run_id=run_id)], quarantined)


def stage_day_of_export(warehouse: Warehouse, directory: Path, **rows_of: list[Row]) -> None:
    """Stage a day for the gate, as if these rows had been computed from a sealed export."""
    manifest = load_manifest(directory)
    build = {"manifest_sha256": manifest.sha256, "settings_sha256": ClusterSettings().sha256}
    stage_day(warehouse, manifest.ds, manifest.cluster, verdict=None, build=build, **rows_of)


def stage_measured_day(
    monkeypatch: pytest.MonkeyPatch,
    warehouse: Warehouse,
    violations: Mapping[str, float | None],
    run_id: str = "run-1",
) -> None:
    """Stage Monday and make the gate find these numbers of violations; None leaves an expectation unmeasured."""
    stage_day(warehouse, MONDAY, run_id=run_id, verdict=None, attempt=run_id, queue_assignment=owners("c1"))
    let_gate_find(monkeypatch, violations)


def let_gate_find(monkeypatch: pytest.MonkeyPatch, violations: Mapping[str, float | None]) -> None:
    """Make the gate find these numbers of violations in any stage; None leaves an expectation unmeasured."""
    numbers: dict[str, float | None] = {
        name: expectation.threshold_min or 0.0
        for name, expectation in EXPECTATIONS.items()
        if not expectation.is_of_two_days
    } | dict(violations)
    rows: list[Row] = [
        {
            "expectation_id": name,
            "observed": observed,
            "examples": ["group g"] if observed else [],
            "affected_subjects": [],
        }
        for name, observed in numbers.items()
        if observed is not None
    ]
    monkeypatch.setattr(gate_input, "measured_day", lambda *_: GateInput(rows, None))


def record_again(warehouse: Warehouse, cluster: str, ds: date, stage: StagingArea) -> None:
    """Record the current files of a stage, as if the build had written them."""
    finish(
        warehouse, cluster, ds, stage, read_build(stage), inventory_of_stage(stage, ClusterDay(cluster, ds))
    )


def write_staged(place: str, table: Table, cluster: str, ds: date, rows: list[Row]) -> None:
    """Write a staged table again; `cluster` and `ds` of a row override those of the day."""
    defaults = {
        column.name: None if column.nullable else _FILLED_IN.get(column.type) for column in table.columns
    }
    whole = [{"cluster": cluster, "ds": ds, **defaults, **row} for row in rows]
    _write(place, pa.Table.from_pylist(whole, schema=arrow_schema(table)))


def _write(place: str, rows: pa.Table) -> None:
    folder = Path(place)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    pq.write_table(rows, folder / "part-0.parquet")
    (folder / "_SUCCESS").touch()
