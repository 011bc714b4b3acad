"""Expectations for `gold.assignment_fairness`: it follows from the assignment, and unknown values are null.

Belongs here: the expectations of this table and the rows that violate them. Does not belong here: the recomputation (`recomputed`).
"""

from __future__ import annotations

from typing import Final

from expectations.suites.model import Expectation, Suite, Violation, text_or_null
from expectations.suites.recomputed import STRATEGY_SUBJECT
from expectations.suites.thresholds import RATIO_TOLERANCE
from rebalance_ledger.tables import ASSIGNMENT_FAIRNESS

ROWS_EQUAL_ASSIGNMENT: Final = Expectation(
    ASSIGNMENT_FAIRNESS,
    "rows_equal_assignment",
    "Every group, topic and strategy of queue_assignment has a row; every other row has no queues.",
    judges=(
        "consumer_group",
        "topic",
        "strategy",
        "queue_assignment.strategy",
    ),
)
COUNTS_EQUAL_ASSIGNMENT: Final = Expectation(
    ASSIGNMENT_FAIRNESS,
    "counts_equal_assignment",
    "Every count equals the count that plain SQL computes from queue_assignment and the brokers' "
    "member lists.",
    judges=(
        "client_count",
        "queue_count",
        "min_queues_per_client",
        "max_queues_per_client",
        "idle_client_count",
        "unowned_queue_count",
        "multiple_owner_queue_count",
        "spread_bound",
        "is_within_bound",
    ),
)
RATIOS_EQUAL_ASSIGNMENT: Final = Expectation(
    ASSIGNMENT_FAIRNESS,
    "ratios_equal_assignment",
    f"Every ratio is within {RATIO_TOLERANCE:g} of the ratio that plain SQL computes from queue_assignment.",
    judges=(
        "mean_queues_per_client",
        "max_over_mean",
        "jain_index",
    ),
)
UNKNOWN_IS_NULL: Final = Expectation(
    ASSIGNMENT_FAIRNESS,
    "unknown_is_null",
    "Where the owners of the queues are unknown, every number is null, not 0.",
)
JAIN_IN_RANGE: Final = Expectation(
    ASSIGNMENT_FAIRNESS,
    "jain_in_range",
    "Jain's index is greater than 0 and at most 1.",
)
BOUND_KEPT: Final = Expectation(
    ASSIGNMENT_FAIRNESS,
    "bound_kept",
    "No row reports that a strategy violates its own bound, unless a client id is duplicated.",
)
EVEN_ENOUGH: Final = Expectation(
    ASSIGNMENT_FAIRNESS,
    "even_enough",
    "No group shares a topic less evenly than its settings allow; a difference of one queue is "
    "always allowed.",
    severity=None,
    is_each_limited=True,
)

SUITE: Final = Suite(
    "assignment_fairness",
    (
        ROWS_EQUAL_ASSIGNMENT,
        COUNTS_EQUAL_ASSIGNMENT,
        RATIOS_EQUAL_ASSIGNMENT,
        UNKNOWN_IS_NULL,
        JAIN_IN_RANGE,
        BOUND_KEPT,
        EVEN_ENOUGH,
    ),
)

_OF_OWNERS: Final = (
    "min_queues_per_client",
    "max_queues_per_client",
    "mean_queues_per_client",
    "max_over_mean",
    "jain_index",
    "idle_client_count",
    "unowned_queue_count",
    "multiple_owner_queue_count",
)
"""Columns that depend on the owners, and are null where the owners are unknown."""


def _differs(column: str, expected: str, excuse: str) -> str:
    """Return a SQL boolean: the count is neither the expected one nor an excused null."""
    return f"NOT fairness.{column} <=> {expected} AND NOT (fairness.{column} IS NULL AND {excuse})"


def _ratio_differs(column: str, expected: str) -> str:
    """Return a SQL boolean: the ratio is neither within tolerance of the expected one nor an excused null."""
    is_near = f"abs(fairness.{column} - {expected}) <= {RATIO_TOLERANCE!r} * greatest(1, abs({expected}))"
    is_null = f"fairness.{column} IS NULL AND ({expected} IS NULL OR is_doubtful)"
    return f"NOT coalesce({is_near}, {is_null})"


def _differences(differences: dict[str, tuple[str, str]]) -> str:
    """Return a SQL string that names each differing column with both values; '' if none differs."""
    named = ", ".join(
        f"IF({differs}, concat('{column} is ', {text_or_null(f'fairness.{column}')}, "
        f"', expected ', {text_or_null(expected)}), NULL)"
        for column, (expected, differs) in differences.items()
    )
    return f"concat_ws('; ', {named})"


_NO_CLIENTS = "coalesce(client_count, 0) = 0"

