"""Expectations for `gold.producer_spread` and the publish side in silver, recomputed from the routes.

Belongs here: the expectations of this table, and the SQL that reads permissions, masters and order configurations independently. Does
not belong here: the choice of a name server's route where they differ; any of them is accepted.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import TYPE_CHECKING, Final

from expectations.suites.model import (
    Expectation,
    Suite,
    Violation,
    quoted,
    quoted_list,
    text_or_null,
    violations_in,
)
from expectations.suites.thresholds import (
    OWN_TOPIC_PREFIXES,
    RATIO_TOLERANCE,
    REPLY_TOPIC_SUFFIX,
    SYSTEM_TOPICS,
)
from rebalance_ledger.tables import PRODUCER_SPREAD
from rebalance_ledger.tables.silver.topic_route import TOPIC_ROUTE

if TYPE_CHECKING:
    from collections.abc import Callable

_PERM_WRITE: Final = 2
"""The bit of `perm` that lets producers write (`PermName.PERM_WRITE`)."""

PUBLISH_SIDE_EQUALS_ROUTE: Final = Expectation(
    TOPIC_ROUTE,
    "publish_side_equals_route",
    "The queues that producers write to follow from permission, master, queue numbers and order "
    "configuration of the same row.",
    judges=(
        "publish_queue_count",
        "publish_run_count",
        "publish_unread_count",
    ),
)
BROKERS_EQUAL_ROUTE: Final = Expectation(
    PRODUCER_SPREAD,
    "brokers_equal_route",
    "The brokers of every topic are exactly those of one name server's route and order configuration.",
    judges=(
        "topic",
        "broker_name",
        "reason",
    ),
)
TOPICS_OF_APPLICATIONS: Final = Expectation(
    PRODUCER_SPREAD,
    "topics_of_applications",
    "No row is about a RocketMQ topic of its own: retry, dead letters, system topics.",
)
COUNTS_EQUAL_ROUTE: Final = Expectation(
    PRODUCER_SPREAD,
    "counts_equal_route",
    "Queue counts, their source and the reason for having none equal those of that route; unknown "
    "counts are null, not 0.",
    judges=(
        "publish_source",
        "writable_queue_count",
        "reason",
        "is_only_writable_broker",
    ),
)
NUMBERS_EQUAL_COUNTS: Final = Expectation(
    PRODUCER_SPREAD,
    "numbers_equal_counts",
    f"Every share, and every effect of losing a broker, is within {RATIO_TOLERANCE:g} of what "
    "plain SQL computes.",
    judges=(
        "share",
        "share_per_queue",
        "unread_share",
        "retried_share_while_lost",
        "largest_share_after_loss",
        "load_ratio_after_loss",
    ),
)
LISTS_COUNTED: Final = Expectation(
    PRODUCER_SPREAD,
    "lists_counted",
    "The number of distinct publish lists equals that of the name servers' routes.",
    judges=("publish_list_count",),
)
SHARES_ADD_UP: Final = Expectation(
    PRODUCER_SPREAD,
    "shares_add_up",
    "The known shares of a topic are between 0 and 1, and add up to 1.",
)

SUITE: Final = Suite(
    "producer_spread",
    (
        PUBLISH_SIDE_EQUALS_ROUTE,
        BROKERS_EQUAL_ROUTE,
        TOPICS_OF_APPLICATIONS,
        COUNTS_EQUAL_ROUTE,
        NUMBERS_EQUAL_COUNTS,
        LISTS_COUNTED,
        SHARES_ADD_UP,
    ),
)

_IS_OWN_TOPIC = " OR ".join(
    (
        *(f"startswith(topic, {quoted(prefix)})" for prefix in OWN_TOPIC_PREFIXES),
        f"topic IN {quoted_list(SYSTEM_TOPICS)}",
        "own_name IS NOT NULL",
    )
)

# Column of `gold_producer_spread` -> SQL of its expected value, over the columns of `shared_route`.
_COUNTS: Final = {
    "publish_source": "IF(is_ordered, 'order_configuration', IF(is_static, 'static_topic', 'route'))",
    "writable_queue_count": "place_count",
    "reason": "reason",
    "is_only_writable_broker": "IF(is_known, is_only, NULL)",
}
_LEFT = "nullif(total - place_count, 0)"
_NUMBERS: Final = {
    "share": "IF(is_static AND NOT is_logical, NULL, place_count / nullif(total, 0))",
    "share_per_queue": "IF(place_count > 0, 1 / total, NULL)",
    "unread_share": "IF(reason IS NULL, unread_count / total, NULL)",
    "retried_share_while_lost": f"IF(is_known AND NOT is_only, run_count / {_LEFT}, NULL)",
    "largest_share_after_loss": (
        "IF(is_known AND NOT is_only, "
        f"IF(place_count = largest_counts[0], get(largest_counts, 1), largest_counts[0]) / {_LEFT}, NULL)"
    ),
    "load_ratio_after_loss": f"IF(is_known AND NOT is_only, total / {_LEFT}, NULL)",
}


def _is_near(column: str, expected: str) -> str:
    """Return a SQL boolean: the number is near the expected one, or both are null."""
    return (
        f"coalesce(abs(given.{column} - {expected}) <= {RATIO_TOLERANCE!r} * greatest(1, {expected}), "
        f"given.{column} IS NULL AND {expected} IS NULL)"
    )


def _differences(expected: dict[str, str], is_equal: Callable[[str, str], str]) -> str:
    """Return a SQL string that names each differing column of a broker with both values; null if none differs."""
    named = ", ".join(
        f"IF({is_equal(column, f'expected.{column}')}, NULL, concat('{column} is ', {text_or_null(f'given.{column}')}, "
        f"', expected ', {text_or_null(f'expected.{column}')}))"
        for column in expected
    )
    return f"concat('broker ', broker_name, ': ', nullif(concat_ws('; ', {named}), ''))"


def _columns(expected: dict[str, str]) -> str:
    return ", ".join(f"{quoted(column)}, {value}" for column, value in expected.items())


COMMON_TABLES: Final = f"""
-- Every broker and cluster has a topic of its own name.
own_name AS (
  SELECT DISTINCT explode(array(
    broker_name, broker_cluster_name, concat(broker_cluster_name, {quoted(REPLY_TOPIC_SUFFIX)}))) AS own_name
  FROM silver_broker
),
-- An order configuration is `broker:count;broker:count`; Java drops empty parts at the end only, and throws where a
-- part has no number.
configured_route AS (
  SELECT
    topic, nameserver, broker_name, perm, write_queue_count, subscribe_queue_count, has_master, is_in_route,
    publish_queue_count, publish_run_count, publish_unread_count, queue_data_count,
    is_in_route AND perm IS NULL AS is_logical,
    coalesce(order_topic_conf, '') <> '' AS is_ordered,
    order_topic_conf IS NULL AND bool_or(is_in_route AND perm IS NULL) OVER (PARTITION BY topic, nameserver) AS is_static,
    transform(
      filter(split(regexp_replace(order_topic_conf, ';+$', ''), ';'), part -> order_topic_conf RLIKE '[^;]'),
      part -> struct(
        split_part(part, ':', 1) AS broker_name,
        IF(split_part(part, ':', 2) RLIKE '^[+-]?[0-9]+$', try_cast(split_part(part, ':', 2) AS INT), NULL) AS count)
    ) AS parts
  FROM silver_topic_route
),
listed_route AS (
  SELECT
    *,
    CASE
      WHEN is_ordered THEN IF(exists(parts, part -> part.count IS NULL), NULL, aggregate(
        filter(parts, part -> part.broker_name = configured_route.broker_name),
        0, (sum, part) -> sum + greatest(part.count, 0)))
      WHEN is_static THEN IF(is_logical, subscribe_queue_count, 0)
      WHEN perm & {_PERM_WRITE} <> 0 AND has_master THEN greatest(write_queue_count, 0)
      ELSE 0
    END AS place_count,
    IF(is_ordered, transform(filter(parts, part -> part.count > 0), part -> part.broker_name), array(broker_name)) AS circle
  FROM configured_route
),
shared_route AS (
  SELECT
    *,
    reason IS NULL AND live_count = 1 AS is_only,
    place_count IS NOT NULL AND NOT is_static AS is_known
  FROM (
    SELECT
      *,
      CASE
        WHEN place_count IS NULL THEN NULL
        WHEN is_ordered THEN aggregate(
          filter(parts, part -> part.broker_name = listed_route.broker_name),
          0, (sum, part) -> sum + greatest(part.count - subscribe_queue_count, 0))
        -- Of several entries only the sum is known: each shares its first queues with the readable ones.
        WHEN queue_data_count > 1 THEN greatest(
          least(publish_unread_count, greatest(place_count - subscribe_queue_count, 0)),
          place_count - queue_data_count * subscribe_queue_count, 0)
        ELSE greatest(place_count - subscribe_queue_count, 0)
      END AS unread_count,
      IF(place_count > 0, greatest(1, size(filter(circle, (name, i) ->
        name = broker_name AND get(circle, (i + size(circle) - 1) % size(circle)) <> broker_name))), place_count) AS run_count,
      CASE
        WHEN place_count IS NULL THEN 'bad_order_configuration'
        WHEN place_count > 0 AND NOT is_in_route THEN 'not_in_route'
        WHEN place_count > 0 AND is_ordered AND NOT has_master THEN 'no_master'
        WHEN place_count > 0 THEN NULL
        WHEN is_ordered THEN 'not_in_order_configuration'
        WHEN is_static THEN 'behind_logical_queues'
        WHEN perm & {_PERM_WRITE} = 0 THEN 'no_write_permission'
        WHEN NOT has_master THEN 'no_master'
        ELSE 'no_write_queues'
      END AS reason,
      sum(place_count) OVER of_answer AS total,
      count_if(place_count > 0 AND is_in_route AND (has_master OR NOT is_ordered)) OVER of_answer AS live_count,
      sort_array(collect_list(place_count) OVER of_answer, FALSE) AS largest_counts
    FROM listed_route
    WINDOW of_answer AS (PARTITION BY topic, nameserver)
  )
),
compared_route AS (
  SELECT
    topic, nameserver,
    array_sort(collect_list(struct(broker_name, place_count))) AS answer,
    count(expected) AS broker_count,
    count(IF(expected IS NULL, NULL, given)) AS found_count,
    min(IF(expected IS NOT NULL AND given IS NULL, broker_name, NULL)) AS missing,
    array_sort(collect_list(IF(given IS NULL, NULL, {_differences(_COUNTS, lambda column, expected: f"given.{column} <=> {expected}")}))) AS count_differences,
    array_sort(collect_list(IF(given IS NULL, NULL, {_differences(_NUMBERS, _is_near)}))) AS number_differences,
    array_sort(collect_list(silver_difference)) AS silver_differences
  FROM (
    SELECT
      topic, nameserver, broker_name, place_count, given,
      -- A logical broker does not count where producers do not use it.
      IF(NOT is_logical OR place_count > 0, named_struct({_columns(_COUNTS)}, {_columns(_NUMBERS)}), NULL) AS expected,
      IF(
        publish_queue_count <=> place_count AND publish_unread_count <=> unread_count
          AND (is_logical OR publish_run_count <=> run_count),
        NULL,
        concat('broker ', broker_name, ', name server ', nameserver, ': ', {text_or_null("publish_queue_count")}, ' queues, ',
          {text_or_null("publish_unread_count")}, ' unread, ', {text_or_null("publish_run_count")}, ' runs, expected ',
          {text_or_null("place_count")}, ', ', {text_or_null("unread_count")}, ' and ', {text_or_null("run_count")})
      ) AS silver_difference
    FROM shared_route
    LEFT JOIN (SELECT topic, broker_name, struct(*) AS given FROM gold_producer_spread) USING (topic, broker_name)
  )
  GROUP BY topic, nameserver
),
judged_topic AS (
  SELECT
    topic, best, silver_differences, list_count, share_sum, has_odd_share, first_list_count, last_list_count,
    coalesce(given_count, 0) AS given_count,
    best IS NOT NULL AND ({_IS_OWN_TOPIC}) AS is_own
  FROM (
    SELECT
      topic,
      size(collect_set(answer)) AS list_count,
      flatten(collect_list(silver_differences)) AS silver_differences,
      -- The name server's route that fits the rows best.
      min_by(
        struct(broker_count, found_count, missing, count_differences, number_differences),
        struct(broker_count - found_count, size(count_differences), size(number_differences), nameserver)) AS best
    FROM compared_route
    GROUP BY topic
  )
  FULL OUTER JOIN (
    SELECT
      topic, count(*) AS given_count, sum(share) AS share_sum,
      bool_or(share < 0 OR share > 1 + {RATIO_TOLERANCE!r}) AS has_odd_share,
      min(publish_list_count) AS first_list_count, max(publish_list_count) AS last_list_count
    FROM gold_producer_spread
    GROUP BY topic
  ) USING (topic)
  LEFT JOIN own_name ON topic = own_name
)"""

_TOPIC: Final = "concat('topic ', topic, ': '"

VIOLATION_QUERY: Final = violations_in(
    "judged_topic",
    (
        Violation(
            PUBLISH_SIDE_EQUALS_ROUTE,
            "size(silver_differences) > 0",
            "concat('topic ', topic, ', ', silver_differences[0])",
            count="size(silver_differences)",
        ),
        Violation(
            BROKERS_EQUAL_ROUTE,
            "NOT is_own AND (best IS NULL OR best.found_count < best.broker_count OR best.found_count < given_count)",
            f"{_TOPIC}, given_count, ' brokers, in the route ', coalesce(best.broker_count, 0), "
            "coalesce(concat('; not given ', best.missing), ''))",
        ),
        Violation(
            TOPICS_OF_APPLICATIONS, "is_own AND given_count > 0", f"{_TOPIC}, given_count, ' brokers')"
        ),
        Violation(
            COUNTS_EQUAL_ROUTE,
            "size(best.count_differences) > 0",
            f"{_TOPIC}, best.count_differences[0])",
        ),
        Violation(
            LISTS_COUNTED,
            "NOT is_own AND (first_list_count <> list_count OR last_list_count <> list_count)",
            f"{_TOPIC}, first_list_count, ' to ', last_list_count, ', expected ', list_count)",
        ),
        Violation(
            NUMBERS_EQUAL_COUNTS,
            "size(best.number_differences) > 0",
            f"{_TOPIC}, best.number_differences[0])",
        ),
        Violation(
            SHARES_ADD_UP,
            f"has_odd_share OR abs(share_sum - 1) > {RATIO_TOLERANCE!r}",
            f"{_TOPIC}, 'the shares add up to ', {text_or_null('share_sum')})",
        ),
    ),
    ("topic",),
)
