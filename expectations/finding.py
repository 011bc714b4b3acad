"""What must hold of `gold.finding`: closed lists, a subject, evidence, words to act on; and that no drift goes untold.

What does not belong here: whether a finding is bad news. It is, and it is published.
"""

# ruff: noqa: S608 - the SQL is put together from this package's own constants; no name from outside gets in.
from __future__ import annotations

from typing import Final

from expectations.model import (
    Expectation,
    Suite,
    Violation,
    quoted,
    quoted_list,
    subject_columns,
    text_or_null,
    violations_in,
)
from expectations.presence import USERS_GROUP
from expectations.thresholds import (
    DRIFT_FINDING_KINDS,
    FINDING_CAUSES,
    FINDING_CAUSES_OF_GROUPS,
    FINDING_EXPLANATIONS,
    FINDING_KIND_SEVERITIES,
    FINDING_KINDS,
    FINDING_KINDS_OF_CLIENTS,
    FINDING_KINDS_WITHOUT_SUBJECT,
    FINDING_SEVERITIES,
    PASSING_CAUSES,
)
from rebalance_ledger.tables import FINDING

SEVERITY_KNOWN: Final = Expectation(
    FINDING,
    "severity_known",
    f"The severity is one of {', '.join(FINDING_SEVERITIES)}.",
    judges=("severity",),
)
KIND_KNOWN: Final = Expectation(FINDING, "kind_known", "The kind is on the closed list.", judges=("kind",))
SUBJECT_GIVEN: Final = Expectation(
    FINDING,
    "subject_given",
    "A finding names a group, topic, broker, queue or client, except where a name server or a file is concerned.",
)
WORDS_GIVEN: Final = Expectation(
    FINDING,
    "text_fields_not_empty",
    "A finding has evidence, advice, and the page of its kind.",
    judges=("page",),
)
EVIDENCE_GIVEN: Final = Expectation(
    FINDING, "evidence_given", "A finding has its evidence in at least one column, and not in words only."
)
CAUSE_KNOWN: Final = Expectation(
    FINDING, "cause_known", "The likely cause is on the closed list.", judges=("likely_cause",)
)
DRIFT_TOLD: Final = Expectation(
    FINDING,
    "drift_has_finding",
    "Each group and topic with queues that are not owned as they should be has a finding of it for each cause, with "
    "their number, and no other has one; an offline group has its own.",
    judges=("queue_count",),
)
DIVERGENCE_TOLD: Final = Expectation(
    FINDING,
    "divergence_told",
    "Each topic whose readable queues or order configuration differ between name servers has a finding, and no other.",
    judges=("route_divergence.is_read_affected",),
)
ORDER_BLOCK_TOLD: Final = Expectation(
    FINDING,
    "order_block_told",
    "Each group and topic with FIFO queues whose head was handed out again and is not committed while messages wait behind it has "
    "a finding with their number, and no other has one.",
)
ID_FOLLOWS_KEY: Final = Expectation(
    FINDING,
    "id_follows_key",
    "The id of a finding is the hash of its kind, subject and likely cause.",
    judges=(
        "kind",
        "consumer_group",
        "topic",
        "broker_name",
        "client_id",
        "likely_cause",
        "finding_id",
    ),
)
ROOT_EXISTS: Final = Expectation(
    FINDING,
    "root_exists",
    "A finding that another one explains names it and the root above it; both are in the table, and the root is explained by none.",
    judges=(
        "parent_finding_id",
        "root_finding_id",
    ),
)
EXPLAINED_BY_RULE: Final = Expectation(
    FINDING,
    "explained_by_rule",
    "What explains a finding is of a kind that may, and has its subject and cause.",
)
EXPLAINED_WHERE_POSSIBLE: Final = Expectation(
    FINDING, "explained_where_possible", "No finding that another one of the day explains is a root."
)
WAITING_COUNTED: Final = Expectation(
    FINDING,
    "waiting_counted",
    "The messages that wait in queues without an owner are those between the group's offset, or the oldest message, and the end.",
    judges=("waiting_message_count",),
)
SEVERITY_FOLLOWS: Final = Expectation(
    FINDING,
    "severity_follows",
    "A finding that another one explains is info; a root is as severe as its kind and as the worst finding below it.",
    judges=("severity",),
)

