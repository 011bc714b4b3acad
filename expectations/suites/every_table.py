"""Expectations for every staged table: rows of one cluster and one day, and one row per key.

What belongs here: expectations that follow from a table's definition alone. What does not: the meaning of its columns.
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

SUITE: Final = Suite("every_table", (*_ONE_DAY, *_ONE_ROW))


def _rows_of(table: Table) -> str:
    key = f"to_json(struct({', '.join(table.key)}))" if table in _KEYED_TABLES else "CAST(NULL AS STRING)"
    # Rows of another day affect the whole day, so only the key check selects the group.
    has_group = table in _KEYED_TABLES and "consumer_group" in table.key
    group = "consumer_group" if has_group else "CAST(NULL AS STRING)"
    return (
        f"SELECT {quoted(table.name)} AS table_name, cluster, ds, {key} AS key, {group} AS consumer_group "
        f"FROM {table.layer}_{table.name}"
    )


_MOST_TASKS: Final = 16
"""Number of tasks that read all tables. Each task receives the plan of all tables; on a small day that takes longer than reading."""

_UNION = "\nUNION ALL\n".join(map(_rows_of, STAGED_TABLES))

# LEFT JOIN: with an empty view `run` every row violates the expectation. The hint names the small side: Spark does not
# know the size of a view of local rows, and would send every table's keys to every task.
COMMON_TABLES: Final = f"""
keyed AS (
  SELECT table_name, cluster, ds, key, consumer_group, count(*) AS row_count
  FROM (SELECT /*+ COALESCE({_MOST_TASKS}) */ * FROM (
{_UNION}
  ))
  GROUP BY table_name, cluster, ds, key, consumer_group
),
at_home AS (
  SELECT /*+ BROADCAST(run) */ keyed.*, keyed.cluster <=> run.cluster AND keyed.ds <=> run.ds AS is_at_home
  FROM keyed
  LEFT JOIN run ON TRUE
)"""

VIOLATION_QUERY: Final = """
SELECT
  violation.expectation_id, violation.amount, violation.example,
  IF(violation.is_of_group, consumer_group, NULL) AS consumer_group, CAST(NULL AS STRING) AS topic, CAST(NULL AS STRING) AS broker_name
FROM at_home
LATERAL VIEW explode(array_compact(array(
    IF(is_at_home, NULL, named_struct(
      'expectation_id', concat(table_name, '.one_cluster_and_day'),
      'amount', CAST(row_count AS DOUBLE),
      'example', concat('cluster ', coalesce(cluster, 'null'), ', day ', coalesce(CAST(ds AS STRING), 'null'),
        coalesce(concat(': ', key), '')),
      'is_of_group', FALSE)),
    IF(key IS NOT NULL AND row_count > 1, named_struct(
      'expectation_id', concat(table_name, '.one_row_per_key'),
      'amount', CAST(row_count - 1 AS DOUBLE),
      'example', concat(key, ' stands in ', row_count, ' rows'),
      'is_of_group', TRUE), NULL)))) AS violation"""
