"""The definitions of the tables: units where numbers have one, closed lists where columns have one."""

from __future__ import annotations

from enum import StrEnum

import pytest

from rebalance_ledger.tables import ALL_TABLES, vocabulary
from rebalance_ledger.tables.model import Column, Table

COLUMNS = [(table, column) for table in ALL_TABLES for column in table.all_columns]
LISTS = [
    member for member in vars(vocabulary).values() if isinstance(member, type) and issubclass(member, StrEnum)
]


def _name(value: object) -> str | None:
    return value.name if isinstance(value, Table | Column) else None


@pytest.mark.parametrize(
    ("table", "column"),
    [(table, column) for table, column in COLUMNS if column.name.endswith(("_count", "_ms", "_bytes"))],
    ids=_name,
)
def test_counts_and_measured_values_have_a_unit(table: Table, column: Column) -> None:
    assert column.unit, f"{table.name}.{column.name}"
    assert (column.unit == "ms") == column.name.endswith("_ms")


def test_only_numbers_have_units_and_only_texts_have_closed_lists() -> None:
    assert {column.type for _, column in COLUMNS if column.unit} <= {"int", "bigint", "double"}
    assert {column.type for _, column in COLUMNS if column.values} == {"string", "array<string>"}


def test_every_closed_list_belongs_to_a_column() -> None:
    named = {value for _, column in COLUMNS for value in column.values}
    causes = set(vocabulary.SourceCause)  # Of findings, beside those of queues.
    unpublished = {vocabulary.GateVerdict.REFUSED}

    assert [words.__name__ for words in LISTS if not set(words) <= named | causes | unpublished] == []


def test_a_word_is_written_as_columns_show_it() -> None:
    words = {str(word) for words in LISTS for word in words}

    assert {word for word in words if not (word.islower() or word.isupper()) or " " in word} == set()