_ABSENT: Final = {
    kind: Expectation(FINDING, f"no_{kind}", f"The cluster has no finding {kind}.", severity=None)
    for kind in FINDING_KINDS
}
"""Kind -> that there is none of it: judged only where settings raise the kind, for a finding is no fault of the ledger."""

SUITE: Final = Suite(
    "finding",
    (
        SEVERITY_KNOWN,
        KIND_KNOWN,
        SUBJECT_GIVEN,
        WORDS_GIVEN,
        EVIDENCE_GIVEN,
        CAUSE_KNOWN,
        DRIFT_TOLD,
        DIVERGENCE_TOLD,
        ORDER_BLOCK_TOLD,
        ID_FOLLOWS_KEY,
        ROOT_EXISTS,
        EXPLAINED_BY_RULE,
        EXPLAINED_WHERE_POSSIBLE,
        SEVERITY_FOLLOWS,
        WAITING_COUNTED,
    ),
)
ABSENCE_SUITE: Final = Suite("no_finding", tuple(_ABSENT.values()))

_KIND_OF: Final = {expectation.expectation_id: kind for kind, expectation in _ABSENT.items()}


def kind_of(expectation: Expectation) -> str | None:
    """The kind of finding whose absence is expected; None for any other expectation."""
    return _KIND_OF.get(expectation.expectation_id)


_EVIDENCE_COLUMNS = tuple(
    column.name
    for column in FINDING.columns
    if column.name.endswith(("_count", "_per_client")) or column.type == "array<string>"
)
_SUBJECT = (
    "concat_ws(', ', concat('kind ', kind), concat('group ', consumer_group), concat('topic ', topic), "
    "concat('broker ', broker_name), concat('queue ', queue_id), concat('client ', client_id))"
)

_BREACHES = violations_in(
    "gold_finding",
    (
        Violation(
            SEVERITY_KNOWN,
            f"NOT coalesce(severity, '') IN {quoted_list(FINDING_SEVERITIES)}",
            f"concat({_SUBJECT}, ': severity ', coalesce(severity, 'null'))",
        ),
        Violation(KIND_KNOWN, f"NOT coalesce(kind, '') IN {quoted_list(FINDING_KINDS)}", _SUBJECT),
        Violation(
            SUBJECT_GIVEN,
            "coalesce(consumer_group, topic, broker_name, CAST(queue_id AS STRING), client_id) IS NULL "
            f"AND NOT coalesce(kind, '') IN {quoted_list(FINDING_KINDS_WITHOUT_SUBJECT)}",
            f"concat({_SUBJECT}, ': ', coalesce(evidence, 'null'))",
        ),
        Violation(
            WORDS_GIVEN,
            "trim(coalesce(evidence, '')) = '' OR trim(coalesce(advice, '')) = '' "
            "OR NOT page <=> concat('docs/findings/', kind, '.md')",
            _SUBJECT,
        ),
        Violation(EVIDENCE_GIVEN, " AND ".join(f"{name} IS NULL" for name in _EVIDENCE_COLUMNS), _SUBJECT),
        Violation(
            CAUSE_KNOWN,
            f"NOT coalesce(likely_cause, {quoted(FINDING_CAUSES[0])}) IN {quoted_list(FINDING_CAUSES)}",
            f"concat({_SUBJECT}, ': ', likely_cause)",
        ),
    ),
    ("consumer_group", "topic", "broker_name"),
)

_KEY = "to_json(array(kind, consumer_group, topic, broker_name, client_id, likely_cause))"


def _key(number: int, columns: tuple[str, ...]) -> str:
    return f"to_json(array('{number}', {', '.join(columns)}))"


