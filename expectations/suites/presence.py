"""Expectations for `group_state`: no group is offline without proof, and every state has its evidence.

Belongs here: the answers about a group and its traces, recomputed in plain SQL from silver. Does not belong here: its members
(`recomputed`).
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.model import Expectation, Suite, Violation, quoted, quoted_list, violations_in
from expectations.suites.thresholds import (
    GROUP_STATE_REASONS,
    GROUP_STATES,
    PROXY_HEARTBEAT_GROUP,
    SYSTEM_GROUP_PREFIX,
    SYSTEM_GROUPS,
)
from rebalance_ledger.tables import ASSIGNMENT_FAIRNESS, BROADCAST_OFFSET_FILE, FINDING, OWNERSHIP_DRIFT

STATE_KNOWN: Final = Expectation(
    ASSIGNMENT_FAIRNESS,
    "group_state_known",
    "group_state and its reason are from their closed lists, and the same for all strategies; exactly the unknown states have a reason.",
    judges=(
        "group_state",
        "group_state_reason",
    ),
)
ABSENCE_PROVEN: Final = Expectation(
    ASSIGNMENT_FAIRNESS,
    "absence_proven",
    "Every offline group is reported offline by every registered broker and every proxy, and "
    "nothing shows that it consumes.",
)
STATE_HAS_EVIDENCE: Final = Expectation(
    ASSIGNMENT_FAIRNESS,
    "group_state_has_evidence",
    "A group is online if a broker or proxy lists it and, with a known route, one of the route's brokers was asked; it is unknown "
    "for a reason that silver shows.",
    judges=("group_state_reason",),
)
STATE_SAME: Final = Expectation(
    OWNERSHIP_DRIFT,
    "group_state_same",
    "group_state and its reason equal those of assignment_fairness.",
    judges=(
        "group_state",
        "group_state_reason",
    ),
)
NO_SYSTEM_GROUP: Final = Expectation(
    ASSIGNMENT_FAIRNESS, "users_groups_only", "No row is about a RocketMQ system group."
)
NO_SYSTEM_GROUP_IN_DRIFT: Final = Expectation(
    OWNERSHIP_DRIFT, "users_groups_only", "No row is about a RocketMQ system group."
)
NO_SYSTEM_GROUP_IN_OFFSET_FILES: Final = Expectation(
    BROADCAST_OFFSET_FILE, "users_groups_only", "No row is about a RocketMQ system group."
)
NO_SYSTEM_GROUP_IN_FINDING: Final = Expectation(
    FINDING,
    "users_groups_only",
    "No finding is about a RocketMQ system group, except those on rejected and repeated records.",
)

SUITE: Final = Suite(
    "presence",
    (
        STATE_KNOWN,
        ABSENCE_PROVEN,
        STATE_HAS_EVIDENCE,
        STATE_SAME,
        NO_SYSTEM_GROUP,
        NO_SYSTEM_GROUP_IN_DRIFT,
        NO_SYSTEM_GROUP_IN_OFFSET_FILES,
        NO_SYSTEM_GROUP_IN_FINDING,
    ),
)

USERS_GROUP: Final = (
    f"(NOT consumer_group IN {quoted_list(SYSTEM_GROUPS)} "
    f"AND NOT startswith(consumer_group, {quoted(SYSTEM_GROUP_PREFIX)}))"
)
"""SQL boolean: the row's group is an application group."""

_UNNAMED_BROKER: Final = "(unknown)"
"""The broker of an answer that does not name it."""

_SYNCER: Final = f"consumer_group = {quoted(PROXY_HEARTBEAT_GROUP)}"

