"""Expectations for `gold.queue_assignment`: no duplicate rows, no missing queues, no owners that are not members.

Belongs here: the expectations of this table and the rows that violate them. Does not belong here: the counting (`recomputed`), the
one-day and one-row-per-key checks that every table shares (`every_table`).
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.model import (
    Expectation,
    Suite,
    Violation,
    quoted,
    quoted_list,
    subject_columns,
    violations_in,
)
from expectations.suites.presence import USERS_GROUP
from expectations.suites.recomputed import KEPT, NOT_IN_ROUTE, STRATEGY_SUBJECT
from expectations.suites.thresholds import (
    COVERING_STRATEGIES,
    EXCUSED_UNOWNED_REASONS,
    ONE_OWNER_STRATEGIES,
    SPREAD_BOUND,
    STRATEGY_SOURCES,
    names_in_table,
)
from rebalance_ledger.tables import QUEUE_ASSIGNMENT

ONE_ROW_PER_OWNER: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "one_row_per_owner",
    "Every queue, strategy and owner is in one row only; members with the same client id share that row.",
)
ONE_OWNER: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "one_owner",
    "No strategy that guarantees one owner assigns a queue to two clients of one language with "
    "the same parameters; MACHINE_ROOM guarantees it from Java 4.8.0. Queues without a route were not assigned: clients keep them.",
)
OWNED_OR_UNOWNED: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "owned_or_unowned",
    "No queue with an owner has a row without an owner for the same strategy.",
)
REASON_GIVEN: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "reason_given",
    "Every queue without an owner has a reason.",
    judges=("reason",),
)
NO_REASON_FOR_OWNER: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "no_reason_for_owner",
    "No queue with an owner has a reason, except route_missing.",
    judges=("reason",),
)
COVERED: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "no_uncovered_queue",
    "No strategy that guarantees full coverage leaves a queue unowned in an online clustering "
    "group, unless a client id is duplicated or the reason is an accepted exception.",
)
SOURCE_KNOWN: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "source_known",
    "Every strategy of a group and topic has one source, from the closed list, and is effective "
    "in all of its rows or in none.",
    judges=(
        "strategy_source",
        "is_effective",
    ),
)
ONE_EFFECTIVE_STRATEGY: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "one_effective_strategy",
    "No group has more than one effective strategy for a topic.",
    judges=("is_effective",),
)
QUEUES_EQUAL_ROUTE: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "queues_equal_route",
    "The queues of every group, topic and strategy are exactly the readable queues in the route "
    "of one name server.",
    judges=(
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
    ),
)
SAME_QUEUES: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "same_queues",
    "Every strategy of a group and topic covers the same queues.",
)
SUBSCRIBED_TOPIC_PRESENT: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "subscribed_topic_present",
    "Every topic that a group subscribes to and that has readable queues on every name server has rows.",
)
OWNER_IS_MEMBER: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "owner_is_member",
    "Every owner is connected as a member of the group or, for a queue kept without a route, was "
    "observed to hold it.",
    judges=("client_id",),
)
SPREAD_WITHIN_BOUND: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "spread_within_bound",
    "The queue counts of any two members differ by no more than the bound of the strategy, unless "
    "a client id is duplicated.",
)

SUITE: Final = Suite(
    "queue_assignment",
    (
        ONE_ROW_PER_OWNER,
        ONE_OWNER,
        OWNED_OR_UNOWNED,
        REASON_GIVEN,
        NO_REASON_FOR_OWNER,
        COVERED,
        SOURCE_KNOWN,
        ONE_EFFECTIVE_STRATEGY,
        QUEUES_EQUAL_ROUTE,
        SAME_QUEUES,
        SUBSCRIBED_TOPIC_PRESENT,
        OWNER_IS_MEMBER,
        SPREAD_WITHIN_BOUND,
    ),
)

_QUEUE = "'queue ', broker_name, '/', queue_id"
_OWNED_BY = f"{_QUEUE}, ' is owned by ', first_owner"

QUEUE_VIOLATIONS: Final = (
    Violation(ONE_ROW_PER_OWNER, "repeated_row_count > 0 OR unowned_row_count > 1", f"concat({_QUEUE})"),
    Violation(ONE_OWNER, "owner_count > 1 AND NOT is_kept", f"concat({_OWNED_BY}, ' and ', last_owner)"),
    Violation(
        OWNED_OR_UNOWNED,
        "owner_count > 0 AND unowned_row_count > 0",
        f"concat({_OWNED_BY}, ' and no owner')",
    ),
    Violation(REASON_GIVEN, "unowned_row_count > 0 AND unowned_reason IS NULL", f"concat({_QUEUE})"),
    Violation(
        NO_REASON_FOR_OWNER,
        "owner_reason IS NOT NULL",
        f"concat({_OWNED_BY}, ' with the reason ', owner_reason)",
    ),
    Violation(
        COVERED,
        f"owner_count = 0 AND NOT coalesce(unowned_reason, '') IN {quoted_list(EXCUSED_UNOWNED_REASONS)}",
        f"concat({_QUEUE}, ' is unowned with the reason ', coalesce(unowned_reason, 'null'))",
    ),
)
"""Violations per queue and strategy, over the columns of `recomputed`'s `queue`."""

