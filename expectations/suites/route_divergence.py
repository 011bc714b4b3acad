"""Expectations for `gold.route_divergence`: every answer compared once, differences exactly where answers differ.

Does not belong here: whether a difference is a problem.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.model import Expectation, Suite, Violation, quoted, quoted_list, violations_in
from expectations.suites.thresholds import (
    DIVERGENCE_STATES,
    OWN_TOPIC_PREFIXES,
    ROUTE_DIFFERENCES,
    SYSTEM_TOPICS,
)
from rebalance_ledger.tables import ROUTE_DIVERGENCE

ANSWERS_ACCOUNTED: Final = Expectation(
    ROUTE_DIVERGENCE,
    "answers_accounted",
    "Every broker that a route or configuration of the topic names has a row for every name "
    "server that was queried.",
    judges=(
        "topic",
        "broker_name",
        "nameserver",
    ),
)
WORDS_KNOWN: Final = Expectation(
    ROUTE_DIVERGENCE,
    "words_known",
    "State and differences are from their closed lists; the state is differs exactly where there "
    "is a difference.",
    judges=("state",),
)
ANSWERS_EQUAL_SOURCES: Final = Expectation(
    ROUTE_DIVERGENCE,
    "answers_equal_sources",
    "Route, addresses and configuration in every row equal those in the silver tables, and so do the number of name servers that "
    "answered and that agree, and whether they give different readable queues.",
    judges=(
        "perm",
        "read_queue_count",
        "write_queue_count",
        "subscribe_queue_count",
        "order_topic_conf",
        "config_perm",
        "config_read_queue_count",
        "config_write_queue_count",
        "is_routed",
        "is_config_known",
        "broker_addrs",
        "is_read_affected",
        "nameserver_count",
        "agreeing_nameserver_count",
    ),
)
DIFFERENCES_FOLLOW_ANSWERS: Final = Expectation(
    ROUTE_DIVERGENCE,
    "differences_follow_answers",
    "The differences equal those that plain SQL computes between the answers.",
    judges=("differences",),
)

SUITE: Final = Suite(
    "route_divergence", (ANSWERS_ACCOUNTED, WORDS_KNOWN, ANSWERS_EQUAL_SOURCES, DIFFERENCES_FOLLOW_ANSWERS)
)

_ROUTE_COLUMNS = (
    "perm",
    "read_queue_count",
    "write_queue_count",
    "subscribe_queue_count",
    "order_topic_conf",
)
_CONFIG_COLUMNS = ("perm", "read_queue_count", "write_queue_count")


def _varies(column: str) -> str:
    """Return SQL for whether routes of a topic to a broker differ in a column; a missing route counts as a value."""
    return (
        f"min({column}) OVER of_broker <> max({column}) OVER of_broker "
        f"OR count({column}) OVER of_broker NOT IN (0, count(route_broker) OVER of_broker)"
    )


_BETWEEN = {
    "broker_missing": "count(route_broker) OVER of_broker BETWEEN 1 AND count_if(is_answer) OVER of_broker - 1",
    "read_queues": _varies("read_queue_count"),
    "write_queues": _varies("write_queue_count"),
    "perm": _varies("perm"),
    "order_conf": _varies("order_topic_conf"),
    "addresses": "count(route_broker) OVER of_broker > 0 AND has_other_address",
}
_IS_OWN_TOPIC = " OR ".join(
    (
        *(f"startswith(topic, {quoted(prefix)})" for prefix in OWN_TOPIC_PREFIXES),
        f"topic IN {quoted_list(SYSTEM_TOPICS)}",
        "topic = broker_name",
        "coalesce(is_topic_of_cluster, FALSE)",
    )
)
_AGAINST_CONFIG = {
    "config_read_queues": "read_queue_count <> config_read_queue_count",
    "config_write_queues": "write_queue_count <> config_write_queue_count",
    "config_perm": "perm <> config_perm",
    # Metadata exported by mqadmin has no topics of RocketMQ's own, such as the one that every broker creates at its start.
    "not_configured": "route_broker IS NOT NULL AND has_configs AND config_broker IS NULL AND "
    f"(coalesce(has_own_topics, FALSE) OR NOT ({_IS_OWN_TOPIC}))",
    "not_routed": "route_broker IS NULL AND config_broker IS NOT NULL",
}
_FOUND = ", ".join(
    f"IF(is_answer AND coalesce({sql}, FALSE), {quoted(name)}, NULL)"
    for name, sql in (_BETWEEN | _AGAINST_CONFIG).items()
)

COMMON_TABLES: Final = f"""
asked_nameserver AS (
  SELECT topic, nameserver, bool_or(state = 'payload' OR error_code <=> 17) AS is_answer
  FROM silver_export_record WHERE kind = 'nameserver_route' AND topic IS NOT NULL
  GROUP BY topic, nameserver
),
named_broker AS (
  SELECT topic, broker_name FROM silver_topic_route WHERE is_in_route
  UNION SELECT topic, broker_name FROM silver_topic_config
),
listed_broker AS (
  SELECT broker_name, nameserver, array_sort(collect_set(concat(broker_id, '=', broker_addr))) AS addresses
  FROM silver_broker GROUP BY broker_name, nameserver
),
answered_broker AS (
  SELECT DISTINCT broker_name, TRUE AS has_configs
  FROM silver_export_record WHERE kind = 'broker_topic_config' AND state = 'payload'
),
broker_with_own_topics AS (
  SELECT DISTINCT broker_name, TRUE AS has_own_topics FROM silver_topic_config WHERE topic = 'SELF_TEST_TOPIC'
),
topic_of_cluster AS (
  SELECT DISTINCT broker_name, topic, TRUE AS is_topic_of_cluster
  FROM (
    SELECT broker_name, broker_cluster_name AS topic FROM silver_broker
    UNION SELECT broker_name, concat(broker_cluster_name, '_REPLY_TOPIC') FROM silver_broker
  )
),
answer_of_nameserver AS (
  SELECT
    topic, broker_name, nameserver, is_answer, has_other_address, addresses, has_configs, has_own_topics, is_topic_of_cluster,
    route.broker_name AS route_broker, {", ".join(f"route.{name} AS {name}" for name in _ROUTE_COLUMNS)},
    config.broker_name AS config_broker, {", ".join(f"config.{name} AS config_{name}" for name in _CONFIG_COLUMNS)}
  FROM named_broker
  JOIN asked_nameserver USING (topic)
  LEFT JOIN (SELECT * FROM silver_topic_route WHERE is_in_route) AS route USING (topic, broker_name, nameserver)
  LEFT JOIN silver_topic_config AS config USING (topic, broker_name)
  LEFT JOIN listed_broker USING (broker_name, nameserver)
  LEFT JOIN (SELECT broker_name, count(DISTINCT addresses) > 1 AS has_other_address FROM listed_broker GROUP BY broker_name)
    USING (broker_name)
  LEFT JOIN answered_broker USING (broker_name)
  LEFT JOIN broker_with_own_topics USING (broker_name)
  LEFT JOIN topic_of_cluster USING (broker_name, topic)
),
found_difference AS (
  SELECT
    *, array_compact(array({_FOUND})) AS differences,
    -- A name server that answers without the broker gives no queue of it.
    coalesce(min(IF(is_answer, coalesce(subscribe_queue_count, 0), NULL)) OVER of_broker
      <> max(IF(is_answer, coalesce(subscribe_queue_count, 0), NULL)) OVER of_broker, FALSE) AS is_read_affected,
    CAST(count_if(is_answer) OVER of_broker AS INT) AS nameserver_count,
    IF(is_answer, CAST(count_if(is_answer) OVER of_answer AS INT), NULL) AS agreeing_nameserver_count
  FROM answer_of_nameserver
  WINDOW of_broker AS (PARTITION BY topic, broker_name),
    of_answer AS (PARTITION BY topic, broker_name, route_broker, {", ".join(_ROUTE_COLUMNS)})
),
divergence AS (
  SELECT topic, broker_name, nameserver, found, divergence
  FROM (SELECT topic, broker_name, nameserver, struct(*) AS found FROM found_difference)
  FULL OUTER JOIN (SELECT topic, broker_name, nameserver, struct(*) AS divergence FROM gold_route_divergence)
  USING (topic, broker_name, nameserver)
)"""

_SUBJECT = "concat('topic ', topic, ', broker ', broker_name, ', name server ', nameserver, ': ', {details})"
_SHOWN = {
    **{name: f"found.{name}" for name in (*_ROUTE_COLUMNS, *(f"config_{name}" for name in _CONFIG_COLUMNS))},
    "is_routed": "IF(found.is_answer, found.route_broker IS NOT NULL, NULL)",
    "is_config_known": "coalesce(found.has_configs, FALSE)",
    "broker_addrs": "found.addresses",
    "is_read_affected": "found.is_read_affected",
    "nameserver_count": "found.nameserver_count",
    "agreeing_nameserver_count": "found.agreeing_nameserver_count",
}

VIOLATION_QUERY: Final = violations_in(
    "divergence",
    (
        Violation(
            ANSWERS_ACCOUNTED,
            "found IS NULL OR divergence IS NULL",
            _SUBJECT.format(details="IF(found IS NULL, 'in no source', 'no row')"),
        ),
        Violation(
            WORDS_KNOWN,
            f"NOT divergence.state IN {quoted_list(DIVERGENCE_STATES)}"
            f" OR size(array_except(divergence.differences, array{quoted_list(ROUTE_DIFFERENCES)})) > 0"
            " OR (divergence.state = 'differs') <> (size(divergence.differences) > 0)"
            " OR found IS NOT NULL AND (divergence.state = 'unknown') = found.is_answer",
            _SUBJECT.format(
                details="concat(divergence.state, ' [', array_join(divergence.differences, ' '), ']')"
            ),
        ),
        Violation(
            ANSWERS_EQUAL_SOURCES,
            "found IS NOT NULL AND divergence IS NOT NULL AND NOT struct({}) <=> struct({})".format(
                ", ".join(f"divergence.{name} AS {name}" for name in _SHOWN),
                ", ".join(f"{sql} AS {name}" for name, sql in _SHOWN.items()),
            ),
            _SUBJECT.format(
                details="'the row differs in perm, queue numbers, order configuration, addresses, existence, readable queues or the number of name servers'"
            ),
        ),
        Violation(
            DIFFERENCES_FOLLOW_ANSWERS,
            "found IS NOT NULL AND array_sort(divergence.differences) <> array_sort(found.differences)",
            _SUBJECT.format(
                details="concat('[', array_join(divergence.differences, ' '), '] where [', "
                "array_join(found.differences, ' '), '] follows')"
            ),
        ),
    ),
    ("topic", "broker_name"),
)
"""Violations per topic, broker and name server."""