def _given(columns: tuple[str, ...]) -> str:
    return " AND ".join(f"{column} IS NOT NULL" for column in columns)


_WANTED = ",\n    ".join(
    f"IF(kind IN {quoted_list(kinds)} AND {_given(columns)} AND {condition}, {_key(number, columns)}, NULL)"
    for number, (_, kinds, columns, condition) in enumerate(FINDING_EXPLANATIONS)
)
_OFFERED = ",\n    ".join(
    f"IF(kind = {quoted(kind)} AND {_given(columns)}, {_key(number, columns)}, NULL)"
    for number, (kind, _, columns, _) in enumerate(FINDING_EXPLANATIONS)
)
_KINDS_OF_QUEUES = [
    kind for kinds in DRIFT_FINDING_KINDS.values() for kind in kinds if kind != "assignment_stale"
]


def _ranks(place: int) -> str:
    """SQL for the severity that a finding has by itself, as a number: the worst (0) or the mildest (-1) that it may have."""
    by_kind = " ".join(
        f"WHEN {quoted(kind)} THEN {FINDING_SEVERITIES.index(sorted(own, key=FINDING_SEVERITIES.index)[place])}"
        for kind, own in FINDING_KIND_SEVERITIES.items()
    )
    return (
        f"CASE WHEN kind IN ('unowned', 'multiple_owners') "
        f"THEN IF(coalesce(likely_cause, '') IN {quoted_list(PASSING_CAUSES)}, 1, 0) ELSE CASE kind {by_kind} END END"
    )