# The group's part of the condition under which a violation of a queue counts.
_COUNTED_WHERE: Final = {
    ONE_OWNER.rule: f"strategy IN {quoted_list(names_in_table(ONE_OWNER_STRATEGIES))} "
    "AND (strategy <> 'MACHINE_ROOM' OR keeps_rooms_apart) "
    # Go has a different ring than Java, and uses AVG within nearby rooms. A hypothetical strategy uses one rule for all members.
    "AND (first_source = 'hypothetical' OR NOT has_member_parameters "
    f"AND (has_one_language OR strategy IN {quoted_list(SPREAD_BOUND)} AND has_one_order))",
    COVERED.rule: f"strategy IN {quoted_list(names_in_table(COVERING_STRATEGIES))} "
    "AND is_online_clustering AND NOT has_duplicate_id",
}


def _of_group(violation: Violation) -> Violation:
    """Return a violation of queues as a violation of the `judged` row with their count and first example."""
    rule = violation.expectation.rule
    return Violation(
        violation.expectation,
        f"{rule}_count > 0 AND {_COUNTED_WHERE.get(rule, 'TRUE')}",
        f"concat({STRATEGY_SUBJECT}, ': ', {rule}_example, "
        f"IF({rule}_count > 1, concat(' (and ', {rule}_count - 1, ' more)'), ''))",
        f"{rule}_count",
    )


JUDGED_VIOLATIONS: Final = (
    *map(_of_group, QUEUE_VIOLATIONS),
    Violation(
        SOURCE_KNOWN,
        "first_source <> last_source OR is_effective <> is_always_effective "
        f"OR NOT first_source IN {quoted_list(STRATEGY_SOURCES)}",
        f"concat({STRATEGY_SUBJECT}, ': source ', first_source, ' and ', last_source, ', effective ', "
        "is_effective, ' and ', is_always_effective)",
    ),
    Violation(
        ONE_EFFECTIVE_STRATEGY,
        "is_first_strategy AND effective_strategy_count > 1",
        "concat('group ', consumer_group, ', topic ', topic, ': ', effective_strategy_count, ' effective strategies')",
    ),
    Violation(
        QUEUES_EQUAL_ROUTE,
        "is_assigned AND (NOT coalesce("
        "exists(queue_sets, of_route -> of_route.queue_count = queue_count AND of_route.queue_hash = queue_hash), "
        "queue_count = 0) OR kept_queue_count > 0 AND fewest_routed_queues > 0)",
        f"concat({STRATEGY_SUBJECT}, ': ', queue_count, ' queues, and ', kept_queue_count, ' kept without a route; "
        "the name servers have ', coalesce(concat(fewest_routed_queues, ' to ', most_routed_queues), 'none'), "
        "' of this topic')",
    ),
    Violation(
        SAME_QUEUES,
        "is_first_strategy AND is_uneven_queue_set",
        "concat('group ', consumer_group, ', topic ', topic, ': ', least_queue_count, ' to ', most_queue_count, "
        "' queues, by strategy')",
    ),
    Violation(
        OWNER_IS_MEMBER,
        "size(foreign_clients) > 0",
        f"concat({STRATEGY_SUBJECT}, ': ', array_join(slice(array_sort(foreign_clients), 1, 3), ' and '), "
        "' not connected')",
        "size(foreign_clients)",
    ),
    Violation(
        SPREAD_WITHIN_BOUND,
        "spread > promised_bound AND NOT is_spread_excused",
        f"concat({STRATEGY_SUBJECT}, ': two clients differ by ', spread, ' queues, promised ', promised_bound)",
    ),
)
"""Violations per group, topic and strategy, over the columns of `recomputed`'s `judged`."""

