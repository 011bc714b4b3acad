"""What must hold between `gold.finding` and the facts: which findings there are, with which numbers, and what their evidence says.

What belongs here: the findings of a kind as the tables that it comes from show them, in plain SQL. What does not: findings on
the queues of groups, on topics and on offset files, of which `finding.py` and `broadcast_offset.py` say the same; roots and severities.
"""

# ruff: noqa: S608 - the SQL is put together from this package's own constants; no name from outside gets in.
from __future__ import annotations

from typing import Final

from expectations.finding_text import EVIDENCE_IS_OF_ROW
from expectations.model import Breach, Expectation, Suite, breaches_in, quoted_list
from expectations.thresholds import FINDING_KINDS
from tables import FINDING

COMPLETE: Final = Expectation(
    FINDING,
    "complete",
    "Each problem that other tables show of a group as a whole, its clients and load, of brokers and of the export has its finding.",
)
NONE_BESIDES: Final = Expectation(
    FINDING,
    "none_besides",
    "No finding on a group as a whole, its clients and load, on brokers or the export is there that other tables do not show.",
)
NUMBERS_EXACT: Final = Expectation(
    FINDING, "numbers_exact", "The numbers of these findings are those that plain SQL counts."
)
EVIDENCE_FOLLOWS: Final = Expectation(
    FINDING,
    "evidence_follows",
    "The evidence of a finding is the sentence of its kind, with the numbers and names of its row.",
)

SUITE: Final = Suite("finding_facts", (COMPLETE, NONE_BESIDES, NUMBERS_EXACT, EVIDENCE_FOLLOWS))

KINDS_RECOMPUTED: Final = (
    "client_id_duplicated",
    "clients_idle",
    "load_unfair",
    "group_offline",
    "members_unknown",
    "strategy_changed",
    "broker_missing_on_nameserver",
    "write_route_differs",
    "broker_address_differs",
    "broker_without_master",
    "record_rejected",
    "source_failed",
)
"""Kinds of which this module finds all findings again."""

_UNEVEN_FROM: Final = 2.0
"""The ratio of the largest load to the mean from which a load is unfair."""

_KEY: Final = ("kind", "consumer_group", "topic", "broker_name", "client_id", "likely_cause")
_NUMBERS: Final = (
    "client_count",
    "client_total_count",
    "queue_count",
    "queue_total_count",
    "process_count",
    "topic_count",
    "record_count",
    "max_queues_per_client",
    "min_queues_per_client",
    "mean_queues_per_client",
)


_PUBLISHED_NUMBERS: Final = ", ".join(
    f"CAST({name} AS {'DOUBLE' if name.startswith('mean') else 'BIGINT'}) AS {name}" for name in _NUMBERS
)


def _facts(relation: str, **columns: str) -> str:
    """A query that gives each row of a relation as a finding: SQL of the columns that it has, the others null."""
    values = ", ".join(f"{columns.get(name, 'CAST(NULL AS STRING)')} AS {name}" for name in _KEY)
    pairs = ", ".join(
        f"CAST({columns.get(name, 'NULL')} AS {'DOUBLE' if name.startswith('mean') else 'BIGINT'}) AS {name}"
        for name in _NUMBERS
    )
    return f"SELECT {values}, {pairs} FROM {relation}"


_IN_GROUPS: Final = (
    "consumer_group IS NULL OR consumer_group NOT IN (SELECT consumer_group FROM left_out_group)"
)

_USUAL_ANSWERS: Final = (
    "(coalesce(error_code IN (17, 26, 206, 213), FALSE) "
    "OR coalesce(error_code = 3, FALSE) AND kind IN ('broker_message_request_mode', 'broker_producer_table') "
    "OR coalesce(contains(error_message, '> not online'), FALSE) OR error_type <=> 'NotAsked')"
)

