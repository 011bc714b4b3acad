"""Expectations for `gold.assignment_churn`: plain SQL over the assignments of both days gives the same values.

Belongs here: the expectations of this table and their recomputed counts. Does not belong here: whether the churn is a problem
(`finding`). The views `before_<table>` hold the rows of the baseline day that the build read; `run.baseline_ds` is that day, or null
without a baseline.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.model import Expectation, Suite, Violation, quoted_list, text_or_null, violations_in
from expectations.suites.thresholds import DOUBTFUL_OWNER_REASONS
from rebalance_ledger.tables import ASSIGNMENT_CHURN

ROWS_EQUAL_FAIRNESS: Final = Expectation(
    ASSIGNMENT_CHURN,
    "rows_equal_fairness",
    "Every group, topic and strategy of assignment_fairness has a row with the same source; there "
    "are no other rows.",
    judges=(
        "consumer_group",
        "topic",
        "strategy",
        "strategy_source",
        "is_effective",
        "assignment_fairness.strategy_source",
        "assignment_fairness.is_effective",
    ),
)
STATE_FOLLOWS_DAYS: Final = Expectation(
    ASSIGNMENT_CHURN,
    "state_follows_days",
    "Baseline day, state and baseline strategy equal what plain SQL computes from the assignments "
    "of both days.",
    judges=(
        "baseline_ds",
        "state",
        "baseline_strategy",
    ),
)
COUNTS_EQUAL_DAYS: Final = Expectation(
    ASSIGNMENT_CHURN,
    "counts_equal_days",
    "Every count of queues and clients equals the count that plain SQL computes from both days; "
    "unknown counts are null, not 0.",
    judges=(
        "baseline_queue_count",
        "queue_count",
        "added_queue_count",
        "removed_queue_count",
        "moved_queue_count",
        "joined_client_count",
        "left_client_count",
    ),
)
LEAST_MOVES_RECOMPUTED: Final = Expectation(
    ASSIGNMENT_CHURN,
    "least_moves_recomputed",
    "The minimum number of moves equals an independent computation and is no more than the number "
    "of moved queues.",
    judges=("least_move_count",),
)
CHANGES_FOLLOW_COUNTS: Final = Expectation(
    ASSIGNMENT_CHURN,
    "changes_follow_counts",
    "The listed changes are exactly those that the counts show.",
    judges=("changes",),
)

OBSERVED_MOVES_EQUAL_DAYS: Final = Expectation(
    ASSIGNMENT_CHURN,
    "observed_moves_equal_days",
    "The baseline strategy and the observed queue moves equal what plain SQL computes from the "
    "drift of both days.",
    judges=(
        "baseline_effective_strategy",
        "observed_queue_count",
        "observed_moved_queue_count",
    ),
)

SUITE: Final = Suite(
    "assignment_churn",
    (
        ROWS_EQUAL_FAIRNESS,
        STATE_FOLLOWS_DAYS,
        COUNTS_EQUAL_DAYS,
        LEAST_MOVES_RECOMPUTED,
        CHANGES_FOLLOW_COUNTS,
        OBSERVED_MOVES_EQUAL_DAYS,
    ),
)

_UNDETERMINED = quoted_list((*DOUBTFUL_OWNER_REASONS, "route_missing"))

# Clients are 64-bit hashes: Spark aggregates numbers in a hash table, texts and sets by sorting all rows of the assignment.
_CLIENT: Final = "IF(client_id IS NULL, NULL, xxhash64(client_id))"
_OWNERS: Final = (
    f"count(client_id) AS owner_count, min({_CLIENT}) AS owner,\n"
    f"    struct(count(client_id), coalesce(bit_xor({_CLIENT}), 0L)) AS owners"
)

# Baseline rows get the strategy of the row that they are compared with: today's effective strategy is compared with the
# effective strategy of the baseline, every other strategy with itself.
_PAIRED_QUEUE: Final = f"""
WITH now_queue AS (
  SELECT
    consumer_group, topic, strategy, broker_name, queue_id,
    {_OWNERS},
    bool_or(coalesce(reason IN {_UNDETERMINED}, FALSE)) AS is_undetermined
  FROM gold_queue_assignment
  GROUP BY consumer_group, topic, strategy, broker_name, queue_id
),
old_queue AS (
  SELECT
    now_strategy.consumer_group, now_strategy.topic, now_strategy.strategy, broker_name, queue_id,
    min(old.strategy) AS old_strategy,
    {_OWNERS},
    bool_or(coalesce(reason IN {_UNDETERMINED}, FALSE)) AS is_undetermined
  FROM gold_assignment_fairness AS now_strategy
  JOIN baseline_queue_assignment AS old
    ON old.consumer_group = now_strategy.consumer_group AND old.topic = now_strategy.topic
    AND IF(now_strategy.is_effective, old.is_effective, old.strategy = now_strategy.strategy)
  GROUP BY now_strategy.consumer_group, now_strategy.topic, now_strategy.strategy, broker_name, queue_id
)
SELECT
  consumer_group, topic, strategy, broker_name, queue_id,
  now_queue.owners IS NOT NULL AS is_now, old_queue.owners IS NOT NULL AS is_old,
  now_queue.owners AS owners, old_queue.owners AS old_owners,
  now_queue.owner AS owner, old_queue.owner AS old_owner,
  now_queue.owner_count AS owner_count, old_queue.owner_count AS old_owner_count,
  now_queue.is_undetermined AS is_undetermined, old_queue.is_undetermined AS is_old_undetermined, old_strategy
