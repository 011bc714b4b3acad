"""Queue owners by CONSISTENT_HASH and in groups with mixed strategies, recomputed in plain SQL.

What belongs here: rings with their hashes, and the assignments of members that report different strategies. What does not: every
other owner (`recomputed_owners`, whose member lists this module reads), and the code of `strategies`, which it must not use.

Source of the rules: `AllocateMessageQueueConsistentHash` and `ConsistentHashRouter` (Java, the same from 4.1.0 to 5.5.0),
`AllocateByConsistentHash` over `stathat.com/c/consistent` 1.0.0 (Go); `RebalanceImpl.rebalanceByTopic` (each member takes what its own
strategy gives it).
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.model import Violation, quoted_list, violations_in
from expectations.recomputed import KEPT, NOT_IN_ROUTE
from expectations.recomputed_owners import OWNERS_RECOMPUTED
from expectations.thresholds import DIVISION_REASONS, REASONS_OF_RULES

_HASH: Final = "CONSISTENT_HASH"
_DEFAULT_NODE_COUNT: Final = 10

# The first four bytes of the MD5 hash as a number; in Go the CRC-32. The nodes of a second connection continue the numbering.
_JAVA_NODE: Final = "concat(client_id, '-', node + node_count * (slot - array_position(ids, client_id) + 1))"
_NODE_HASH: Final = f"IF(is_go, crc32(encode(concat(node, client_id), 'UTF-8')), conv(substr(md5({_JAVA_NODE}), 1, 8), 16, 10))"
_QUEUE_TEXT: Final = (
    "concat('MessageQueue [topic=', topic, ', brokerName=', broker_name, ', queueId=', queue_id, ']')"
)
_QUEUE_HASH: Final = (
    f"IF(is_go, crc32(encode({_QUEUE_TEXT}, 'UTF-8')), conv(substr(md5({_QUEUE_TEXT}), 1, 8), 16, 10))"
)
# The scan starts at the end of the ring: a node met before a queue follows it. In Java a node also follows its own hash.
_FROM_THE_END: Final = "PARTITION BY consumer_group, is_own, list ORDER BY hash DESC, turn, slot, node"

COMMON_TABLES: Final = f"""
-- A ring for each member list: by the group's own settings, and with the hypothetical settings of every group.
ring AS (
  SELECT consumer_group, FALSE AS is_own, FALSE AS is_go, lists, coalesce(tried_count, {_DEFAULT_NODE_COUNT}) AS node_count
  FROM list_of_members
  CROSS JOIN (SELECT max(virtual_node_count) AS tried_count FROM configured_rule WHERE consumer_group IS NULL AND strategy = '{_HASH}')
  UNION ALL
  SELECT consumer_group, TRUE, has_go, lists, virtual_node_count
  FROM list_of_members
  JOIN configured_rule USING (consumer_group)
  JOIN (
    SELECT
      consumer_group, coalesce(bool_and(client_language = 'GO'), FALSE) AS has_go, coalesce(bool_and(client_language = 'JAVA'), FALSE) AS has_java
    FROM (
      SELECT consumer_group, client_language FROM silver_consumer_connection
      UNION ALL
      SELECT consumer_group, client_language FROM silver_proxy_connection
    )
    GROUP BY consumer_group
  ) USING (consumer_group)
  WHERE strategy = '{_HASH}' AND NOT has_member_parameters AND (has_java OR has_go AND is_odd IS FALSE AND virtual_node_count > 0)
),
ring_point AS (
  SELECT
    consumer_group, is_own, list, CAST({_NODE_HASH} AS BIGINT) AS hash, 1 AS turn, slot, node, client_id AS node_client,
    CAST(NULL AS STRING) AS topic, CAST(NULL AS STRING) AS broker_name, CAST(NULL AS INT) AS queue_id,
    CAST(NULL AS STRING) AS client_id, CAST(NULL AS STRING) AS reason, CAST(NULL AS INT) AS list_count
  FROM (
    SELECT consumer_group, is_own, is_go, node_count, list, transform(slots, slot -> slot.client_id) AS ids
    FROM ring LATERAL VIEW posexplode(lists) AS list, slots
  )
  LATERAL VIEW posexplode(ids) AS slot, client_id
  LATERAL VIEW explode(slice(sequence(0, node_count), 1, node_count)) AS node
  UNION ALL
  SELECT
    consumer_group, is_own, list, hash, IF(is_go, 0, 2), NULL, NULL, NULL, topic, broker_name, queue_id, client_id, reason, size(lists)
  FROM (
    SELECT
      consumer_group, is_own, is_go, lists, topic, broker_name, queue_id, client_id, reason, CAST({_QUEUE_HASH} AS BIGINT) AS hash
    FROM (
      SELECT consumer_group, strategy_source <> 'hypothetical' AS is_own, topic, broker_name, queue_id, client_id, reason
      FROM gold_queue_assignment
      WHERE strategy = '{_HASH}' AND NOT coalesce(reason IN ('{KEPT}', '{NOT_IN_ROUTE}', 'group_offline', 'members_unknown'), FALSE)
    )
    JOIN ring USING (consumer_group, is_own)
  )
  LATERAL VIEW posexplode(lists) AS list, slots
),
ring_owner AS (
  SELECT
    *,
    coalesce(
      last(node_client, TRUE) OVER ({_FROM_THE_END} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
      last(node_client, TRUE) OVER ({_FROM_THE_END} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    ) AS owner
  FROM ring_point
),
ring_fault AS (
  SELECT ring_owner.*
  FROM ring_owner
  LEFT JOIN (SELECT DISTINCT consumer_group, client_id AS owner, TRUE AS is_known FROM silver_client_subscription)
    USING (consumer_group, owner)
  LEFT JOIN (SELECT DISTINCT consumer_group, topic, client_id AS owner, TRUE AS is_subscribed FROM silver_client_subscription)
    USING (consumer_group, topic, owner)
  WHERE topic IS NOT NULL AND NOT client_id <=> owner
    AND NOT (is_own AND coalesce(reason IN {quoted_list(REASONS_OF_RULES)}, FALSE))
    -- A client without a known subscription may have none: such a client id belongs to a proxy.
    AND NOT (reason <=> 'owner_not_subscribed' AND is_subscribed IS NULL
      AND (is_known OR topic = concat('%RETRY%', consumer_group)))
),
-- Topics for which no member list explains all owners.
wrong_ring AS (
  SELECT
    consumer_group, topic, count(*) div count(DISTINCT list) AS fault_count,
    min(struct(list, broker_name, queue_id, client_id, owner)) AS first_fault
  FROM ring_fault
  GROUP BY consumer_group, topic
  HAVING count(DISTINCT list) = max(list_count)
),
-- Members of a mixed group that report a strategy with known parameters: their queues, and the queues by that strategy.
mixed_share AS (
  SELECT
    consumer_group, topic,
    collect_set(IF(strategy = 'MIXED', share, NULL)) AS given, collect_set(IF(strategy = reported_strategy, share, NULL)) AS due
  FROM (
    SELECT consumer_group, topic, strategy, reported_strategy, struct(broker_name, queue_id, client_id) AS share
    FROM gold_queue_assignment
    JOIN (
      SELECT consumer_group, topic
      FROM gold_queue_assignment
      WHERE strategy = 'MIXED'
      GROUP BY consumer_group, topic
      HAVING NOT coalesce(bool_or(reason IN {quoted_list((*DIVISION_REASONS, "group_offline", "members_unknown"))}), FALSE)
    ) USING (consumer_group, topic)
    JOIN drift_answer USING (consumer_group, client_id)
    LEFT JOIN (SELECT consumer_group, strategy AS configured_strategy FROM configured_rule) USING (consumer_group)
    WHERE NOT coalesce(reason IN ('{KEPT}', '{NOT_IN_ROUTE}'), FALSE) AND process_count <= 1
      AND coalesce(reported_strategy IN ('AVG', 'AVG_BY_CIRCLE', configured_strategy), FALSE)
  )
  GROUP BY consumer_group, topic
)"""

_SUBJECT: Final = "concat('group ', consumer_group, ', topic ', topic, ', strategy "
_MISSING: Final = "array_sort(array_except(due, given))"
_BESIDE: Final = "array_sort(array_except(given, due))"


def _first(shares: str) -> str:
    share = f"get({shares}, 0)"
    return f"concat({share}.broker_name, '/', {share}.queue_id, ' of ', {share}.client_id)"


QUERIES: Final = (
    violations_in(
        "wrong_ring",
        (
            Violation(
                OWNERS_RECOMPUTED,
                "TRUE",
                f"{_SUBJECT}{_HASH}: queue ', first_fault.broker_name, '/', first_fault.queue_id, ' is given to ', "
                "coalesce(first_fault.client_id, 'no client'), ', expected ', coalesce(first_fault.owner, 'no client'), "
                "IF(fault_count > 1, concat(' (and ', fault_count - 1, ' more)'), ''))",
                "fault_count",
            ),
        ),
        ("consumer_group", "topic"),
    ),
    violations_in(
        "mixed_share",
        (
            Violation(
                OWNERS_RECOMPUTED,
                f"size({_MISSING}) + size({_BESIDE}) > 0",
                f"{_SUBJECT}MIXED: what members report gives them ', size({_MISSING}), ' queues that the rows do not, the rows ', "
                f"size({_BESIDE}), ' others; the first is ', coalesce({_first(_MISSING)}, {_first(_BESIDE)}))",
                f"size({_MISSING}) + size({_BESIDE})",
            ),
        ),
        ("consumer_group", "topic"),
    ),
)
