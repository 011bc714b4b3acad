"""Each published column has expectations, or is listed as exempt with a reason."""

from __future__ import annotations

from expectations.suites.all_suites import EXPECTATIONS
from expectations.suites.judged_columns import NOT_JUDGED, judges_by_column
from rebalance_ledger.tables import ALL_TABLES

COLUMNS = {f"{table.name}.{column.name}" for table in ALL_TABLES for column in table.all_columns}


def test_each_column_has_expectations_or_a_reason_for_none() -> None:
    assert judges_by_column().keys() | NOT_JUDGED.keys() == COLUMNS


def test_no_column_has_both() -> None:
    assert judges_by_column().keys() & NOT_JUDGED.keys() == set()


def test_no_expectation_names_a_column_twice() -> None:
    for expectation in EXPECTATIONS.values():
        assert len(set(expectation.judged_columns)) == len(expectation.judged_columns), expectation