_ALL_FACTS: Final = " UNION ALL ".join(
    (
        _facts(
            "state_of_group WHERE states = array('offline')",
            kind="'group_offline'",
            consumer_group="consumer_group",
            topic_count="topic_count",
        ),
        _facts(
            "state_of_group WHERE array_contains(states, 'unknown')",
            kind="'members_unknown'",
            consumer_group="consumer_group",
            topic_count="topic_count",
        ),
        _facts(
            "load_of_topic WHERE idle_client_count > 0 AND queue_count IS NOT NULL",
            kind="'clients_idle'",
            consumer_group="consumer_group",
            topic="topic",
            likely_cause="IF(client_count > queue_count, 'more_clients_than_queues', NULL)",
            client_count="idle_client_count",
            client_total_count="client_count",
            queue_total_count="queue_count",
        ),
        _facts(
            f"load_of_topic WHERE max_over_mean >= {_UNEVEN_FROM} AND max_queues_per_client - min_queues_per_client > 1",
            kind="'load_unfair'",
            consumer_group="consumer_group",
            topic="topic",
            client_total_count="client_count",
            queue_total_count="queue_count",
            max_queues_per_client="max_queues_per_client",
            min_queues_per_client="min_queues_per_client",
            mean_queues_per_client="mean_queues_per_client",
        ),
        _facts(
            "shared_id",
            kind="'client_id_duplicated'",
            consumer_group="consumer_group",
            client_id="client_id",
            process_count="process_count",
        ),
        _facts(
            "changed_strategy",
            kind="'strategy_changed'",
            consumer_group="consumer_group",
            queue_count="moved_count",
            queue_total_count="observed_count",
            topic_count="topic_count",
        ),
        _facts("broker_difference", kind="kind", broker_name="broker_name", topic_count="topic_count"),
        _facts(
            "headless_broker",
            kind="'broker_without_master'",
            broker_name="broker_name",
            topic_count="topic_count",
        ),
        _facts(
            f"unread_line WHERE {_IN_GROUPS}",
            kind="'record_rejected'",
            consumer_group="consumer_group",
            topic="topic",
            broker_name="broker_name",
            client_id="client_id",
            record_count="record_count",
        ),
        _facts(
            "unanswered",
            kind="'source_failed'",
            broker_name="broker_name",
            likely_cause="cause",
            record_count="record_count",
        ),
    )
)

