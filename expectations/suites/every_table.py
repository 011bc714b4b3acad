"""Expectations for every staged table: rows of one cluster and one day, one row per key, and no null where none may be.

Belongs here: expectations that follow from a table's definition alone. Does not belong here: the meaning of its columns.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.model import Expectation, Suite, quoted
from rebalance_ledger.tables import (
    COMPUTED_GOLD_TABLES,
    OWNERSHIP_DRIFT,
    QUEUE_ASSIGNMENT,
    SILVER_TABLES,
    Table,
)

STAGED_TABLES: Final = (*SILVER_TABLES, *COMPUTED_GOLD_TABLES)

_ONE_DAY: Final = tuple(
    Expectation(
        table,
        "one_cluster_and_day",
        f"Every row of {table.qualified_name} belongs to this run's cluster and day.",
        judges=("cluster", "ds"),
    )
    for table in STAGED_TABLES
)
# The largest tables have this check in their own suites, which group their rows by the key anyway.
_KEYED_TABLES: Final = tuple(
    table for table in STAGED_TABLES if table not in {QUEUE_ASSIGNMENT, OWNERSHIP_DRIFT}
)
_ONE_ROW: Final = tuple(
    Expectation(
        table,
        "one_row_per_key",
        f"No two rows of {table.qualified_name} have the same {', '.join(table.key)}.",
    )
    for table in _KEYED_TABLES
)

_REQUIRED: Final = tuple(
    Expectation(
        table,
        "required_values",
        f"No row of {table.qualified_name} is null in a column that is never null.",
    )
    for table in STAGED_TABLES
)

SUITE: Final = Suite("every_table", (*_ONE_DAY, *_ONE_ROW, *_REQUIRED))


def _key(table: Table) -> str:
    return f"to_json(struct({', '.join(table.key)}))" if table in _KEYED_TABLES else "CAST(NULL AS STRING)"


def _group(table: Table) -> str:
    return "consumer_group" if "consumer_group" in table.key else "CAST(NULL AS STRING)"


def _repeated_keys(table: Table) -> str:
    columns = ", ".join(("cluster", "ds", *table.key))
    return (
        f"SELECT {quoted(f'{table.name}.one_row_per_key')} AS expectation_id, {_key(table)} AS key, {_group(table)} AS consumer_group, row_count "
        f"FROM (SELECT {columns}, count(*) AS row_count FROM {table.layer}_{table.name} GROUP BY {columns} HAVING count(*) > 1)"
    )


def _strangers(table: Table) -> str:
    # Without a run every row violates the expectation.
    return (
        f"SELECT {quoted(f'{table.name}.one_cluster_and_day')} AS expectation_id, cluster, ds, {_key(table)} AS key "
        f"FROM (SELECT staged.*, cluster <=> home AND ds <=> home_ds AS is_at_home FROM {table.layer}_{table.name} AS staged "
        "LEFT JOIN (SELECT cluster AS home, ds AS home_ds FROM run) ON TRUE) WHERE NOT is_at_home"
    )


def _missing_values(table: Table) -> str:
    names = [column.name for column in table.columns if not column.nullable]
    null_names = ", ".join(f"IF({name} IS NULL, {quoted(name)}, NULL)" for name in names)
    return (
        f"SELECT {quoted(f'{table.name}.required_values')} AS expectation_id, {_key(table)} AS key, {_group(table)} AS consumer_group, "
        f"concat_ws(', ', {null_names}) AS null_columns FROM {table.layer}_{table.name} "
        f"WHERE {' OR '.join(f'{name} IS NULL' for name in names)}"
    )


_REPEATED_KEYS: Final = "\nUNION ALL\n".join(map(_repeated_keys, _KEYED_TABLES))
_STRANGERS: Final = "\nUNION ALL\n".join(map(_strangers, STAGED_TABLES))

_MISSING_VALUES: Final = "\nUNION ALL\n".join(map(_missing_values, STAGED_TABLES))

COMMON_TABLES: Final = f"""
repeated_key AS (
{_REPEATED_KEYS}
),
missing_value AS (
{_MISSING_VALUES}
),
stranger AS (
{_STRANGERS}
)"""

# Rows of another day affect the whole day, so only a repeated key selects its group.
VIOLATION_QUERY: Final = """
SELECT
  expectation_id, CAST(row_count - 1 AS DOUBLE) AS amount, concat(key, ' stands in ', row_count, ' rows') AS example,
  consumer_group, CAST(NULL AS STRING) AS topic, CAST(NULL AS STRING) AS broker_name
FROM repeated_key
UNION ALL
SELECT
  expectation_id, 1D, concat_ws(': ', key, concat(null_columns, ' is null')), consumer_group, CAST(NULL AS STRING), CAST(NULL AS STRING)
FROM missing_value
UNION ALL
SELECT
  expectation_id, CAST(count(*) AS DOUBLE),
  concat('cluster ', coalesce(cluster, 'null'), ', day ', coalesce(CAST(ds AS STRING), 'null'), coalesce(concat(': ', key), '')),
  CAST(NULL AS STRING), CAST(NULL AS STRING), CAST(NULL AS STRING)
FROM stranger
GROUP BY expectation_id, cluster, ds, key"""