PROXY_TABLES: Final = f"""
answer_of_proxy AS (
  SELECT
    consumer_group, bool_or(state = 'online') AS is_online_at_proxy,
    size(collect_set(IF(state IN ('online', 'offline'), proxy, NULL))) AS answering_proxy_count
  FROM silver_proxy_presence
  GROUP BY consumer_group
),
proxies AS (
  SELECT
    greatest(
      (SELECT count(DISTINCT proxy) FROM silver_proxy_presence),
      -- Proxies of one host share a client id, and each has one connection to a broker.
      (SELECT coalesce(max(connection_count), 0) FROM (
        SELECT count(*) AS connection_count FROM silver_consumer_connection WHERE {_SYNCER} GROUP BY broker_name
      ))
    ) AS proxy_count,
    (
      SELECT count(*) FROM (
        SELECT broker_name FROM silver_subscription_group WHERE {_SYNCER}
        UNION SELECT broker_name FROM silver_group_presence WHERE {_SYNCER} AND state = 'unknown'
        EXCEPT SELECT broker_name FROM silver_group_presence WHERE {_SYNCER} AND state IN ('online', 'offline')
      )
    ) > 0 AS is_unfound
)"""
"""`name AS (…), …`: the proxies, and how many of them answered about each group."""

COMMON_TABLES: Final = f"""
stated_group AS (
  SELECT
    consumer_group, topic, max(group_state) AS state, max(group_state_reason) AS reason,
    min(group_state) <> max(group_state) OR min(group_state_reason) <> max(group_state_reason) AS has_other_state
  FROM gold_assignment_fairness
  GROUP BY consumer_group, topic
),
registered_broker AS (SELECT DISTINCT broker_name FROM silver_broker WHERE broker_name IS NOT NULL),
-- A broker without an answer about the group, unless it was not asked and has no configuration of the group. Before 5.1.1, a broker
-- registers members of groups that it has no configuration of, so an error is no answer.
unanswered AS (
  SELECT consumer_group, TRUE AS is_unanswered
  FROM (SELECT DISTINCT consumer_group FROM stated_group) CROSS JOIN registered_broker
  LEFT JOIN (SELECT consumer_group, broker_name, state FROM silver_group_presence) USING (consumer_group, broker_name)
  LEFT JOIN (
    SELECT DISTINCT broker_name, TRUE AS is_read FROM silver_export_record
    WHERE kind = 'broker_subscription_group' AND state = 'payload'
  ) USING (broker_name)
  LEFT JOIN (
    SELECT DISTINCT consumer_group, broker_name, TRUE AS is_configured FROM silver_subscription_group
  ) USING (consumer_group, broker_name)
  GROUP BY consumer_group
  HAVING count_if(NOT coalesce(state, 'unknown') IN ('online', 'offline')
    AND NOT (state IS NULL AND coalesce(is_read, FALSE) AND NOT coalesce(is_configured, FALSE))) > 0
),
answer_of_broker AS (
  SELECT
    consumer_group, bool_or(state = 'online') AS is_online,
    bool_or(state = 'unknown') AS has_unknown,
    bool_or(state = 'unknown' AND (SELECT count(*) FROM registered_broker) = 0) AS has_unknown_among_all
  FROM silver_group_presence
  GROUP BY consumer_group
),
{PROXY_TABLES},
retry_topic AS (
  SELECT topic FROM silver_topic_config WHERE startswith(topic, '%RETRY%')
  UNION
  SELECT topic FROM silver_export_record WHERE kind = 'nameserver_route' AND startswith(topic, '%RETRY%')
),
group_topic AS (
  SELECT consumer_group, topic FROM silver_consume_progress
  UNION SELECT consumer_group, topic FROM silver_subscription
  UNION SELECT consumer_group, topic FROM silver_client_subscription
  UNION SELECT consumer_group, topic FROM silver_proxy_subscription
),
pop_retried AS (
  SELECT DISTINCT group_topic.consumer_group, TRUE AS is_pop_retried
  FROM retry_topic JOIN group_topic
  ON retry_topic.topic = concat('%RETRY%', group_topic.consumer_group, '+', group_topic.topic)
    OR retry_topic.topic = concat('%RETRY%', group_topic.consumer_group, '_', group_topic.topic)
  LEFT ANTI JOIN (
    SELECT concat('%RETRY%', consumer_group) AS topic FROM group_topic
    UNION SELECT concat('%RETRY%', consumer_group) FROM silver_subscription_group
  ) AS plain ON plain.topic = retry_topic.topic
),
progressed AS (
  SELECT
    now.consumer_group,
    bool_or(now.pull_offset > now.consumer_offset
      AND NOT (now.pull_offset <=> old.pull_offset AND now.consumer_offset <=> old.consumer_offset)) AS is_in_flight,
    bool_or(old.consumer_offset IS NOT NULL
      AND (NOT now.consumer_offset <=> old.consumer_offset
        OR coalesce(now.last_consumed_at > old.last_consumed_at, FALSE))) AS is_moved
  FROM silver_consume_progress AS now
  LEFT JOIN baseline_consume_progress AS old
  ON old.consumer_group = now.consumer_group AND old.topic = now.topic
    AND old.broker_name = now.broker_name AND old.queue_id = now.queue_id
  GROUP BY now.consumer_group
),
-- Whether a name server's route of the topic has no broker that was asked about the group; an unnamed broker may be any of them.
routed AS (
  SELECT
    consumer_group, topic,
    bool_or(NOT is_asked) AS is_unasked_on_a_route, bool_and(NOT is_asked) AS is_unasked_on_every_route
  FROM (
    SELECT consumer_group, topic, nameserver, bool_or(coalesce(is_asked, FALSE)) AS is_asked
    FROM stated_group
    JOIN (
      SELECT topic, nameserver, broker_name FROM silver_topic_route WHERE is_in_route
      UNION
      SELECT topic, nameserver, {quoted(_UNNAMED_BROKER)} FROM silver_topic_route WHERE is_in_route
    ) USING (topic)
    LEFT JOIN (SELECT DISTINCT consumer_group, broker_name, TRUE AS is_asked FROM silver_group_presence)
      USING (consumer_group, broker_name)
    GROUP BY consumer_group, topic, nameserver
  )
  GROUP BY consumer_group, topic
),
presence AS (
  SELECT
    consumer_group, topic, state, reason, has_other_state,
    coalesce(is_unasked_on_a_route, FALSE) AS is_unasked_on_a_route,
    coalesce(is_unasked_on_every_route, FALSE) AS is_unasked_on_every_route,
    coalesce(is_online, FALSE) AS is_online,
    coalesce(is_online_at_proxy, FALSE) AS is_online_at_proxy,
    coalesce(is_unanswered, FALSE) OR is_online IS NULL OR coalesce(has_unknown_among_all, FALSE) AS is_unanswered,
    coalesce(has_unknown, TRUE) AS has_unknown,
    is_unfound OR coalesce(answering_proxy_count, 0) < proxy_count AS is_hidden,
    coalesce(is_pop_retried, FALSE) AND coalesce(answering_proxy_count, 0) = 0 AS is_pop_retried,
    coalesce(is_in_flight, FALSE) AS is_in_flight,
    coalesce(is_moved, FALSE) AS is_moved
  FROM stated_group CROSS JOIN proxies
  LEFT JOIN routed USING (consumer_group, topic)
  LEFT JOIN unanswered USING (consumer_group)
  LEFT JOIN answer_of_broker USING (consumer_group)
  LEFT JOIN answer_of_proxy USING (consumer_group)
  LEFT JOIN pop_retried USING (consumer_group)
  LEFT JOIN progressed USING (consumer_group)
)"""