COMMON_TABLES: Final = f"""
state_of_group AS (
  SELECT consumer_group, collect_set(group_state) AS states, count(DISTINCT topic) AS topic_count
  FROM gold_assignment_fairness
  GROUP BY consumer_group
),
load_of_topic AS (
  SELECT *
  FROM gold_assignment_fairness
  WHERE is_effective AND strategy <> 'BROADCASTING' AND NOT startswith(topic, '%RETRY%')
),
processes_of_id AS (
  SELECT consumer_group, client_id, count(DISTINCT process) AS process_count
  FROM silver_client_process
  WHERE state = 'online'
  GROUP BY consumer_group, client_id
),
connections_of_id AS (
  SELECT consumer_group, client_id, min(connection_count) AS connection_count
  FROM (
    SELECT consumer_group, broker_name, client_id, count(*) AS connection_count
    FROM silver_consumer_connection
    GROUP BY consumer_group, broker_name, client_id
  )
  GROUP BY consumer_group, client_id
),
shared_id AS (
  SELECT consumer_group, client_id, IF(process_count > 1, process_count, NULL) AS process_count
  FROM connections_of_id
  LEFT JOIN processes_of_id USING (consumer_group, client_id)
  JOIN state_of_group USING (consumer_group)
  WHERE arrays_overlap(states, array('online', 'broadcasting'))
    AND (process_count > 1 OR coalesce(process_count, 0) = 0 AND connection_count > 1)
),
changed_strategy AS (
  SELECT
    consumer_group, sum(observed_moved_queue_count) AS moved_count, sum(observed_queue_count) AS observed_count,
    count(DISTINCT topic, baseline_strategy, strategy) AS topic_count
  FROM gold_assignment_churn
  WHERE is_effective AND baseline_strategy <> strategy
  GROUP BY consumer_group
),
broker_difference AS (
  SELECT broker_name, kind, count(DISTINCT topic) AS topic_count
  FROM gold_route_divergence
  LATERAL VIEW explode(array_compact(array(
    IF(array_contains(differences, 'broker_missing') AND NOT is_routed, 'broker_missing_on_nameserver', NULL),
    IF(arrays_overlap(differences, array('perm', 'write_queues')) AND NOT is_read_affected, 'write_route_differs', NULL),
    IF(array_contains(differences, 'addresses'), 'broker_address_differs', NULL)
  ))) AS kind
  WHERE state = 'differs'
  GROUP BY broker_name, kind
),
headless_broker AS (
  SELECT b.broker_name, coalesce(any_value(t.topic_count), 0) AS topic_count
  FROM silver_broker AS b
  LEFT JOIN (
    SELECT broker_name, count(DISTINCT topic) AS topic_count FROM gold_route_divergence WHERE is_routed GROUP BY broker_name
  ) AS t USING (broker_name)
  GROUP BY b.broker_name
  HAVING min(b.broker_id) > 0
),
unread_line AS (
  SELECT e.consumer_group, e.topic, e.broker_name, e.client_id, count(*) AS record_count
  FROM silver_rejected_record AS r
  LEFT JOIN silver_export_record AS e USING (file, line_number)
  GROUP BY e.consumer_group, e.topic, e.broker_name, e.client_id
),
unanswered AS (
  SELECT broker_name, cause, count(*) AS record_count
  FROM (
    SELECT
      broker_name, kind,
      CASE
        WHEN error_code = 16 OR error_message RLIKE 'AclException|AuthenticationException|AuthorizationException'
          THEN 'permission_denied'
        WHEN endswith(error_type, 'RemotingConnectException') OR error_type = 'ServerNotAnswering' THEN 'connection_failed'
        WHEN contains(error_type, 'Timeout') THEN 'timed_out'
      END AS cause
    FROM silver_export_record
    WHERE state = 'error' AND NOT {_USUAL_ANSWERS}
  )
  WHERE kind <> 'consumer_running_info' OR cause <=> 'permission_denied'
  GROUP BY broker_name, cause
),
finding_of_facts AS (
  {_ALL_FACTS}
),
compared_finding AS (
  SELECT
    {", ".join(_KEY)}, bool_or(is_fact) AS is_fact, bool_or(NOT is_fact) AS is_published,
    max(numbers) FILTER (WHERE is_fact) AS counted, max(numbers) FILTER (WHERE NOT is_fact) AS published
  FROM (
    SELECT {", ".join(_KEY)}, to_json(struct({", ".join(_NUMBERS)})) AS numbers, TRUE AS is_fact FROM finding_of_facts
    UNION ALL
    SELECT {", ".join(_KEY)}, to_json(struct({_PUBLISHED_NUMBERS})) AS numbers, FALSE
    FROM gold_finding
    WHERE kind IN {quoted_list(KINDS_RECOMPUTED)}
  )
  GROUP BY {", ".join(_KEY)}
)"""

_SUBJECT: Final = (
    "concat_ws(', ', concat('kind ', kind), concat('group ', consumer_group), concat('topic ', topic), "
    "concat('broker ', broker_name), concat('client ', client_id), concat('cause ', likely_cause))"
)

QUERIES: Final = (
    breaches_in(
        "compared_finding",
        (
            Breach(COMPLETE, "NOT is_published", f"concat({_SUBJECT}, ' is missing: ', counted)"),
            Breach(NONE_BESIDES, "NOT is_fact", f"concat({_SUBJECT}, ' is not in the facts: ', published)"),
            Breach(
                NUMBERS_EXACT,
                "counted <> published",
                f"concat({_SUBJECT}, ': ', published, ', counted ', counted)",
            ),
        ),
        ("consumer_group", "topic", "broker_name"),
    ),
    breaches_in(
        "gold_finding",
        (
            Breach(
                EVIDENCE_FOLLOWS,
                f"kind IN {quoted_list(FINDING_KINDS)} AND NOT {EVIDENCE_IS_OF_ROW}",
                f"concat({_SUBJECT}, ': ', coalesce(evidence, 'null'))",
            ),
        ),
        ("consumer_group", "topic", "broker_name"),
    ),
)