FROM now_queue
FULL JOIN old_queue USING (consumer_group, topic, strategy, broker_name, queue_id)"""

SHARED_VIEWS: Final = {"churn_queue": _PAIRED_QUEUE}
"""The queues of both days beside each other: counted once, and then read several times."""

# The readers of a shared queue without an observed one are unknown, not absent.
_IS_SEEN: Final = """CASE state
        WHEN 'unknown' THEN coalesce(unasked_client_count = 0 AND size(observed_client_ids) > 0, FALSE)
        WHEN 'shared' THEN coalesce(size(observed_client_ids) > 0, FALSE)
        ELSE TRUE
      END"""

COMMON_TABLES: Final = f"""
now_strategy AS (
  SELECT consumer_group, topic, strategy, strategy_source, is_effective FROM gold_assignment_fairness
),
counted_churn AS (
  SELECT
    consumer_group, topic, strategy,
    count_if(is_now) AS queue_count,
    count_if(is_old) AS baseline_queue_count,
    count_if(is_now AND NOT is_old) AS added_queue_count,
    count_if(is_old AND NOT is_now) AS removed_queue_count,
    count_if(is_now AND is_old) AS shared_queue_count,
    count_if(is_now AND is_old AND owners <> old_owners) AS moved_queue_count,
    count_if(is_now AND owner_count = 0) AS unowned_now,
    count_if(is_now AND is_old AND old_owner_count = 0) AS unowned_before,
    coalesce(max(greatest(owner_count, old_owner_count)), 0) > 1
      OR strategy = 'BROADCASTING' OR coalesce(max(old_strategy) = 'BROADCASTING', FALSE) AS is_read_by_many,
    coalesce(bool_or(is_undetermined), FALSE) AS is_undetermined,
    coalesce(bool_or(is_old_undetermined), FALSE) AS is_old_undetermined,
    max(old_strategy) AS old_strategy
  FROM churn_queue
  GROUP BY consumer_group, topic, strategy
),
now_member AS (SELECT DISTINCT consumer_group, client_id FROM silver_consumer_connection),
old_member AS (SELECT DISTINCT consumer_group, client_id FROM baseline_consumer_connection),
-- For each n: the number of clients with n queues or more. The number of queues that can stay is the minimum of both days,
-- summed over all n: the common part of two staircases.
step AS (
  SELECT
    consumer_group, topic, strategy, place,
    least(count_if(side = 'now'), count_if(side = 'old')) AS kept
  FROM (
    SELECT consumer_group, topic, strategy, 'now' AS side,
      row_number() OVER (PARTITION BY consumer_group, topic, strategy, owner ORDER BY broker_name, queue_id) AS place
    FROM churn_queue
    WHERE owner IS NOT NULL
    UNION ALL
    SELECT consumer_group, topic, strategy, 'old' AS side,
      row_number() OVER (PARTITION BY consumer_group, topic, strategy, old_owner ORDER BY broker_name, queue_id)
    FROM (
      SELECT churn_queue.* FROM churn_queue
      LEFT SEMI JOIN (
        SELECT consumer_group, topic, strategy, xxhash64(client_id) AS client
        FROM now_member JOIN now_strategy USING (consumer_group)
        UNION ALL
        SELECT consumer_group, topic, strategy, owner FROM churn_queue WHERE owner IS NOT NULL
      ) AS there
      ON churn_queue.consumer_group = there.consumer_group AND churn_queue.topic = there.topic
        AND churn_queue.strategy = there.strategy AND churn_queue.old_owner = there.client
      WHERE is_now AND is_old
    )
  )
  GROUP BY consumer_group, topic, strategy, place
),
kept_in_place AS (
  SELECT consumer_group, topic, strategy, sum(kept) AS kept FROM step GROUP BY consumer_group, topic, strategy
),
came AS (
  SELECT consumer_group, count(*) AS joined_client_count
  FROM now_member LEFT ANTI JOIN old_member USING (consumer_group, client_id)
  GROUP BY consumer_group
),
went AS (
  SELECT consumer_group, count(*) AS left_client_count
  FROM old_member LEFT ANTI JOIN now_member USING (consumer_group, client_id)
  GROUP BY consumer_group
),
left_out_before AS (SELECT DISTINCT consumer_group, TRUE AS is_left_out_before FROM baseline_quarantined_group),
seen_on_both_days AS (
  SELECT
    consumer_group, topic, TRUE AS is_effective,
    max(old_strategy) AS baseline_effective_strategy,
    count_if(is_seen AND is_old_seen) AS observed_queue_count,
    count_if(is_seen AND is_old_seen AND holders <> old_holders) AS observed_moved_queue_count
  FROM (
    SELECT consumer_group, topic, broker_name, queue_id, strategy AS old_strategy, observed_client_ids AS old_holders,
      {_IS_SEEN} AS is_old_seen
    FROM baseline_ownership_drift
  )
  LEFT JOIN (
    SELECT consumer_group, topic, broker_name, queue_id, observed_client_ids AS holders,
      {_IS_SEEN} AS is_seen
    FROM gold_ownership_drift
  ) USING (consumer_group, topic, broker_name, queue_id)
  GROUP BY consumer_group, topic
),
expected_churn AS (
  SELECT
    consumer_group, topic, strategy, strategy_source, is_effective, baseline_ds,
    CASE
      WHEN baseline_ds IS NULL THEN 'no_baseline'
      WHEN coalesce(queue_count, 0) = 0 OR is_undetermined THEN 'unknown_now'
      WHEN is_left_out_before THEN 'unknown_on_baseline'
      WHEN baseline_queue_count = 0 THEN 'absent_on_baseline'
      WHEN is_old_undetermined THEN 'unknown_on_baseline'
      ELSE 'compared'
    END AS state,
    old_strategy, queue_count, baseline_queue_count, added_queue_count, removed_queue_count, moved_queue_count,
    IF(is_read_by_many, NULL, shared_queue_count - coalesce(kept, 0) - least(unowned_now, unowned_before)) AS least_move_count,
    coalesce(joined_client_count, 0) AS joined_client_count,
    coalesce(left_client_count, 0) AS left_client_count,
    baseline_effective_strategy, observed_queue_count, observed_moved_queue_count
  FROM now_strategy
  LEFT JOIN counted_churn USING (consumer_group, topic, strategy)
  LEFT JOIN kept_in_place USING (consumer_group, topic, strategy)
  LEFT JOIN came USING (consumer_group)
  LEFT JOIN went USING (consumer_group)
  LEFT JOIN left_out_before USING (consumer_group)
  LEFT JOIN seen_on_both_days USING (consumer_group, topic, is_effective)
  CROSS JOIN (SELECT max(baseline_ds) AS baseline_ds FROM run)
),
judged_churn AS (
  SELECT
    consumer_group, topic, strategy,
    given, expected,
    coalesce(expected.state = 'compared', FALSE) AS is_compared
  FROM (
    SELECT consumer_group, topic, strategy, any_value(given, TRUE) AS given, any_value(expected, TRUE) AS expected
    FROM (
      SELECT consumer_group, topic, strategy, struct(*) AS given, NULL AS expected FROM gold_assignment_churn
      UNION ALL
      SELECT consumer_group, topic, strategy, NULL, struct(*) FROM expected_churn
    )
    GROUP BY consumer_group, topic, strategy
  )
)"""

_SUBJECT: Final = "concat('group ', consumer_group, ', topic ', topic, ', strategy ', strategy)"
_COUNTS: Final = (
    "baseline_queue_count",
    "queue_count",
    "added_queue_count",
    "removed_queue_count",
    "moved_queue_count",
    "joined_client_count",
    "left_client_count",
)
_CHANGES: Final = {
    "clients_joined": "given.joined_client_count > 0",
    "clients_left": "given.left_client_count > 0",
    "queues_added": "given.added_queue_count > 0",
    "queues_removed": "given.removed_queue_count > 0",
    "strategy_changed": "given.baseline_strategy <> given.strategy",
}


def _differences(expected_of: dict[str, str]) -> str:
    """Return a SQL string that names each differing column with both values; null if none differs."""
    named = ", ".join(
        f"IF(given.{column} <=> {expected}, NULL, concat('{column} is ', {text_or_null(f'given.{column}')}, "
        f"', expected ', {text_or_null(expected)}))"
        for column, expected in expected_of.items()
    )
    return f"nullif(concat_ws('; ', {named}), '')"


def _violation(expectation: Expectation, differences: str) -> Violation:
    """Return the violation for differences in rows that both sides have."""
    return Violation(
        expectation,
        f"given IS NOT NULL AND expected IS NOT NULL AND {differences} IS NOT NULL",
        f"concat({_SUBJECT}, ': ', {differences})",
    )


_OBSERVED: Final = ("baseline_effective_strategy", "observed_queue_count", "observed_moved_queue_count")

_named_changes = ", ".join(f"IF({is_so}, '{name}', NULL)" for name, is_so in _CHANGES.items())
_VIOLATIONS: Final = (
    Violation(
        ROWS_EQUAL_FAIRNESS,
        "given IS NULL OR expected IS NULL OR given.strategy_source <> expected.strategy_source "
        "OR given.is_effective <> expected.is_effective",
        f"concat({_SUBJECT}, IF(given IS NULL, ' is missing', IF(expected IS NULL, ' is too many', ' differs in its source')))",
    ),
    _violation(
        STATE_FOLLOWS_DAYS,
        _differences(
            {
                "baseline_ds": "expected.baseline_ds",
                "state": "expected.state",
                "baseline_strategy": "IF(is_compared, expected.old_strategy, NULL)",
            }
        ),
    ),
    _violation(
        COUNTS_EQUAL_DAYS,
        _differences({column: f"IF(is_compared, expected.{column}, NULL)" for column in _COUNTS}),
    ),
    _violation(
        OBSERVED_MOVES_EQUAL_DAYS, _differences({column: f"expected.{column}" for column in _OBSERVED})
    ),
    _violation(
        LEAST_MOVES_RECOMPUTED,
        _differences({"least_move_count": "IF(is_compared, expected.least_move_count, NULL)"}),
    ),
    Violation(
        LEAST_MOVES_RECOMPUTED,
        "given.least_move_count > given.moved_queue_count",
        f"concat({_SUBJECT}, ': ', given.least_move_count, ' moves at least, and ', given.moved_queue_count, ' moved')",
    ),
    _violation(
        CHANGES_FOLLOW_COUNTS,
        _differences({"changes": f"IF(is_compared, array_compact(array({_named_changes})), NULL)"}),
    ),
)

VIOLATION_QUERY: Final = violations_in("judged_churn", _VIOLATIONS, ("consumer_group", "topic"))
