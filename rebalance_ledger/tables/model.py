"""What a table is, in no engine's terms: name, layer, grain and columns.

Spark's staging, delta-rs' publication, the gate and the generated reference in `docs/tables.md` all read these
definitions, so a table is described once. What does not belong here: rows, files, engines.
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
"""Spark SQL's names. `table_version` is the struct of `gold.publication`; see `TABLE_VERSION_FIELDS`."""

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
        name: Of the column.
        type: Spark SQL's name of its type.
        comment: Its meaning.
        nullable: Whether it may be null, which always means unknown or not applicable.
        values: The closed list of its values, or of its elements; empty for an open domain. See `vocabulary`.
        unit: What its numbers count or measure; None for other types and for plain numbers.
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
        name: the name in the layer's schema, for example `queue_assignment`.
        layer: `silver` (typed facts of the export) or `gold` (what readers query).
        grain: one line: what one row stands for.
        columns: the table's own columns; `cluster` and `ds` come before them by themselves.
        key: the columns that, with `cluster` and `ds`, identify a row. Null is a value in a key.
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
