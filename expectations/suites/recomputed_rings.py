"""Queue owners by CONSISTENT_HASH and in groups with mixed strategies, recomputed in plain SQL.

Belongs here: rings with their hashes, and the assignments of members that report different strategies. Does not belong here: every
other owner (`recomputed_owners`, whose member lists this module reads), and the code of `strategies`, which it must not use.

Source of the rules: `AllocateMessageQueueConsistentHash` and `ConsistentHashRouter` (Java, the same from 4.1.0 to 5.5.0),
`AllocateByConsistentHash` over `stathat.com/c/consistent` 1.0.0 (Go); `RebalanceImpl.rebalanceByTopic` (each member takes what its own
strategy gives it).
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.configured_rule import RULE_PARAMETERS
from expectations.suites.model import Violation, quoted_list, violations_in
from expectations.suites.recomputed import KEPT, NOT_IN_ROUTE
from expectations.suites.recomputed_owners import HASH, OWNERS_RECOMPUTED, room_of
from expectations.suites.thresholds import DIVISION_REASONS, REASONS_WITHOUT_SHARES

_NEARBY: Final = "MACHINE_ROOM_NEARBY"
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
_RING: Final = "consumer_group, strategy, is_own, ring_number"
# The scan starts at the end of the ring: a node met before a queue follows it. In Java a node also follows its own hash.
_FROM_THE_END: Final = f"PARTITION BY {_RING}, list, room ORDER BY hash DESC, turn, slot, node"
_QUEUE_ROOM: Final = room_of("rule.broker_room", "broker_name")
_CLIENT_ROOM: Final = room_of("rule.consumer_room", "slot.client_id")
_WITH_PARAMETERS: Final = (HASH, _NEARBY, "MACHINE_ROOM", "CONFIG")
_EVERYBODY: Final = "''"
"""The room of a ring of all clients; no rule gives it."""

COMMON_TABLES: Final = f"""
-- The rings of a group: with the hypothetical settings of every group, and for each class of members by their own rule. With rooms,
-- a ring has a part for each room, and one of all clients for the queues of rooms without clients.
ring AS (
  SELECT
    consumer_group, '{HASH}' AS strategy, FALSE AS is_own, 0 AS ring_number, FALSE AS is_go, lists,
    coalesce(tried_count, {_DEFAULT_NODE_COUNT}) AS node_count, CAST(NULL AS ARRAY<STRING>) AS divider_ids, no_rule AS rule
  FROM list_of_members
  CROSS JOIN (
    SELECT
      max(IF(consumer_group IS NULL AND strategy = '{HASH}', virtual_node_count, NULL)) AS tried_count,
      max_by(struct({RULE_PARAMETERS}), 0) FILTER (WHERE FALSE) AS no_rule
    FROM configured_rule
  )
  UNION ALL
  SELECT consumer_group, strategy, FALSE, 0, FALSE, lists, rule.virtual_node_count, CAST(NULL AS ARRAY<STRING>), rule
  FROM list_of_members
  CROSS JOIN (
    SELECT strategy, struct({RULE_PARAMETERS}) AS rule
    FROM configured_rule WHERE consumer_group IS NULL AND strategy = '{_NEARBY}' AND inner_strategy = '{HASH}'
  )
  UNION ALL
  SELECT consumer_group, own_strategy, TRUE, ring_number, class.is_go, lists, class.rule.virtual_node_count, class.ids, class.rule
  FROM (SELECT * FROM list_of_members JOIN own_rule USING (consumer_group))
  LATERAL VIEW posexplode(ring_classes) AS ring_number, class
  WHERE NOT (is_odd AND exists(classes, class -> class.is_go)) AND (NOT class.is_go OR class.rule.virtual_node_count > 0)
),
ring_list AS (
  SELECT
    {_RING}, is_go, node_count, divider_ids, rule, list, slots, size(lists) AS list_count,
    IF(strategy = '{HASH}', array(), array_distinct(transform(slots, slot -> {_CLIENT_ROOM}))) AS rooms
  FROM ring
  LATERAL VIEW posexplode(lists) AS list, slots
  WHERE strategy = '{HASH}' OR NOT exists(slots, slot -> {_CLIENT_ROOM} IS NULL)
),
ring_point AS (
  SELECT
    {_RING}, list, room, CAST({_NODE_HASH} AS BIGINT) AS hash, 1 AS turn, slot, node, client_id AS node_client,
    CAST(NULL AS STRING) AS topic, CAST(NULL AS STRING) AS broker_name, CAST(NULL AS INT) AS queue_id,
    CAST(NULL AS STRING) AS client_id, CAST(NULL AS STRING) AS reason, CAST(NULL AS INT) AS list_count, CAST(NULL AS ARRAY<STRING>) AS divider_ids
  FROM (
    SELECT {_RING}, is_go, node_count, list, room, transform(slots_of_room, slot -> slot.client_id) AS ids
    FROM ring_list
    LATERAL VIEW inline(concat(
      array(struct({_EVERYBODY} AS room, slots)),
      transform(rooms, room -> struct(room, filter(slots, slot -> {_CLIENT_ROOM} = room) AS slots)))) AS room, slots_of_room
  )
  LATERAL VIEW posexplode(ids) AS slot, client_id
  LATERAL VIEW explode(slice(sequence(0, node_count), 1, node_count)) AS node
  UNION ALL
  SELECT
    {_RING}, list, IF(array_contains(rooms, queue_room), queue_room, {_EVERYBODY}), hash, IF(is_go, 0, 2), NULL, NULL, NULL,
    topic, broker_name, queue_id, client_id, reason, list_count, divider_ids
  FROM (
    SELECT
      *,
      -- A name without a room makes the strategy throw for all queues.
      bool_or(strategy = '{_NEARBY}' AND queue_room IS NULL) OVER (PARTITION BY {_RING}, list, topic) AS is_failing
    FROM (
      -- Without the ring's lists and rule, which are large and would be copied for each queue.
      SELECT
        {_RING}, is_go, list, list_count, rooms, divider_ids, topic, broker_name, queue_id, client_id, reason,
        CAST({_QUEUE_HASH} AS BIGINT) AS hash, IF(strategy = '{_NEARBY}', {_QUEUE_ROOM}, NULL) AS queue_room
      FROM (
        SELECT consumer_group, strategy, strategy_source <> 'hypothetical' AS is_own, topic, broker_name, queue_id, client_id, reason
        FROM gold_queue_assignment
        WHERE strategy IN ('{HASH}', '{_NEARBY}')
          AND NOT coalesce(reason IN ('{KEPT}', '{NOT_IN_ROUTE}', 'group_offline', 'members_unknown'), FALSE)
      )
      JOIN ring_list USING (consumer_group, strategy, is_own)
    )
  )
  WHERE NOT is_failing
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
-- Members of each class take what its ring gives them.
owned_by_classes AS (
  SELECT
    owned.* EXCEPT (due), topic = concat('%RETRY%', consumer_group) AS is_plain_retry,
    flatten(transform(ring_classes, class -> class.ids)) AS known_ids,
    array_except(due, array_except(coalesce(known, array()), coalesce(subscribers, array()))) AS due
  FROM (
    SELECT
      consumer_group, strategy, topic, list, max(list_count) AS list_count, broker_name, queue_id, collect_set(client_id) AS given,
      max(reason) AS reason, collect_set(IF(array_contains(divider_ids, owner), owner, NULL)) AS due
    FROM ring_owner
    WHERE is_own AND topic IS NOT NULL
    GROUP BY consumer_group, strategy, topic, list, broker_name, queue_id
  ) AS owned
  JOIN own_rule USING (consumer_group)
  LEFT JOIN subscriber_of_topic USING (consumer_group, topic)
  LEFT JOIN subscriber_of_group USING (consumer_group)
),
ring_fault AS (
  SELECT consumer_group, strategy, topic, list, list_count, broker_name, queue_id, client_id, owner
  FROM ring_owner
  LEFT JOIN (SELECT DISTINCT consumer_group, client_id AS owner, TRUE AS is_known FROM silver_client_subscription)
    USING (consumer_group, owner)
  LEFT JOIN (SELECT DISTINCT consumer_group, topic, client_id AS owner, TRUE AS is_subscribed FROM silver_client_subscription)
    USING (consumer_group, topic, owner)
  WHERE NOT is_own AND topic IS NOT NULL AND NOT client_id <=> owner
    -- A client without a known subscription may have none: such a client id belongs to a proxy.
    AND NOT (reason <=> 'owner_not_subscribed' AND is_subscribed IS NULL
      AND (is_known OR topic = concat('%RETRY%', consumer_group)))
  UNION ALL
  SELECT consumer_group, strategy, topic, list, list_count, broker_name, queue_id, wrong_id, missing_id
  FROM owned_by_classes
  LATERAL VIEW inline(concat(
    transform(array_except(array_intersect(given, known_ids), due), id -> struct(id AS wrong, CAST(NULL AS STRING) AS missing)),
    IF(coalesce(reason IN {quoted_list(REASONS_WITHOUT_SHARES)}, FALSE) OR reason <=> 'owner_not_subscribed' AND is_plain_retry, array(),
      transform(array_except(due, given), id -> struct(CAST(NULL AS STRING) AS wrong, id AS missing))))) AS wrong_id, missing_id
),
-- Topics for which no member list explains all owners.
wrong_ring AS (
  SELECT
    consumer_group, strategy, topic, count(*) div count(DISTINCT list) AS fault_count,
    min(struct(list, broker_name, queue_id, client_id, owner)) AS first_fault
  FROM ring_fault
  GROUP BY consumer_group, strategy, topic
  HAVING count(DISTINCT list) = max(list_count)
),
-- Queues of members whose rule is unknown: the settings do not give its parameters, or one client id reports several strategies.
share_without_rule AS (
  SELECT
    consumer_group, topic, any_value(strategy) AS strategy, count(*) AS fault_count,
    min(struct(broker_name, queue_id, client_id, reported_strategy)) AS first_fault
  FROM gold_queue_assignment
  JOIN drift_answer USING (consumer_group, client_id)
  LEFT JOIN (SELECT consumer_group, strategy AS configured_strategy FROM configured_rule) USING (consumer_group)
  WHERE is_effective AND strategy NOT IN ('BROADCASTING', 'POP') AND NOT coalesce(reason IN ('{KEPT}', '{NOT_IN_ROUTE}'), FALSE)
    AND (contains(reported_strategy, ' and ')
      OR process_count <= 1 AND reported_strategy IN {quoted_list(_WITH_PARAMETERS)} AND NOT reported_strategy <=> configured_strategy)
  GROUP BY consumer_group, topic
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
                f"{_SUBJECT}', strategy, ': queue ', first_fault.broker_name, '/', first_fault.queue_id, ' is given to ', "
                "coalesce(first_fault.client_id, 'no client'), ', expected ', coalesce(first_fault.owner, 'no client'), "
                "IF(fault_count > 1, concat(' (and ', fault_count - 1, ' more)'), ''))",
                "fault_count",
            ),
        ),
        ("consumer_group", "topic"),
    ),
    violations_in(
        "share_without_rule",
        (
            Violation(
                OWNERS_RECOMPUTED,
                "TRUE",
                f"{_SUBJECT}', strategy, ': ', first_fault.client_id, ' is given queue ', first_fault.broker_name, '/', "
                "first_fault.queue_id, ', but reports ', first_fault.reported_strategy, "
                "IF(contains(first_fault.reported_strategy, ' and '), '', ', whose parameters no settings give'), "
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