COMMON_TABLES: Final = f"""
unreachable_broker AS (
  SELECT broker_name
  FROM silver_export_record
  WHERE broker_name IS NOT NULL AND kind <> 'broker_file'
  GROUP BY broker_name
  HAVING max(captured_at) FILTER (
    WHERE error_type LIKE '%RemotingConnectException' OR error_type = 'ServerNotAnswering'
  ) >= coalesce(max(captured_at) FILTER (WHERE state <> 'error' OR error_code IS NOT NULL), TIMESTAMP '1970-01-01')
),
failed_question AS (
  SELECT
    kind, consumer_group, broker_name,
    CASE
      WHEN error_code = 16 OR error_message RLIKE 'AclException|AuthenticationException|AuthorizationException'
        THEN 'permission_denied'
      WHEN error_type LIKE '%RemotingConnectException' OR error_type = 'ServerNotAnswering' THEN 'connection_failed'
      WHEN error_type LIKE '%Timeout%' THEN 'timed_out'
    END AS cause
  FROM silver_export_record
  WHERE state = 'error' AND NOT coalesce(error_code IN (17, 26, 206, 213), FALSE) AND NOT error_type <=> 'NotAsked'
    AND NOT coalesce(error_message LIKE '%> not online%', FALSE)
),
cause_source AS (
  SELECT
    'route_differs' AS kind, CAST(NULL AS STRING) AS consumer_group, topic, CAST(NULL AS STRING) AS of_broker,
    'broker_missing_on_nameserver' AS parent_kind, explode(brokers) AS broker_name, CAST(NULL AS STRING) AS cause
  FROM (
    SELECT topic, collect_set(broker_name) FILTER (WHERE is_read_affected) AS brokers
    FROM gold_route_divergence
    WHERE state = 'differs'
    GROUP BY topic
    HAVING bool_and(
      NOT is_read_affected
      OR array_contains(differences, 'broker_missing') AND NOT arrays_overlap(differences, array('read_queues', 'perm'))
    )
  )
  UNION ALL
  SELECT 'route_missing', NULL, topic, NULL, 'source_failed', explode(brokers), 'connection_failed'
  FROM (
    SELECT topic, collect_set(broker_name) AS brokers
    FROM gold_ownership_drift
    LEFT JOIN (SELECT broker_name, TRUE AS is_unreachable FROM unreachable_broker) USING (broker_name)
    WHERE route_state = 'none' AND NOT is_routed
    GROUP BY topic
    HAVING bool_and(coalesce(is_unreachable, FALSE))
  )
  UNION ALL
  SELECT DISTINCT 'members_unknown', consumer_group, NULL, NULL, 'source_failed', broker_name, cause
  FROM failed_question
  WHERE kind = 'consumer_connection'
  UNION ALL
  SELECT 'client_unreachable', consumer_group, NULL, NULL, 'source_failed', NULL, 'permission_denied'
  FROM failed_question
  WHERE kind = 'consumer_running_info'
  GROUP BY consumer_group
  HAVING bool_and(cause <=> 'permission_denied')
  UNION ALL
  SELECT 'broker_missing_on_nameserver', NULL, NULL, broker_name, 'source_failed', broker_name, 'connection_failed'
  FROM unreachable_broker
),
wanted_finding AS (
  SELECT finding_id, explode(array_compact(array(
    {_WANTED}))) AS key
  FROM gold_finding
  UNION ALL
  SELECT f.finding_id, to_json(array(c.parent_kind, c.broker_name, c.cause))
  FROM gold_finding AS f
  JOIN cause_source AS c
    ON f.kind = c.kind AND f.consumer_group <=> c.consumer_group AND f.topic <=> c.topic AND f.broker_name <=> c.of_broker
    -- Whose members are unknown for another reason is not explained by a broker that did not answer.
    AND (f.kind <> 'members_unknown' OR f.seen_values <=> array('broker_not_asked'))
),
offered_finding AS (
  SELECT finding_id AS parent_id, explode(array_compact(array(
    {_OFFERED},
    IF(kind = 'broker_missing_on_nameserver', to_json(array(kind, broker_name, NULL)), NULL),
    IF(kind = 'source_failed', to_json(array(kind, broker_name, likely_cause)), NULL)))) AS key
  FROM gold_finding
),
explained_finding AS (
  SELECT finding_id, collect_set(parent_id) AS parents
  FROM wanted_finding JOIN offered_finding USING (key)
  GROUP BY finding_id
),
placed_finding AS (
  SELECT
    *,
    count_if(parent_finding_id IS NULL) OVER (PARTITION BY shared_cause) AS roots_of_cause,
    min({_ranks(0)}) OVER (PARTITION BY coalesce(root_finding_id, finding_id)) AS worst_rank,
    min({_ranks(-1)}) OVER (PARTITION BY coalesce(root_finding_id, finding_id)) AS mildest_rank,
    nullif(array_position(array{quoted_list(FINDING_SEVERITIES)}, severity), 0) - 1 AS rank
  FROM (
    SELECT
      *,
      CASE
        WHEN kind IN {quoted_list(_KINDS_OF_QUEUES)} AND likely_cause IN {quoted_list(FINDING_CAUSES_OF_GROUPS)}
          THEN to_json(array('queues', consumer_group, likely_cause))
        WHEN kind = 'source_failed' AND likely_cause = 'permission_denied' THEN 'permission_denied'
        WHEN kind = 'subscriptions_differ' AND client_count > 0 THEN to_json(array(kind, consumer_group))
        WHEN kind IN {quoted_list(FINDING_KINDS_OF_CLIENTS)} THEN to_json(array(kind, consumer_group, client_id))
      END AS shared_cause
    FROM gold_finding
  )
),
judged_finding AS (
  SELECT
    f.*,
    p.finding_id AS known_parent,
    coalesce(p.root_finding_id, p.finding_id) AS root_of_parent,
    p.shared_cause <=> f.shared_cause AND f.shared_cause IS NOT NULL AND p.finding_id <> f.finding_id AS has_same_cause,
    r.finding_id AS known_root,
    coalesce(e.parents, array()) AS parents,
    -- A topic without a route is held by groups that the day may be published without.
    f.kind <> 'route_missing' OR h.topic IS NOT NULL AS is_complete
  FROM placed_finding AS f
  LEFT JOIN (SELECT DISTINCT finding_id, root_finding_id, shared_cause FROM placed_finding) AS p
    ON f.parent_finding_id = p.finding_id
  LEFT JOIN (SELECT DISTINCT finding_id FROM gold_finding WHERE parent_finding_id IS NULL) AS r
    ON f.root_finding_id = r.finding_id
  LEFT JOIN explained_finding AS e ON f.finding_id = e.finding_id
  LEFT JOIN (
    SELECT DISTINCT topic FROM gold_ownership_drift WHERE route_state = 'none' AND NOT is_routed
  ) AS h ON f.topic = h.topic
)"""

