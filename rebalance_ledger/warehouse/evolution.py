"""Update of published tables of another release to this release's definitions.

ADR 13 has the rules: columns are added and abandoned, but never change their type. Does not belong here: rows, and the lock of
writers (`commits`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalake import Field, PostCommitHookProperties, Schema

from rebalance_ledger.warehouse.arrow_schema import COMMENT_KEY, arrow_schema
from rebalance_ledger.warehouse.errors import StagingError

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from rebalance_ledger.tables import Table

PARTITION_COLUMNS: Final = ["cluster"]
"""Partition columns of new tables. A file's days are in its statistics, so that files of several days can be merged."""

_EARLIER_PARTITION_COLUMNS: Final = ["cluster", "ds"]
"""Partition columns of tables that were created until November 2026; their files of different days cannot be merged."""

NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""Properties of every commit. delta-rs writes no checkpoint, because one of a version that readers do not see could make earlier commits
expire; `commits.checkpoint_if_due` writes checkpoints."""


def description(table: Table) -> str:
    """Return the Delta metadata of a table."""
    return f"One row per {table.grain}."


def refuse_other_types(published: DeltaTable, table: Table) -> None:
    """Check that common columns have the same type, and that the table is partitioned by cluster, or by cluster and day.

    Raises:
        StagingError: A type or the partitioning differs; nothing may be written.
    """
    if published.metadata().partition_columns not in (PARTITION_COLUMNS, _EARLIER_PARTITION_COLUMNS):
        raise StagingError(
            f"{published.table_uri} is stored by {', '.join(published.metadata().partition_columns) or 'nothing'}, "
            f"and this release stores it by {' and '.join(PARTITION_COLUMNS)}: publish its days again into a new warehouse."
        )
    published_fields = {field.name: field for field in published.schema().fields}
    for field in _fields(table):
        if field.name in published_fields and published_fields[field.name].type != field.type:
            raise StagingError(
                f"{published.table_uri} has {_type_name(published_fields[field.name])} in the column {field.name}, where this "
                f"release has {_type_name(field)}: publish its days again into a new warehouse, or go on with the "
                "release that wrote it."
            )


def bring_up_to_date(published: DeltaTable, table: Table) -> None:
    """Add new columns, drop `NOT NULL` of columns that may be null or no longer exist, and update comments.

    An added column is always nullable, because it is null in existing days. A table that is up to date is not changed.

    Raises:
        StagingError: A column has another type.
    """
    refuse_other_types(published, table)
    published_fields = {field.name: field for field in published.schema().fields}
    defined = {field.name: field for field in _fields(table)}
    added = [
        Field(field.name, field.type, nullable=True, metadata=field.metadata)
        for field in defined.values()
        if field.name not in published_fields
    ]
    if added:
        published.alter.add_columns(added, post_commithook_properties=NO_HOOKS)
    for field in published_fields.values():
        if not field.nullable and (field.name not in defined or defined[field.name].nullable):
            published.alter.drop_column_not_null(field.name, post_commithook_properties=NO_HOOKS)
    for field in defined.values():
        if (
            field.name in published_fields
            and published_fields[field.name].metadata.get(COMMENT_KEY) != field.metadata[COMMENT_KEY]
        ):
            published.alter.set_column_metadata(
                field.name, field.metadata, post_commithook_properties=NO_HOOKS
            )
    if published.metadata().description != description(table):
        published.alter.set_table_description(description(table), post_commithook_properties=NO_HOOKS)


def _fields(table: Table) -> list[Field]:
    fields: list[Field] = Schema.from_arrow(arrow_schema(table)).fields
    return fields


def _type_name(field: Field) -> str:
    return str(getattr(field.type, "type", field.type))
