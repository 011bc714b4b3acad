"""Expectations for `gold.queue_sharing`: readers by the broker's rule, offsets and modes as in the sources.

Belongs here: the rule of `allocate4Pop` and of proxies, recomputed in plain SQL. Does not belong here: the state of a queue
(`ownership_drift`).
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
    text_or_null,
    violations_in,
)
from expectations.suites.thresholds import GRPC_CLIENT_ID_PATTERN, REQUEST_MODE_SOURCES, REQUEST_MODES
from rebalance_ledger.tables import QUEUE_SHARING

SHARED_QUEUES_PRESENT: Final = Expectation(
    QUEUE_SHARING,
    "shared_queues_present",
    "Every queue that the assignment leaves to POP members has a row; every other row is a queue "
    "that was observed to be popped.",
    judges=(
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
    ),
)
READERS_FOLLOW_RULE: Final = Expectation(
    QUEUE_SHARING,
    "readers_follow_rule",
    "The expected readers equal those that plain SQL computes by allocate4Pop from one broker's "
    "member list, and all clients of a proxy.",
    judges=("expected_reader_ids",),
)
READERS_SEEN: Final = Expectation(
    QUEUE_SHARING,
    "readers_seen",
    "Every observed reader has the queue, or all queues of its broker, in its table of popped queues.",
    judges=("observed_reader_ids",),
)
MODE_FOLLOWS_SOURCES: Final = Expectation(
    QUEUE_SHARING,
    "mode_follows_sources",
    "The request mode and its source are from their closed lists and equal the entry or default "
    "of each broker.",
    judges=(
        "request_mode",
        "request_mode_source",
        "pop_share_count",
    ),
)
NUMBERS_EQUAL_SOURCES: Final = Expectation(
    QUEUE_SHARING,
    "numbers_equal_sources",
    "The sharing degree is the number of readers; offsets equal the broker's; in-flight and ready "
    "counts are their differences; FIFO blocks equal the broker's file; readers without an answer, members that pull and messages "
    "in retry topics equal what plain SQL counts.",
    judges=(
        "sharing_degree",
        "committed_offset",
        "handed_out_offset",
        "in_flight_count_at_most",
        "ready_count",
        "order_blocked_until",
        "redelivery_count",
        "unobserved_reader_count",
        "puller_ids",
        "retry_backlog_count",
    ),
)

SUITE: Final = Suite(
    "queue_sharing",
    (
        SHARED_QUEUES_PRESENT,
        READERS_FOLLOW_RULE,
        READERS_SEEN,
        MODE_FOLLOWS_SOURCES,
        NUMBERS_EQUAL_SOURCES,
    ),
)

_QUEUE: Final = "consumer_group, topic, broker_name, queue_id"
_GRPC: Final = f"rlike(client_id, {quoted(GRPC_CLIENT_ID_PATTERN)})"

COMMON_TABLES: Final = f"""
shared_group AS (SELECT DISTINCT consumer_group FROM gold_queue_sharing),
placed_queue AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY consumer_group, topic ORDER BY encode(broker_name, 'UTF-16BE'), queue_id
    ) - 1 AS place,
    count(*) OVER (PARTITION BY consumer_group, topic) AS queue_count
  FROM gold_queue_sharing
),
listing AS (
  SELECT consumer_group, broker_name AS source, client_id FROM silver_consumer_connection
  LEFT SEMI JOIN shared_group USING (consumer_group)
),
proxied AS (
  SELECT DISTINCT consumer_group, topic, client_id FROM silver_proxy_connection
  JOIN silver_proxy_subscription USING (consumer_group, proxy)
  LEFT SEMI JOIN shared_group USING (consumer_group)
),
-- One row per member list of a broker, in Java's order; the proxies' list if no broker has one.
member_list AS (
  SELECT DISTINCT consumer_group, members FROM (
    SELECT consumer_group, source,
      transform(array_sort(collect_list(struct(encode(client_id, 'UTF-16BE') AS code, client_id))), m -> m.client_id) AS members
    FROM listing GROUP BY consumer_group, source
    UNION ALL
    SELECT consumer_group, NULL,
      transform(array_sort(collect_set(struct(encode(client_id, 'UTF-16BE') AS code, client_id))), m -> m.client_id)
    FROM silver_proxy_connection LEFT SEMI JOIN shared_group USING (consumer_group)
    WHERE NOT consumer_group IN (SELECT consumer_group FROM listing)
    GROUP BY consumer_group
  )
),
member_answer AS (
  SELECT
    consumer_group, client_id, min(strategy) AS strategy, max(strategy) AS last_strategy,
    coalesce(min(is_client_rebalance), TRUE) AS is_client_rebalance, coalesce(max(is_orderly), FALSE) AS is_orderly,
    bool_or(state = 'online') AS has_answered
  FROM (
    SELECT consumer_group, client_id, strategy, is_client_rebalance, is_orderly, state FROM silver_consumer_client
    UNION ALL
    SELECT consumer_group, client_id, strategy, is_client_rebalance, is_orderly, state FROM silver_client_process
  )
  LEFT SEMI JOIN shared_group USING (consumer_group)
  GROUP BY consumer_group, client_id
),
-- Per group and topic: the members that pop all queues, and those that pop what the broker assigns to them.
popping AS (
  SELECT
    consumer_group, topic,
    collect_set(IF(is_grpc, client_id, NULL)) AS grpc_ids,
    collect_set(IF(NOT is_grpc AND is_silent, client_id, NULL)) AS silent_ids,
    collect_set(IF(NOT is_grpc AND NOT is_silent, client_id, NULL)) AS popper_ids,
    min(IF(NOT is_grpc AND NOT is_silent, strategy, NULL)) AS strategy,
    max(IF(NOT is_grpc AND NOT is_silent, last_strategy, NULL)) AS last_strategy
  FROM (
    SELECT
      topics.consumer_group, topics.topic, member.client_id, strategy, last_strategy,
      rlike(member.client_id, {quoted(GRPC_CLIENT_ID_PATTERN)}) AND strategy IS NULL AS is_grpc,
      NOT coalesce(has_answered, FALSE) AS is_silent
    FROM (SELECT DISTINCT consumer_group, topic, request_mode FROM gold_queue_sharing) AS topics
    JOIN (
      SELECT DISTINCT consumer_group, client_id FROM listing
      UNION SELECT consumer_group, client_id FROM silver_proxy_connection
    ) AS member ON member.consumer_group = topics.consumer_group
    LEFT JOIN member_answer ON member_answer.consumer_group = member.consumer_group AND member_answer.client_id = member.client_id
    WHERE rlike(member.client_id, {quoted(GRPC_CLIENT_ID_PATTERN)}) AND strategy IS NULL
      OR NOT coalesce(has_answered, FALSE)
      OR request_mode = 'POP' AND NOT is_client_rebalance AND NOT is_orderly
  )
  GROUP BY consumer_group, topic
),
unsubscribed AS (
  SELECT topics.consumer_group, topics.topic, collect_set(answered.client_id) AS unsubscribed_ids
  FROM (SELECT DISTINCT consumer_group, topic FROM gold_queue_sharing) AS topics
  JOIN (SELECT DISTINCT consumer_group, client_id FROM silver_client_subscription) AS answered
  ON answered.consumer_group = topics.consumer_group
  LEFT ANTI JOIN silver_client_subscription AS own
  ON own.consumer_group = topics.consumer_group AND own.topic = topics.topic AND own.client_id = answered.client_id
  GROUP BY topics.consumer_group, topics.topic
),
proxied_grpc AS (
  SELECT consumer_group, topic, collect_set(client_id) AS proxied_ids FROM proxied WHERE {_GRPC}
  GROUP BY consumer_group, topic
),
ruled AS (
  SELECT
    {_QUEUE}, expected_reader_ids,
    array_distinct(array_except(
      concat(
        filter(members, id -> array_contains(grpc_ids, id)),
        coalesce(proxied_ids, array()),
        CASE
          WHEN request_mode_source <=> 'server_off' OR coalesce(pop_share_count, -1) <= 0
            OR pop_share_count >= size(members) - 1
            THEN filter(members, id -> array_contains(popper_ids, id) OR array_contains(silent_ids, id))
          WHEN size(members) > queue_count THEN filter(
            transform(members, (id, place_of_id) -> IF(place_of_id % queue_count = place, id, NULL)),
            id -> array_contains(popper_ids, id) OR array_contains(silent_ids, id))
          ELSE filter(
            transform(
              sequence(0, pop_share_count),
              step -> get(members, pmod(CAST(owner_place AS INT) - step, size(members)))),
            id -> array_contains(popper_ids, id) OR array_contains(silent_ids, id))
        END
      ),
      coalesce(unsubscribed_ids, array())
    )) AS reader_ids,
    size(array_distinct(members)) < size(members) OR strategy <> last_strategy AS is_excused
  FROM (
    SELECT
      *,
      IF(
        strategy = 'AVG_BY_CIRCLE', place % size(members),
        IF(
          place < (queue_count % size(members)) * (queue_count DIV size(members) + 1),
          place DIV (queue_count DIV size(members) + 1),
          queue_count % size(members)
            + (place - (queue_count % size(members)) * (queue_count DIV size(members) + 1))
              DIV greatest(queue_count DIV size(members), 1)
        )
      ) AS owner_place
    FROM placed_queue
    JOIN member_list USING (consumer_group)
    LEFT JOIN popping USING (consumer_group, topic)
    LEFT JOIN unsubscribed USING (consumer_group, topic)
    LEFT JOIN proxied_grpc USING (consumer_group, topic)
    WHERE expected_reader_ids IS NOT NULL
  )
),
judged_readers AS (
  SELECT
    {_QUEUE}, any_value(expected_reader_ids) AS expected_reader_ids, any_value(reader_ids) AS reader_ids,
    bool_or(coalesce(is_excused, FALSE)
      OR array_sort(reader_ids) = array_sort(expected_reader_ids)) AS is_by_rule
  FROM ruled
  GROUP BY {_QUEUE}
),
broker_answer AS (
  SELECT
    broker_name, bool_or(state = 'payload') AS is_read, bool_or(coalesce(error_code = 3, FALSE)) AS is_too_old
  FROM silver_export_record WHERE kind = 'broker_message_request_mode'
  GROUP BY broker_name
),
broker_default AS (
  SELECT
    broker_name,
    upper(max(IF(setting = 'defaultMessageRequestMode', value, NULL))) AS default_mode,
    try_cast(max(IF(setting = 'defaultPopShareQueueNum', value, NULL)) AS INT) AS default_share,
    lower(max(IF(setting = 'serverLoadBalancerEnable', value, NULL))) <=> 'false' AS is_off, count(*) > 0 AS has_settings
  FROM silver_broker_setting
  GROUP BY broker_name
),
answered_member AS (
  SELECT consumer_group, collect_set(client_id) AS answered_ids
  FROM member_answer
  WHERE has_answered AND NOT (rlike(client_id, {quoted(GRPC_CLIENT_ID_PATTERN)}) AND strategy IS NULL)
  GROUP BY consumer_group
),
-- Processes that answered speak for their client id.
pulling AS (
  SELECT {_QUEUE}, array_sort(collect_set(client_id)) AS pulling_ids
  FROM (
    SELECT {_QUEUE}, client_id, is_pop, is_dropped FROM silver_observed_owner
    LEFT ANTI JOIN (SELECT * FROM silver_client_process WHERE state = 'online') USING (consumer_group, client_id)
    UNION ALL
    SELECT {_QUEUE}, client_id, is_pop, is_dropped FROM silver_process_owner
  )
  LEFT SEMI JOIN shared_group USING (consumer_group)
  WHERE NOT is_pop AND NOT coalesce(is_dropped, FALSE)
  GROUP BY {_QUEUE}
),
retry_backlog AS (
  SELECT
    shared_topic.consumer_group, shared_topic.topic,
    -- Missing offsets are not zero, and a sum that no bigint holds is not published.
    IF(bool_or(broker_offset IS NULL), NULL, try_cast(sum(greatest(broker_offset, consumer_offset) - consumer_offset) AS BIGINT))
      AS waiting_count
  FROM (
    SELECT consumer_group, topic
    FROM gold_queue_sharing
    LEFT JOIN (
      SELECT DISTINCT consumer_group, broker_name, TRUE AS has_offsets FROM silver_export_record
      WHERE kind = 'consume_stats' AND state = 'payload'
    ) USING (consumer_group, broker_name)
    GROUP BY consumer_group, topic
    HAVING bool_and(coalesce(has_offsets, FALSE))
  ) AS shared_topic
  JOIN silver_consume_progress AS progress
  ON progress.consumer_group = shared_topic.consumer_group AND progress.topic IN (
    concat('%RETRY%', shared_topic.consumer_group, '_', shared_topic.topic),
    concat('%RETRY%', shared_topic.consumer_group, '+', shared_topic.topic))
  LEFT SEMI JOIN silver_consume_progress AS own
  ON own.consumer_group = shared_topic.consumer_group AND own.topic = shared_topic.topic
  WHERE consumer_offset >= 0
  GROUP BY shared_topic.consumer_group, shared_topic.topic
),
judged_sharing AS (
  SELECT
    shared.*, answered_ids, pulling_ids, waiting_count,
    -- Without the broker's settings it is not known whether it balances at all, whatever its entries are.
    CASE
      WHEN NOT coalesce(has_settings, FALSE) AND NOT (entry.mode IS NULL AND coalesce(is_too_old, FALSE)) THEN NULL
      WHEN entry.mode IS NOT NULL THEN entry.mode
      WHEN is_too_old THEN 'CLIENT'
      WHEN NOT coalesce(is_read, FALSE) THEN NULL
      WHEN startswith(shared.topic, '%RETRY%') THEN 'PULL'
      ELSE default_mode
    END AS mode_of_broker,
    IF(entry.mode IS NOT NULL, entry.pop_share_queue_count, coalesce(default_share, -1)) AS share_of_broker,
    CASE
      WHEN coalesce(is_off, FALSE) THEN 'server_off'
      WHEN entry.mode IS NOT NULL THEN 'entry'
      WHEN startswith(shared.topic, '%RETRY%') AND NOT coalesce(is_too_old, FALSE) THEN 'retry_rule'
      ELSE 'broker_default'
    END AS source_of_broker,
    progress.consumer_offset, progress.pull_offset, progress.broker_offset,
    order_lock.blocked_until AS lock_ends_at, order_lock.captured_at AS lock_read_at,
    order_lock.redelivery_count AS redeliveries_of_lock
  FROM gold_queue_sharing AS shared
  LEFT JOIN silver_message_request_mode AS entry
  ON entry.consumer_group = shared.consumer_group AND entry.topic = shared.topic AND entry.broker_name = shared.broker_name
  LEFT JOIN broker_answer ON broker_answer.broker_name = shared.broker_name
  LEFT JOIN broker_default ON broker_default.broker_name = shared.broker_name
  LEFT JOIN silver_consume_progress AS progress
  ON progress.consumer_group = shared.consumer_group AND progress.topic = shared.topic
    AND progress.broker_name = shared.broker_name AND progress.queue_id = shared.queue_id
  LEFT JOIN silver_queue_order_lock AS order_lock
  ON order_lock.consumer_group = shared.consumer_group AND order_lock.topic = shared.topic
    AND order_lock.broker_name = shared.broker_name AND order_lock.queue_id = shared.queue_id
  LEFT JOIN answered_member ON answered_member.consumer_group = shared.consumer_group
  LEFT JOIN pulling
  ON pulling.consumer_group = shared.consumer_group AND pulling.topic = shared.topic
    AND pulling.broker_name = shared.broker_name AND pulling.queue_id = shared.queue_id
  LEFT JOIN retry_backlog ON retry_backlog.consumer_group = shared.consumer_group AND retry_backlog.topic = shared.topic
),
popped AS (
  SELECT consumer_group, topic, broker_name, queue_id, client_id FROM silver_observed_owner WHERE is_pop
  UNION ALL
  SELECT consumer_group, topic, broker_name, queue_id, client_id FROM silver_process_owner WHERE is_pop
)"""

_SUBJECT: Final = "'group ', consumer_group, ', topic ', topic, ', queue ', broker_name, '/', queue_id"
_NUMBERS: Final = {
    "sharing_degree": "IF(expected_reader_ids IS NULL, NULL, size(expected_reader_ids))",
    "committed_offset": "consumer_offset",
    "handed_out_offset": "pull_offset",
    "in_flight_count_at_most": "IF(pull_offset < consumer_offset, 0, try_subtract(pull_offset, consumer_offset))",
    "ready_count": "IF(broker_offset < pull_offset, 0, try_subtract(broker_offset, pull_offset))",
    "order_blocked_until": "IF(lock_ends_at > lock_read_at, lock_ends_at, NULL)",
    "redelivery_count": "redeliveries_of_lock",
    "unobserved_reader_count": "IF(expected_reader_ids IS NULL, NULL, "
    "size(array_except(expected_reader_ids, coalesce(answered_ids, array()))))",
    "puller_ids": "coalesce(pulling_ids, array())",
    "retry_backlog_count": "waiting_count",
}
_differences = ", ".join(
    f"IF({column} <=> ({expected}), NULL, concat('{column} is ', {text_or_null(column)}, ', expected ', "
    f"{text_or_null(f'({expected})')}))"
    for column, expected in _NUMBERS.items()
)
_TOPIC: Final = ("consumer_group", "topic", "broker_name")

QUERIES: Final = (
    violations_in(
        f"""(
  SELECT DISTINCT {_QUEUE} FROM gold_queue_assignment
  LEFT ANTI JOIN gold_queue_sharing USING ({_QUEUE})
  WHERE is_effective AND reason = 'pop_mode'
)""",
        [Violation(SHARED_QUEUES_PRESENT, "TRUE", f"concat({_SUBJECT}, ': no row')")],
        _TOPIC,
    ),
    violations_in(
        f"""(
  SELECT DISTINCT {_QUEUE} FROM gold_queue_sharing
  LEFT ANTI JOIN (SELECT * FROM gold_queue_assignment WHERE is_effective AND reason = 'pop_mode') USING ({_QUEUE})
  LEFT ANTI JOIN popped USING (consumer_group, topic)
)""",
        [Violation(SHARED_QUEUES_PRESENT, "TRUE", f"concat({_SUBJECT}, ': no client pops the topic')")],
        _TOPIC,
    ),
    violations_in(
        "judged_readers",
        [
            Violation(
                READERS_FOLLOW_RULE,
                "NOT is_by_rule",
                f"concat({_SUBJECT}, ': [', array_join(expected_reader_ids, ' '), '], where [', "
                "array_join(reader_ids, ' '), '] follows')",
            )
        ],
        _TOPIC,
    ),
    violations_in(
        f"""(
  SELECT {_QUEUE}, explode(observed_reader_ids) AS client_id FROM gold_queue_sharing
) AS shared LEFT ANTI JOIN popped
  ON popped.consumer_group = shared.consumer_group AND popped.topic = shared.topic
    AND popped.broker_name = shared.broker_name AND popped.client_id = shared.client_id
    AND popped.queue_id IN (shared.queue_id, -1)""",
        [Violation(READERS_SEEN, "TRUE", f"concat({_SUBJECT}, ': ', client_id)")],
        _TOPIC,
    ),
    violations_in(
        "judged_sharing",
        (
            Violation(
                MODE_FOLLOWS_SOURCES,
                f"NOT coalesce(request_mode, {quoted(REQUEST_MODES[0])}) IN {quoted_list(REQUEST_MODES)} "
                f"OR NOT coalesce(request_mode_source, {quoted(REQUEST_MODE_SOURCES[0])}) IN {quoted_list(REQUEST_MODE_SOURCES)} "
                "OR (request_mode IS NULL) <> (request_mode_source IS NULL) "
                "OR request_mode IS NOT NULL AND (mode_of_broker IS NULL OR (request_mode = 'POP') <> coalesce(mode_of_broker = 'POP', FALSE) "
                "OR request_mode = 'POP' AND NOT pop_share_count <=> share_of_broker "
                # Brokers may have the same mode from different sources.
                "OR request_mode_source = 'server_off' AND source_of_broker <> 'server_off')",
                f"concat({_SUBJECT}, ': ', concat_ws(' ', request_mode, pop_share_count, request_mode_source), ', where the broker has ', "
                "concat_ws(' ', mode_of_broker, share_of_broker, source_of_broker))",
            ),
            Violation(
                NUMBERS_EQUAL_SOURCES,
                f"concat_ws('; ', {_differences}) <> ''",
                f"concat({_SUBJECT}, ': ', concat_ws('; ', {_differences}))",
            ),
        ),
        _TOPIC,
    ),
)
"""Violations of each shared queue."""