# Column -> (expected value, SQL boolean for a wrong value).
_COUNTS: Final = {
    "client_count": (
        "array_join(array_sort(array_distinct(transform(subscribed_counts, counts -> counts.most_count))), ' or ')",
        (
            # The members of one broker's list that subscribe; a gRPC client reports no subscription, and does not read each topic.
            "fairness.group_state IN ('online', 'broadcasting') "
            "AND NOT coalesce(exists(subscribed_counts, counts -> "
            "client_count BETWEEN counts.least_count AND counts.most_count), FALSE) "
            "OR fairness.group_state = 'offline' AND NOT client_count <=> 0"
        ),
    ),
    "queue_count": (
        "IF(queue_sets IS NULL, NULL, coalesce(queue_count, 0))",
        _differs("queue_count", "IF(queue_sets IS NULL, NULL, coalesce(queue_count, 0))", "FALSE"),
    ),
    "min_queues_per_client": (
        "expected_least",
        _differs("min_queues_per_client", "expected_least", "is_doubtful"),
    ),
    "max_queues_per_client": (
        "expected_most",
        _differs("max_queues_per_client", "expected_most", "is_doubtful"),
    ),
    "idle_client_count": (
        "expected_idle",
        _differs("idle_client_count", "expected_idle", f"(is_doubtful OR {_NO_CLIENTS})"),
    ),
    "unowned_queue_count": (
        "expected_unowned",
        _differs("unowned_queue_count", "expected_unowned", "is_doubtful"),
    ),
    "multiple_owner_queue_count": (
        "expected_multiple",
        _differs("multiple_owner_queue_count", "expected_multiple", "is_doubtful"),
    ),
    "spread_bound": ("promised_bound", _differs("spread_bound", "promised_bound", "FALSE")),
    "is_within_bound": (
        "(expected_most - expected_least <= promised_bound)",
        _differs(
            "is_within_bound",
            "(expected_most - expected_least <= promised_bound)",
            "(is_doubtful OR is_spread_excused OR coalesce(queue_count, 0) = 0)",
        ),
    ),
}
_RATIOS: Final = {
    column: (expected, _ratio_differs(column, expected))
    for column, expected in {
        "mean_queues_per_client": "expected_mean",
        "max_over_mean": "expected_most_over_mean",
        "jain_index": "expected_jain",
    }.items()
}

_GIVEN_OF_OWNERS = f"concat_ws(', ', {', '.join(f'IF(fairness.{column} IS NULL, NULL, {column!r})' for column in _OF_OWNERS)})"

JUDGED_COLUMNS: Final = f"""
    {_differences(_COUNTS)} AS count_differences,
    {_differences(_RATIOS)} AS ratio_differences,
    {_GIVEN_OF_OWNERS} AS given_of_owners"""
"""SQL columns that describe the differences, over the columns of `recomputed`'s `judged`."""

_IS_RATED = "fairness IS NOT NULL"

JUDGED_VIOLATIONS: Final = (
    Violation(
        ROWS_EQUAL_ASSIGNMENT,
        f"NOT ({_IS_RATED}) OR NOT is_assigned AND fairness.queue_count > 0",
        f"concat({STRATEGY_SUBJECT}, IF({_IS_RATED}, ': only in assignment_fairness', ': only in queue_assignment'))",
    ),
    Violation(
        COUNTS_EQUAL_ASSIGNMENT,
        f"{_IS_RATED} AND NOT is_unknown AND count_differences <> ''",
        f"concat({STRATEGY_SUBJECT}, ': ', count_differences)",
    ),
    Violation(
        RATIOS_EQUAL_ASSIGNMENT,
        f"{_IS_RATED} AND NOT is_unknown AND ratio_differences <> ''",
        f"concat({STRATEGY_SUBJECT}, ': ', ratio_differences)",
    ),
    Violation(
        UNKNOWN_IS_NULL,
        "is_unknown AND (given_of_owners <> '' OR fairness.group_state = 'unknown' AND client_count IS NOT NULL)",
        f"concat({STRATEGY_SUBJECT}, ': the owners are unknown, but not null are ', "
        f"concat_ws(', ', IF(fairness.group_state = 'unknown' AND client_count IS NOT NULL, 'client_count', NULL), nullif(given_of_owners, '')))",
    ),
    Violation(
        JAIN_IN_RANGE,
        f"fairness.jain_index <= 0 OR fairness.jain_index > 1 + {RATIO_TOLERANCE!r}",
        f"concat({STRATEGY_SUBJECT}, ': ', fairness.jain_index)",
    ),
    Violation(
        BOUND_KEPT,
        "NOT fairness.is_within_bound AND promised_bound IS NOT NULL AND NOT is_spread_excused",
        f"concat({STRATEGY_SUBJECT}, ': clients own ', {text_or_null('fairness.min_queues_per_client')}, ' to ', "
        f"{text_or_null('fairness.max_queues_per_client')}, ' queues, promised to differ by at most ', promised_bound)",
    ),
    # Not yet a violation: the limits of the group decide that when the day is judged.
    Violation(
        EVEN_ENOUGH,
        "fairness.is_effective AND fairness.max_over_mean > 1 "
        "AND fairness.max_queues_per_client - fairness.min_queues_per_client > 1",
        f"concat({STRATEGY_SUBJECT}, ': of ', fairness.client_count, ' clients one owns ', "
        "fairness.max_queues_per_client, ' queues, the mean is ', format_number(fairness.mean_queues_per_client, 2))",
        "fairness.max_over_mean",
    ),
)
"""Violations per group, topic and strategy, over the columns of `recomputed`'s `judged`."""
