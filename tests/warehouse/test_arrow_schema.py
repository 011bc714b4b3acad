"""The Arrow schema of a table survives a trip through Delta: types, nullability and comments."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from rebalance_ledger.tables import ALL_TABLES, Table
from rebalance_ledger.warehouse.arrow_schema import COMMENT_KEY, arrow_schema

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.qualified_name)
def test_delta_keeps_types_nullability_and_comments(table: Table, tmp_path: Path) -> None:
    schema = arrow_schema(table)

    write_deltalake(tmp_path, schema.empty_table(), partition_by=["cluster", "ds"])

    kept = DeltaTable(tmp_path).to_pyarrow_dataset().schema
    assert [(field.name, field.type, field.nullable) for field in kept] == [
        (field.name, field.type, field.nullable) for field in schema
    ]
    assert [field.metadata[COMMENT_KEY.encode()].decode() for field in kept] == [
        column.comment for column in table.all_columns
    ]


def test_a_row_without_a_value_that_the_definition_demands_is_refused(tmp_path: Path) -> None:
    table = next(table for table in ALL_TABLES if table.qualified_name == "silver.broker")
    row = {"cluster": "shop-prod", "ds": date(2026, 11, 16), "nameserver": None, "broker_name": "broker-a"}

    with pytest.raises(DeltaError, match="nameserver"):
        write_deltalake(tmp_path, pa.Table.from_pylist([row], schema=arrow_schema(table)))
