"""The Arrow schema of a table, for publication and for readers of an empty table.

Belongs here: types, nullability, comments. Does not belong here: rows, files, Delta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rebalance_ledger.tables import TABLE_VERSION_FIELDS

if TYPE_CHECKING:
    from rebalance_ledger.tables import Column, ColumnType, Table

COMMENT_KEY = "comment"
"""The field metadata key under which Delta (and so Spark's `DESCRIBE`) keeps a column's comment."""

_SCALAR_TYPES: dict[ColumnType, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    # Delta's `timestamp` is an instant in microseconds, as Spark writes it in a session with the time zone UTC.
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def arrow_type(column_type: ColumnType) -> pa.DataType:
    """Return the Arrow type of a Spark SQL type.

    Elements of arrays and fields of structs are nullable, as in Spark, and an array's element is named `element`, as in Delta, so
    that staged and published files have the same schema.
    """
    if column_type == "array<string>":
        return pa.list_(pa.field("element", pa.string()))
    if column_type == "array<table_version>":
        fields = [pa.field(name, _SCALAR_TYPES[field_type]) for name, field_type in TABLE_VERSION_FIELDS]
        return pa.list_(pa.field("element", pa.struct(fields)))
    return _SCALAR_TYPES[column_type]


def arrow_field(column: Column) -> pa.Field:
    """Return a column as an Arrow field: name, type, nullability, and its comment in the field's metadata."""
    return pa.field(
        column.name,
        arrow_type(column.type),
        nullable=column.nullable,
        metadata={COMMENT_KEY: column.comment},
    )


def arrow_schema(table: Table) -> pa.Schema:
    """Return the Arrow schema of a published table: `cluster` and `ds` first, then the table's own columns."""
    return pa.schema([arrow_field(column) for column in table.all_columns])