_DISPROOFS: Final = {
    "a broker has it online": "is_online",
    "a proxy has it online": "is_online_at_proxy",
    "a broker gave no answer": "is_unanswered",
    "no broker of the topic's route was asked": "is_unasked_on_every_route",
    "a proxy gave no answer": "is_hidden",
    "it has a retry topic of POP": "is_pop_retried",
    "messages are in flight": "is_in_flight",
    "its offsets moved": "is_moved",
}
_EVIDENCE_OF_REASON: Final = {
    "broker_not_asked": "is_unanswered OR has_unknown OR is_unasked_on_a_route",
    "online_at_other_brokers": "is_online",
    "may_be_behind_a_proxy": "is_hidden",
    "pop_retry_topic_exists": "is_pop_retried",
    "messages_in_flight": "is_in_flight",
    "offsets_moved": "is_moved",
}
_disproofs = ", ".join(f"IF({sql}, {quoted(text)}, NULL)" for text, sql in _DISPROOFS.items())
_evidence = " ".join(f"WHEN {quoted(reason)} THEN {sql}" for reason, sql in _EVIDENCE_OF_REASON.items())
_SUBJECT: Final = (
    "'group ', consumer_group, ', topic ', topic, ': ', state, coalesce(concat(' (', reason, ')'), '')"
)


