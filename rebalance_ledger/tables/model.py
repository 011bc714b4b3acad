"""The classes `Table` and `Column`: name, layer, grain, key and columns of a table, independent of an engine.

Spark's staging, delta-rs' publication, the gate and the generated reference in `docs/tables.md` read these
definitions, so each table is defined once. Does not belong here: rows, files, engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Layer = Literal["silver", "gold"]
ColumnType = Literal[
    "string",
    "int",
    "bigint",
    "double",
    "boolean",
    "date",
    "timestamp",
    "array<string>",
    "array<table_version>",
]
"""Names of column types in Spark SQL. `table_version` is the struct of `gold.publication`; see `TABLE_VERSION_FIELDS`."""

TABLE_VERSION_FIELDS: tuple[tuple[str, ColumnType], ...] = (
    ("table_name", "string"),
    ("delta_version", "bigint"),
    ("row_count", "bigint"),
    ("content_hash", "string"),
)
"""The fields of one element of `publication.tables`."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        name: The column's name.
        type: The name of its type in Spark SQL.
        comment: Its meaning, in one or a few sentences. It is published as the Delta comment and in `docs/tables.md`.
        nullable: Whether it may be null. Null always means unknown or not applicable.
        values: The closed list of its values, or of its elements; empty for an open domain. See `vocabulary`.
        unit: The unit of its numbers; None for other types and for plain numbers.
    """

    name: str
    type: ColumnType
    comment: str
    nullable: bool = True
    values: tuple[str, ...] = ()
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the ledger.

    Attributes:
        name: The name in the layer's schema, for example `queue_assignment`.
        layer: `silver` (the export as typed rows) or `gold` (for readers).
        grain: What one row stands for, as the end of the sentence "One row per …".
        columns: The table's own columns; `all_columns` adds `cluster` and `ds` before them.
        key: The columns that, with `cluster` and `ds`, identify a row. Null is a value in a key.
    """

    name: str
    layer: Layer
    grain: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """`cluster` and `ds`, then the table's own columns."""
        return (CLUSTER, DS, *self.columns)

    @property
    def qualified_name(self) -> str:
        """The name with its layer, for example `gold.queue_assignment`."""
        return f"{self.layer}.{self.name}"


CLUSTER = Column(
    "cluster", "string", "Name of the RocketMQ cluster, as in the settings file.", nullable=False
)
DS = Column("ds", "date", "The UTC day on which the export was taken.", nullable=False)