_EXPLAINED_BREACHES = violations_in(
    "judged_finding",
    (
        Violation(
            ID_FOLLOWS_KEY,
            f"NOT finding_id <=> substring(sha2({_KEY}, 256), 1, 16)",
            f"concat({_SUBJECT}, ': id ', coalesce(finding_id, 'null'))",
        ),
        Violation(
            ROOT_EXISTS,
            "(parent_finding_id IS NULL) <> (root_finding_id IS NULL) OR parent_finding_id = finding_id "
            "OR parent_finding_id IS NOT NULL AND NOT (known_root <=> root_finding_id AND root_of_parent <=> root_finding_id)",
            f"concat({_SUBJECT}, ': parent ', coalesce(parent_finding_id, 'null'), ', root ', coalesce(root_finding_id, 'null'))",
        ),
        Violation(
            EXPLAINED_BY_RULE,
            "known_parent IS NOT NULL AND NOT array_contains(parents, parent_finding_id) "
            "AND NOT coalesce(has_same_cause, FALSE) AND is_complete",
            f"concat({_SUBJECT}, ': parent ', parent_finding_id)",
        ),
        Violation(
            EXPLAINED_WHERE_POSSIBLE,
            "parent_finding_id IS NULL AND (size(parents) > 0 OR shared_cause IS NOT NULL AND roots_of_cause > 1)",
            _SUBJECT,
        ),
        Violation(
            SEVERITY_FOLLOWS,
            "IF(parent_finding_id IS NOT NULL, severity <> 'info', "
            # What is below a root without a group may be in groups that the day is published without.
            "rank > mildest_rank OR rank < worst_rank AND consumer_group IS NOT NULL)",
            f"concat({_SUBJECT}, ': severity ', severity)",
        ),
    ),
    ("consumer_group", "topic", "broker_name"),
)

_KIND_OF_STATE = " ".join(
    f"WHEN kind IN {quoted_list(kinds)} THEN {quoted(state)}" for state, kinds in DRIFT_FINDING_KINDS.items()
)