OTHER_VIOLATION_QUERIES: Final = (
    f"""
SELECT
  {quoted(SUBSCRIBED_TOPIC_PRESENT.expectation_id)} AS expectation_id, 1D AS amount,
  concat('group ', consumer_group, ', topic ', topic, ': ', fewest_routed_queues, ' readable queues') AS example,
  {subject_columns(("consumer_group", "topic"))}
FROM (SELECT DISTINCT consumer_group, topic FROM silver_subscription WHERE {USERS_GROUP})
JOIN topic_queues USING (topic)
LEFT ANTI JOIN gold_queue_assignment USING (consumer_group, topic)
WHERE fewest_routed_queues > 0""",
    violations_in(
        f"""(
  SELECT * FROM gold_queue_assignment
  LEFT ANTI JOIN (SELECT * FROM silver_observed_owner WHERE NOT is_pop AND NOT coalesce(is_dropped, FALSE))
    USING (consumer_group, topic, broker_name, queue_id, client_id)
  WHERE reason = {quoted(KEPT)}
)""",
        [
            Violation(
                OWNER_IS_MEMBER,
                "TRUE",
                f"concat({STRATEGY_SUBJECT}, ': ', coalesce(client_id, 'no client'), ' was not observed to hold ', "
                "broker_name, '/', queue_id)",
            )
        ],
        ("consumer_group", "topic", "broker_name"),
    ),
    violations_in(
        f"""(
  SELECT
    listed.*, member.client_id IS NOT NULL AS is_member,
    coalesce(queue_id < queue_count AND route_count = nameserver_count, FALSE) AS is_routed
  FROM (SELECT * FROM gold_queue_assignment WHERE reason = {quoted(NOT_IN_ROUTE)}) AS listed
  LEFT JOIN (
    SELECT consumer_group, client_id FROM silver_consumer_connection
    UNION
    SELECT consumer_group, client_id FROM silver_proxy_connection
  ) AS member
    ON listed.consumer_group = member.consumer_group AND listed.client_id = member.client_id
  LEFT JOIN (
    SELECT topic, broker_name, min(subscribe_queue_count) AS queue_count, count(*) AS route_count
    FROM silver_topic_route WHERE is_in_route GROUP BY topic, broker_name
  ) AS route ON listed.topic = route.topic AND listed.broker_name = route.broker_name
  LEFT JOIN (
    SELECT topic, count(DISTINCT nameserver) AS nameserver_count
    FROM silver_topic_route WHERE is_in_route GROUP BY topic
  ) AS routes ON listed.topic = routes.topic
)""",
        [
            Violation(
                OWNER_IS_MEMBER,
                "NOT is_member",
                f"concat({STRATEGY_SUBJECT}, ': ', coalesce(client_id, 'no client'), ' not connected')",
            ),
            Violation(
                QUEUES_EQUAL_ROUTE,
                "is_routed OR NOT is_effective OR NOT strategy IN ('CONFIG', 'MIXED')",
                f"concat({STRATEGY_SUBJECT}, ': ', broker_name, '/', queue_id, ' is marked as in no route')",
            ),
        ],
        ("consumer_group", "topic", "broker_name"),
    ),
)
"""Violations that require a comparison with another table."""
