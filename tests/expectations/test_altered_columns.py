"""The expectations that cover a column (`Expectation.judges`) detect a changed value in one row of a valid day.

The day is the last day of the sample, unchanged. Tables without rows on that day are tested in the modules of their own suites.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from expectations.suites.all_suites import EXPECTATIONS
from expectations.suites.judged_columns import judges_by_column
from expectations.suites.metrics import METRIC_STATEMENTS
from rebalance_ledger.pipeline.gate_input import sources_of
from rebalance_ledger.pipeline.gate_metrics import gate_database_of, show_tables
from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, SILVER_TABLES
from rebalance_ledger.warehouse.staged_files import staged_rows as staged_dataset
from rebalance_ledger.warehouse.staging import read_build
from tests.support.computed_days import newest, sample_day, staged_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from expectations.measurement import GateDatabase
    from rebalance_ledger.tables import Column, Table
    from rebalance_ledger.warehouse.layout import StagingArea, Warehouse

pytestmark = pytest.mark.spark

DAY, DAY_BEFORE = date(2026, 11, 18), date(2026, 11, 17)
TABLES = {table.name: table for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES)}
WITHOUT_ROWS = {
    "rejected_record",
    "memory_offset",
    "queue_order_lock",
    "proxy_presence",
    "proxy_connection",
    "proxy_subscription",
    "message_request_mode",
    "queue_sharing",
}
"""Tables for which the sample has no rows."""
NOT_IN_SAMPLE = {
    # No member deviates, no group is unknown, no broadcasting client reports its offsets in memory, no line is repeated.
    "ownership_drift.deviating_client_id",
    "broadcast_offset.memory_offset",
    "export_record.counted_line",
}
JUDGES: dict[str, tuple[str, ...]] = {
    column: judges
    for column, judges in judges_by_column().items()
    if column.partition(".")[0] in TABLES.keys() - WITHOUT_ROWS and column not in NOT_IN_SAMPLE
}
SOME = {
    "assignment_churn.least_move_count",
    "broadcast_offset.lag_message_count",
    "finding.queue_count",
    "producer_spread.share",
    "queue_assignment.queue_id",
    "queue_offset.max_offset",
    "route_divergence.perm",
    "topic_route.read_queue_count",
}
"""Columns of the suites whose metrics are fast to compute. The nightly run alters all columns."""
AT_NIGHT = (pytest.mark.e2e, pytest.mark.nightly)
MOST_ROWS = 3
"""Number of rows to try. The gate accepts a wrong value in some rows, for example of a group with unknown members."""


class Judged:
    """A staged day in the gate's database."""

    def __init__(self, database: GateDatabase, stage: StagingArea) -> None:
        self.database = database
        self.stage = stage
        show_tables(database, self.stage)
        for table in TABLES.values():
            database.show(f"staged_{table.name}", staged_dataset(self.stage, table))

    def broken(self, judges: tuple[str, ...], table: Table, query: str) -> set[str]:
        """Return those of the expectations that the day violates if a query replaces the rows of one table."""
        name = f"{table.layer}_{table.name}"
        self.database.show_query(name, query)
        statements = [
            statement for statement in METRIC_STATEMENTS if any(f"'{judge}'" in statement for judge in judges)
        ]
        broken = {
            row["expectation_id"]
            for row in self.database.metrics(statements)
            if row["expectation_id"] in judges
            and row["observed"] > (EXPECTATIONS[row["expectation_id"]].threshold_max or 0.0)
        }
        self.database.show_query(name, as_it_is(table))
        return broken

    def altered(self, table: Table, column: Column) -> Iterator[str]:
        """Yield queries for the table, each with a different value in one row."""
        rows = sorted(staged_rows(self.stage, table.name), key=str)
        candidates = [row for row in rows if row[column.name] is not None] or rows
        for row in candidates[:: max(1, len(candidates) // MOST_ROWS)][:MOST_ROWS]:
            is_row = " AND ".join(
                f"{name} IS NOT DISTINCT FROM {sql_literal(row[name])}" for name in table.key
            )
            yield with_another_value(table, column, is_row)


def as_it_is(table: Table) -> str:
    return f"SELECT * FROM staged_{table.name}"  # noqa: S608 - names of this project


def with_another_value(table: Table, column: Column, is_row: str) -> str:
    """Return a query for the staged rows of a table that changes a column in the rows that match a condition."""
    value = f"CASE WHEN {is_row} THEN {another(column)} ELSE {column.name} END"
    return f"SELECT * REPLACE ({value} AS {column.name}) FROM staged_{table.name}"  # noqa: S608 - names of this project


def sql_literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def another(column: Column) -> str:
    """Return a DuckDB expression for a value that differs from the column's value."""
    match column.type:
        case "string":
            return f"concat({column.name}, 'x')"
        case "boolean":
            return f"NOT coalesce({column.name}, FALSE)"
        case "timestamp":
            return f"coalesce({column.name}, TIMESTAMPTZ '2026-11-18') + INTERVAL 1 SECOND"
        case "date":
            return f"{column.name} + 1"
        case "array<string>":
            return f"list_append(coalesce({column.name}, []), 'x')"
        case _:
            return f"CAST(coalesce({column.name}, 0) + 1 AS {column.type})"


@pytest.fixture(scope="module")
def judged(sample_warehouse: Warehouse) -> Iterator[Judged]:
    day = sample_day(DAY, sample_warehouse)
    stage = newest(day)
    sources = sources_of(day, day.settings, stage, read_build(stage))
    assert sources.before is not None
    assert sources.before.ds == DAY_BEFORE
    with gate_database_of(stage, sources) as database:
        yield Judged(database, stage)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SOME else AT_NIGHT) for name in sorted(JUDGES)]
)
def test_a_changed_value_violates_the_expectations_of_its_column(judged: Judged, name: str) -> None:
    table = TABLES[name.partition(".")[0]]
    [column] = [column for column in table.all_columns if column.name == name.partition(".")[2]]

    assert any(judged.broken(JUDGES[name], table, rows) for rows in judged.altered(table, column))


@pytest.mark.e2e
@pytest.mark.nightly
def test_the_unchanged_day_violates_none_of_them(judged: Judged) -> None:
    judges = tuple({judge for judges in JUDGES.values() for judge in judges})

    assert judged.broken(judges, TABLES["finding"], as_it_is(TABLES["finding"])) == set()