QUERIES: Final = (
    _BREACHES,
    _EXPLAINED_BREACHES,
    violations_in(
        """(
  SELECT f.consumer_group, f.topic, f.likely_cause, f.waiting_message_count, w.waiting_count
  FROM gold_finding AS f
  LEFT JOIN (
    SELECT consumer_group, topic, likely_cause, sum(greatest(waiting_count, waiting_count * 0)) AS waiting_count
    FROM (
      SELECT
        d.consumer_group, d.topic, d.likely_cause,
        IF(
          p.consumer_offset >= 0,
          coalesce(p.broker_offset, o.max_offset) - greatest(p.consumer_offset, o.min_offset),
          o.max_offset - o.min_offset
        ) AS waiting_count
      FROM gold_ownership_drift AS d
      LEFT JOIN silver_consume_progress AS p USING (consumer_group, topic, broker_name, queue_id)
      LEFT JOIN silver_queue_offset AS o USING (topic, broker_name, queue_id)
      WHERE d.state = 'unowned'
    )
    GROUP BY consumer_group, topic, likely_cause
  ) AS w
    ON f.kind = 'unowned' AND f.consumer_group <=> w.consumer_group AND f.topic <=> w.topic
    AND f.likely_cause <=> w.likely_cause
)""",
        [
            Violation(
                WAITING_COUNTED,
                "NOT waiting_message_count <=> waiting_count",
                f"concat('group ', consumer_group, ', topic ', topic, ': ', {text_or_null('waiting_message_count')}, "
                f"' messages wait, expected ', {text_or_null('waiting_count')})",
            )
        ],
        ("consumer_group", "topic"),
    ),
    violations_in(
        f"""(
  SELECT consumer_group, topic, state, likely_cause, sum(queue_count) AS queue_count, sum(told_count) AS told_count
  FROM (
    SELECT consumer_group, topic, state, likely_cause, 1 AS queue_count, 0 AS told_count
    FROM gold_ownership_drift
    WHERE state IN {quoted_list(DRIFT_FINDING_KINDS)} AND NOT likely_cause <=> 'group_offline'
    UNION ALL
    SELECT consumer_group, topic, CASE {_KIND_OF_STATE} END, likely_cause, 0, queue_count
    FROM gold_finding
    WHERE CASE {_KIND_OF_STATE} END IS NOT NULL
  )
  GROUP BY consumer_group, topic, state, likely_cause
)""",
        [
            Violation(
                DRIFT_TOLD,
                "NOT queue_count <=> told_count",
                "concat('group ', consumer_group, ', topic ', topic, ': ', queue_count, ' queues are ', state, ' (', "
                "coalesce(likely_cause, 'no cause'), '), findings tell of ', coalesce(told_count, 0))",
            )
        ],
        ("consumer_group", "topic"),
    ),
    violations_in(
        """(
  SELECT topic, kind, max(is_there) AS is_there, max(is_told) AS is_told
  FROM (
    SELECT topic, kind, TRUE AS is_there, FALSE AS is_told
    FROM gold_route_divergence
    LATERAL VIEW explode(array_compact(array(
      IF(is_read_affected, 'route_differs', NULL),
      IF(array_contains(differences, 'order_conf'), 'order_conf_differs', NULL)
    ))) AS kind
    WHERE state = 'differs'
    UNION ALL
    SELECT topic, kind, FALSE, TRUE FROM gold_finding WHERE kind IN ('route_differs', 'order_conf_differs')
  )
  GROUP BY topic, kind
)""",
        [
            Violation(
                DIVERGENCE_TOLD,
                "is_there <> is_told",
                "concat('topic ', topic, ': ', kind, IF(is_told, ' is told and not there', ' is there and not told'))",
            )
        ],
        ("topic",),
    ),
    violations_in(
        f"""(
  SELECT consumer_group, topic, sum(queue_count) AS queue_count, sum(told_count) AS told_count
  FROM (
    SELECT consumer_group, topic, 1 AS queue_count, 0 AS told_count
    FROM silver_queue_order_lock AS held
    JOIN silver_consume_progress AS progress USING (consumer_group, topic, broker_name, queue_id)
    WHERE held.redelivery_count >= 1 AND NOT progress.consumer_offset > held.head_offset
      AND try_subtract(progress.broker_offset, held.last_offset) > 1
      AND {USERS_GROUP}
    UNION ALL
    SELECT consumer_group, topic, 0, queue_count FROM gold_finding WHERE kind = 'order_queue_blocked'
  )
  GROUP BY consumer_group, topic
)""",
        [
            Violation(
                ORDER_BLOCK_TOLD,
                "NOT queue_count <=> told_count",
                "concat('group ', consumer_group, ', topic ', topic, ': ', queue_count, ' queues are blocked, findings tell of ', "
                "coalesce(told_count, 0))",
            )
        ],
        ("consumer_group", "topic"),
    ),
)
"""What is seen of each finding, and of the drift and the divergence that findings tell of."""

ABSENCE_QUERY: Final = f"""
SELECT
  concat({quoted(f"{FINDING.name}.no_")}, kind) AS expectation_id, 1D AS amount,
  concat({_SUBJECT}, ': ', coalesce(evidence, 'null')) AS example,
  {subject_columns(("consumer_group", "topic", "broker_name"))}
FROM gold_finding
WHERE kind IN {quoted_list(FINDING_KINDS)}"""
"""Every finding, as a violation of the expectation that there is none of its kind."""
