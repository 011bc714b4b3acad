"""The parameters by which one member of a group divides otherwise, tried in plain SQL.

No client reports its parameters: `deviating_parameters` is a text that the build found by trying values. With these parameters the
strategy must give the member just the queues that it holds. Members in other languages than Java, or older than the rule, are not
compared.

Belongs here: shares by stated parameters. Does not belong here: which cause a difference has (`ownership_drift`).

Source of the rules: `AllocateMessageQueueByMachineRoom` from 4.8.0 on, and `AllocateMessageQueueConsistentHash` (Java).
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.model import Expectation, Violation, quoted, violations_in
from expectations.suites.thresholds import RELEASE_OF_ROOMS_PATTERN, ROOM_AND_BROKER_PATTERN
from rebalance_ledger.tables import OWNERSHIP_DRIFT

PARAMETERS_EXPLAIN: Final = Expectation(
    OWNERSHIP_DRIFT,
    "parameters_explain",
    "With the parameters stated for a deviating member, its strategy gives it just the queues that it holds.",
    judges=("deviating_parameters",),
)

_MOST_NODES: Final = 20_000
"""Of a ring that is computed here."""

_ROOMS: Final = r"^consumeridcs = (.+?)( \(or others\))?$"
_NODE_COUNT: Final = r"^virtualNodeCnt = ([0-9]{1,6})( \(or others\))?$"
_QUEUE_TEXT: Final = "concat('MessageQueue [topic=', topic, ', brokerName=', queue.broker_name, ', queueId=', queue.queue_id, ']')"


def _hash(text: str) -> str:
    return f"CAST(conv(substr(md5({text}), 1, 8), 16, 10) AS BIGINT)"


_NODE_HASH: Final = _hash("concat(id, '-', node)")
_NODES: Final = (
    "array_sort(flatten(transform(ids, id -> transform(sequence(0, node_count - 1), "
    f"node -> struct({_NODE_HASH} AS hash, id)))))"
)
_OWNER: Final = (
    f"coalesce(get(filter(nodes, node -> node.hash >= {_hash(_QUEUE_TEXT)}), 0), get(nodes, 0)).id"
)
_RUN: Final = "(size(inside) div size(ids))"

COMMON_TABLES: Final = f"""
deviation AS (
  SELECT DISTINCT
    consumer_group, topic, deviating_client_id AS client_id, deviating_parameters AS parameters,
    split(regexp_extract(deviating_parameters, {quoted(_ROOMS)}, 1), ', ') AS rooms,
    try_cast(regexp_extract(deviating_parameters, {quoted(_NODE_COUNT)}, 1) AS INT) AS node_count
  FROM gold_ownership_drift
  WHERE deviating_parameters IS NOT NULL
),
list_of_deviation AS (
  SELECT consumer_group, max(ids) AS ids
  FROM (
    SELECT
      consumer_group, broker_name,
      transform(array_sort(collect_list(struct(encode(client_id, 'UTF-16BE') AS key, client_id))), slot -> slot.client_id) AS ids
    FROM (
      SELECT consumer_group, broker_name, client_id FROM silver_consumer_connection
      UNION ALL
      SELECT DISTINCT consumer_group, CAST(NULL AS STRING), client_id FROM silver_proxy_connection
    )
    LEFT SEMI JOIN deviation USING (consumer_group)
    GROUP BY consumer_group, broker_name
  )
  GROUP BY consumer_group
),
client_of_deviation AS (
  SELECT
    consumer_group, client_id,
    bool_and(coalesce(client_language = 'JAVA' AND client_version RLIKE {quoted(RELEASE_OF_ROOMS_PATTERN)}, FALSE)) AS is_compared
  FROM silver_consumer_connection LEFT SEMI JOIN deviation USING (consumer_group, client_id)
  GROUP BY consumer_group, client_id
),
queues_of_deviation AS (
  SELECT
    consumer_group, topic, client_id, parameters, rooms, node_count,
    array_sort(collect_list(IF(is_routed, struct(encode(broker_name, 'UTF-16BE') AS key, queue_id, broker_name), NULL))) AS queues,
    array_sort(collect_list(IF(array_contains(observed_client_ids, client_id), struct(broker_name, queue_id), NULL))) AS held
  FROM deviation JOIN gold_ownership_drift USING (consumer_group, topic)
  GROUP BY consumer_group, topic, client_id, parameters, rooms, node_count
),
share_of_deviation AS (
  SELECT *
  FROM (
    SELECT *
    FROM queues_of_deviation
    JOIN list_of_deviation USING (consumer_group)
    JOIN client_of_deviation USING (consumer_group, client_id)
  )
  LATERAL VIEW inline(array(struct(
    filter(queues, queue -> queue.broker_name RLIKE {quoted(ROOM_AND_BROKER_PATTERN)}
      AND array_contains(rooms, substring_index(queue.broker_name, '@', 1))),
    array_position(ids, client_id) - 1,
    IF(node_count * size(ids) <= {_MOST_NODES}, {_NODES}, NULL)))) AS inside, place, nodes
  LATERAL VIEW inline(array(struct(
    array_sort(transform(
      CASE
        WHEN node_count IS NULL THEN concat(
          slice(inside, CAST(place * {_RUN} + 1 AS INT), CAST({_RUN} AS INT)),
          slice(inside, CAST(size(ids) * {_RUN} + place + 1 AS INT), IF(place < size(inside) % size(ids), 1, 0)))
        ELSE filter(queues, queue -> {_OWNER} = client_id)
      END,
      queue -> struct(queue.broker_name, queue.queue_id)))))) AS due
)"""

QUERY: Final = violations_in(
    "share_of_deviation",
    (
        Violation(
            PARAMETERS_EXPLAIN,
            "is_compared AND (node_count IS NULL OR nodes IS NOT NULL) AND (place < 0 OR due <> held)",
            "concat('group ', consumer_group, ', topic ', topic, ', client ', client_id, ': ', parameters, ' gives it ', size(due), "
            "' queues, it holds ', size(held))",
        ),
    ),
    ("consumer_group", "topic"),
)
