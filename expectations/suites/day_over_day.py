"""Comparison with the baseline day: rows, groups, brokers and topics that are gone, and less evenness.

Belongs here: these expectations and their duckdb SQL over `row_count` and the views `staged_<layer>_<table>` and
`earlier_<layer>_<table>`, each with one day. Does not belong here: the choice of the baseline day and the location of its rows
(`warehouse`).

All of these expectations warn unless settings raise them: clusters change, and a change is not an error of the ledger.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from expectations.suites.every_table import STAGED_TABLES
from expectations.suites.model import Expectation, Suite
from expectations.suites.thresholds import (
    LEAST_COMPARED_ROW_COUNT,
    LEAST_ROW_COUNT_LIKENESS,
    MOST_EXAMPLES,
    OWN_TOPIC_PREFIXES,
    UNEVENNESS_JUMP,
)
from rebalance_ledger.tables import ASSIGNMENT_FAIRNESS
from rebalance_ledger.tables.silver.broker import BROKER
from rebalance_ledger.tables.silver.group_presence import GROUP_PRESENCE
from rebalance_ledger.tables.silver.topic_route import TOPIC_ROUTE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rebalance_ledger.tables import Table

_ROW_COUNTS: Final = {
    table: Expectation(
        table,
        "row_count_like_day_before",
        f"The row counts of {table.qualified_name} on this day and the baseline day differ by no more "
        f"than the limit; below {LEAST_COMPARED_ROW_COUNT} rows, and from none to some, any change is "
        "allowed.",
        severity="warn",
        threshold_min=LEAST_ROW_COUNT_LIKENESS,
        threshold_max=None,
        is_of_two_days=True,
    )
    for table in STAGED_TABLES
}


def _warning(table: Table, rule: str, sentence: str) -> Expectation:
    return Expectation(table, rule, sentence, severity="warn", is_of_two_days=True)


GROUPS_STILL_THERE: Final = _warning(
    GROUP_PRESENCE,
    "groups_still_there",
    "Every group that a broker knew on the baseline day is still known to a broker.",
)
BROKERS_STILL_THERE: Final = _warning(
    BROKER,
    "brokers_still_there",
    "Every broker that a name server listed on the baseline day is still listed.",
)
TOPICS_STILL_THERE: Final = _warning(
    TOPIC_ROUTE,
    "topics_still_there",
    "Every topic of an application that had a route on the baseline day still has one.",
)
EVENNESS_STILL_THERE: Final = _warning(
    ASSIGNMENT_FAIRNESS,
    "evenness_still_there",
    f"No group shares a topic {UNEVENNESS_JUMP:g} times as unevenly as on the baseline day, by "
    "max_over_mean.",
)

SUITE: Final = Suite(
    "day_over_day",
    (
        *_ROW_COUNTS.values(),
        GROUPS_STILL_THERE,
        BROKERS_STILL_THERE,
        TOPICS_STILL_THERE,
        EVENNESS_STILL_THERE,
    ),
)

COUNTED_TABLES: Final = STAGED_TABLES
"""The tables whose rows of both days are counted."""

READ_TABLES: Final = (BROKER, GROUP_PRESENCE, TOPIC_ROUTE, ASSIGNMENT_FAIRNESS)
"""The tables that are read for both days."""

_ROW_COUNT_RULE: Final = f"""
SELECT
  table_name || '.row_count_like_day_before' AS expectation_id,
  CASE WHEN earlier = 0 OR greatest(staged, earlier) < {LEAST_COMPARED_ROW_COUNT} THEN 1
    ELSE least(staged, earlier) / greatest(staged, earlier) END AS amount,
  staged || ' rows, ' || earlier || ' on the earlier day' AS example,
  NULL AS consumer_group, NULL AS topic, NULL AS broker_name
FROM row_count"""


def _gone(expectation: Expectation, what: str, column: str, where: str = "TRUE") -> str:
    view = f"{expectation.table.layer}_{expectation.table.name}"
    columns = ", ".join(
        f"{column} AS {name}" if name == column else f"NULL AS {name}"
        for name in ("consumer_group", "topic", "broker_name")
    )
    return f"""
SELECT DISTINCT '{expectation.expectation_id}', 1, '{what} ' || {column}, {columns}
FROM earlier_{view}
WHERE {where} AND {column} NOT IN (SELECT {column} FROM staged_{view} WHERE {where})"""


_IS_OF_APPLICATION = " AND ".join(f"NOT starts_with(topic, '{prefix}')" for prefix in OWN_TOPIC_PREFIXES)
_EVENNESS = f"{ASSIGNMENT_FAIRNESS.layer}_{ASSIGNMENT_FAIRNESS.name}"

STATEMENT: Final = "\nUNION ALL".join(
    (
        _ROW_COUNT_RULE,
        _gone(GROUPS_STILL_THERE, "group", "consumer_group"),
        _gone(BROKERS_STILL_THERE, "broker", "broker_name"),
        _gone(TOPICS_STILL_THERE, "topic", "topic", f"is_in_route AND {_IS_OF_APPLICATION}"),
        f"""
SELECT
  '{EVENNESS_STILL_THERE.expectation_id}', 1,
  'group ' || consumer_group || ', topic ' || topic || ': the busiest client has ' || round(here.max_over_mean, 2)
    || ' times the mean, ' || round(earlier.max_over_mean, 2) || ' on the earlier day',
  consumer_group, topic, NULL
FROM staged_{_EVENNESS} AS here JOIN earlier_{_EVENNESS} AS earlier USING (consumer_group, topic)
WHERE here.is_effective AND earlier.is_effective
  AND here.max_queues_per_client - here.min_queues_per_client > 1
  AND here.max_over_mean >= {UNEVENNESS_JUMP!r} * earlier.max_over_mean""",
    )
)
"""duckdb SQL with one row per violation and one per row count, with the columns of `model.violations_in`."""


def measures(rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return the rows of `STATEMENT` as metrics, one per expectation of the suite; see `measurement.METRIC_SCHEMA`."""
    affected_subjects: dict[str, list[dict[str, Any]]] = {
        expectation.expectation_id: [] for expectation in SUITE.expectations
    }
    for expectation_id, amount, example, group, topic, broker in rows:
        affected_subjects[expectation_id].append(
            {
                "consumer_group": group,
                "topic": topic,
                "broker_name": broker,
                "amount": float(amount),
                "examples": [example],
            }
        )
    return [
        {
            "expectation_id": expectation_id,
            "observed": sum(subject["amount"] for subject in subjects),
            "examples": sorted(subject["examples"][0] for subject in subjects)[:MOST_EXAMPLES],
            "affected_subjects": subjects,
        }
        for expectation_id, subjects in affected_subjects.items()
    ]