def _system_groups(relation: str, expectation: Expectation, condition: str = "TRUE") -> str:
    return violations_in(
        f"(SELECT DISTINCT consumer_group FROM {relation} WHERE {condition} AND consumer_group IS NOT NULL AND NOT {USERS_GROUP})",
        [Violation(expectation, "TRUE", "concat('group ', consumer_group)")],
        ("consumer_group",),
    )


QUERIES: Final = (
    violations_in(
        "presence",
        (
            Violation(
                STATE_KNOWN,
                f"NOT state IN {quoted_list(GROUP_STATES)} OR (state = 'unknown') <> (reason IS NOT NULL) "
                f"OR NOT coalesce(reason, {quoted(GROUP_STATE_REASONS[0])}) IN {quoted_list(GROUP_STATE_REASONS)} "
                "OR coalesce(has_other_state, FALSE)",
                f"concat({_SUBJECT})",
            ),
            Violation(
                ABSENCE_PROVEN,
                f"state = 'offline' AND ({' OR '.join(_DISPROOFS.values())})",
                f"concat({_SUBJECT}, ', yet ', concat_ws(', ', {_disproofs}))",
            ),
            Violation(
                STATE_HAS_EVIDENCE,
                "state IN ('online', 'broadcasting') AND NOT (is_online AND NOT is_unasked_on_every_route OR is_online_at_proxy) "
                f"OR state = 'unknown' AND NOT coalesce(CASE reason {_evidence} END, FALSE)",
                f"concat({_SUBJECT})",
            ),
        ),
        ("consumer_group", "topic"),
    ),
    violations_in(
        """(
  SELECT DISTINCT consumer_group, topic, group_state, group_state_reason, stated_group.state, stated_group.reason
  FROM gold_ownership_drift JOIN stated_group USING (consumer_group, topic)
  WHERE NOT group_state <=> stated_group.state OR NOT group_state_reason <=> stated_group.reason
)""",
        [
            Violation(
                STATE_SAME,
                "TRUE",
                "concat('group ', consumer_group, ', topic ', topic, ': ', concat_ws(' ', group_state, group_state_reason), "
                "', where assignment_fairness has ', concat_ws(' ', state, reason))",
            )
        ],
        ("consumer_group", "topic"),
    ),
    _system_groups("gold_assignment_fairness", NO_SYSTEM_GROUP),
    _system_groups("gold_ownership_drift", NO_SYSTEM_GROUP_IN_DRIFT),
    _system_groups("gold_broadcast_offset_file", NO_SYSTEM_GROUP_IN_OFFSET_FILES),
    # A record of any group can be unreadable.
    _system_groups(
        "gold_finding", NO_SYSTEM_GROUP_IN_FINDING, "kind NOT IN ('record_rejected', 'record_repeated')"
    ),
)
"""Violations of each group's state."""
