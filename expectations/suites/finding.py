"""Expectations for `gold.finding`: closed lists, a subject, evidence and advice; every ownership mismatch has a finding.

Does not belong here: judging the cluster. Findings report its problems and are published.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.finding_sources import first_texts
from expectations.suites.model import (
    Expectation,
    Suite,
    Violation,
    quoted,
    quoted_list,
    subject_columns,
    text_or_null,
    violations_in,
)
from expectations.suites.presence import USERS_GROUP
from expectations.suites.thresholds import (
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
    f"Every severity is one of {', '.join(FINDING_SEVERITIES)}.",
    judges=("severity",),
)
KIND_KNOWN: Final = Expectation(
    FINDING, "kind_known", "Every kind is from the closed list.", judges=("kind",)
)
SUBJECT_GIVEN: Final = Expectation(
    FINDING,
    "subject_given",
    "Every finding names a group, topic, broker, queue or client, unless it is about a name "
    "server or a file.",
)
WORDS_GIVEN: Final = Expectation(
    FINDING,
    "text_fields_not_empty",
    "Every finding has evidence, advice and the page of its kind.",
    judges=("page",),
)
EVIDENCE_GIVEN: Final = Expectation(
    FINDING, "evidence_given", "Every finding has its evidence in at least one column, not only in text."
)
CAUSE_KNOWN: Final = Expectation(
    FINDING, "cause_known", "Every likely cause is from the closed list.", judges=("likely_cause",)
)
DRIFT_REPORTED: Final = Expectation(
    FINDING,
    "drift_has_finding",
    "Every ownership mismatch has exactly one finding per group, topic and cause, with the numbers "
    "of queues and clients, the first queues and the reasons; there are no others; an offline group has its own finding.",
    judges=("queue_count", "client_count", "client_total_count", "seen_values", "examples"),
)
DIVERGENCE_REPORTED: Final = Expectation(
    FINDING,
    "divergence_has_finding",
    "Every topic whose readable queues or order configuration differ between name servers has a "
    "finding; no other topic has one.",
    judges=("route_divergence.is_read_affected",),
)
ORDER_BLOCK_REPORTED: Final = Expectation(
    FINDING,
    "order_block_has_finding",
    "Every group and topic with FIFO queues whose head was redelivered and is not committed while "
    "messages wait behind it has a finding with the number of queues and the first of them; no other has one.",
    judges=("examples",),
)
ID_FOLLOWS_KEY: Final = Expectation(
    FINDING,
    "id_follows_key",
    "Every finding id is the hash of kind, subject and likely cause.",
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
    "Every finding that another one explains names it and the root above it; both are in the "
    "table, and no finding explains the root.",
    judges=(
        "parent_finding_id",
        "root_finding_id",
    ),
)
EXPLAINED_BY_RULE: Final = Expectation(
    FINDING,
    "explained_by_rule",
    "Every parent of a finding is of a kind that may explain it, and has its subject and cause.",
)
EXPLAINED_WHERE_POSSIBLE: Final = Expectation(
    FINDING, "explained_where_possible", "No root finding can be explained by another finding of the day."
)
WAITING_COUNTED: Final = Expectation(
    FINDING,
    "waiting_counted",
    "The waiting messages of queues without an owner are those between the group's offset and the end of the queue; without an "
    "offset, those of the queue if the group starts at its oldest message or it is empty, else unknown.",
    judges=("waiting_message_count",),
)
SEVERITY_FOLLOWS: Final = Expectation(
    FINDING,
    "severity_follows",
    "Every finding that another one explains is info; every root is as severe as its kind and as "
    "the worst finding below it.",
    judges=("severity",),
)

_ABSENT: Final = {
    kind: Expectation(FINDING, f"no_{kind}", f"The cluster has no finding {kind}.", severity=None)
    for kind in FINDING_KINDS
}
"""Kind -> expectation of its absence. Judged only if settings raise the kind, because a finding is not an error of the ledger."""

SUITE: Final = Suite(
    "finding",
    (
        SEVERITY_KNOWN,
        KIND_KNOWN,
        SUBJECT_GIVEN,
        WORDS_GIVEN,
        EVIDENCE_GIVEN,
        CAUSE_KNOWN,
        DRIFT_REPORTED,
        DIVERGENCE_REPORTED,
        ORDER_BLOCK_REPORTED,
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
    """Return the kind of finding whose absence is expected; None for any other expectation."""
    return _KIND_OF.get(expectation.expectation_id)


_EVIDENCE_COLUMNS = tuple(
    column.name
    for column in FINDING.columns
    if column.name.endswith(("_count", "_per_client")) or column.type == "array<string>"
)
_SUBJECT = (
    "concat_ws(', ', concat('kind ', kind), concat('group ', consumer_group), concat('topic ', topic), "
    "concat('broker ', broker_name), concat('client ', client_id))"
)

_VIOLATIONS = violations_in(
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
            "coalesce(consumer_group, topic, broker_name, client_id) IS NULL "
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


def _not_null(columns: tuple[str, ...]) -> str:
    return " AND ".join(f"{column} IS NOT NULL" for column in columns)


_PARENT_KEYS = ",\n    ".join(
    f"IF(kind IN {quoted_list(kinds)} AND {_not_null(columns)} AND {condition}, {_key(number, columns)}, NULL)"
    for number, (_, kinds, columns, condition) in enumerate(FINDING_EXPLANATIONS)
)
_OWN_KEYS = ",\n    ".join(
    f"IF(kind = {quoted(kind)} AND {_not_null(columns)}, {_key(number, columns)}, NULL)"
    for number, (kind, _, columns, _) in enumerate(FINDING_EXPLANATIONS)
)
_KINDS_OF_QUEUES = [
    kind for kinds in DRIFT_FINDING_KINDS.values() for kind in kinds if kind != "assignment_stale"
]


def _ranks(index: int) -> str:
    """Return SQL for the severity rank of a finding by itself: the worst (0) or the mildest (-1) that its kind allows."""
    by_kind = " ".join(
        f"WHEN {quoted(kind)} THEN {FINDING_SEVERITIES.index(sorted(own, key=FINDING_SEVERITIES.index)[index])}"
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
    {_PARENT_KEYS}))) AS key
  FROM gold_finding
  UNION ALL
  SELECT f.finding_id, to_json(array(c.parent_kind, c.broker_name, c.cause))
  FROM gold_finding AS f
  JOIN cause_source AS c
    ON f.kind = c.kind AND f.consumer_group <=> c.consumer_group AND f.topic <=> c.topic AND f.broker_name <=> c.of_broker
    -- An unreachable broker does not explain members that are unknown for another reason.
    AND (f.kind <> 'members_unknown' OR f.seen_values <=> array('broker_not_asked'))
),
offered_finding AS (
  SELECT finding_id AS parent_id, explode(array_compact(array(
    {_OWN_KEYS},
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
    -- The groups of a topic without a route may be quarantined.
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

_EXPLAINED_VIOLATIONS = violations_in(
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
            # The findings below a root without a group may belong to quarantined groups.
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
    _VIOLATIONS,
    _EXPLAINED_VIOLATIONS,
    violations_in(
        """(
  SELECT f.consumer_group, f.topic, f.likely_cause, f.waiting_message_count, w.waiting_count
  FROM gold_finding AS f
  LEFT JOIN (
    SELECT consumer_group, topic, likely_cause, try_cast(sum(greatest(waiting_count, waiting_count * 0)) AS BIGINT) AS waiting_count
    FROM (
      SELECT
        d.consumer_group, d.topic, d.likely_cause,
        -- A broker also says 0 where the group has not committed: it then starts at the oldest message only by its setting.
        CASE
          WHEN p.consumer_offset > 0
            THEN try_subtract(coalesce(p.broker_offset, o.max_offset), greatest(p.consumer_offset, o.min_offset))
          WHEN o.max_offset <= o.min_offset THEN 0
          WHEN p.consumer_offset IS NOT NULL AND s.setting_count = 1 AND s.setting = 'CONSUME_FROM_FIRST_OFFSET CONSUME_PASSIVELY'
            THEN try_subtract(o.max_offset, o.min_offset)
        END AS waiting_count
      FROM gold_ownership_drift AS d
      LEFT JOIN silver_consume_progress AS p USING (consumer_group, topic, broker_name, queue_id)
      LEFT JOIN silver_queue_offset AS o USING (topic, broker_name, queue_id)
      LEFT JOIN (
        SELECT consumer_group, max(setting) AS setting, count(DISTINCT setting) AS setting_count
        FROM (
          SELECT consumer_group, concat_ws(' ', coalesce(consume_from_where, '?'), coalesce(consume_type, '?')) AS setting
          FROM silver_group_presence
          WHERE state = 'online'
        )
        GROUP BY consumer_group
      ) AS s USING (consumer_group)
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
  SELECT
    consumer_group, topic, state, likely_cause, sum(queue_count) AS queue_count, sum(reported_count) AS reported_count,
    max(kind) AS kind, max(client_count) AS client_count, max(client_total_count) AS client_total_count,
    max(member_count) AS member_count, size(array_distinct(flatten(collect_list(owners)))) AS owner_count,
    to_json(struct({first_texts("collect_set(queue)")} AS queues, {first_texts("collect_set(expected_reason)")} AS reasons)) AS lists,
    max(lists) AS reported_lists
  FROM (
    SELECT
      consumer_group, topic, state, likely_cause, 1 AS queue_count, 0 AS reported_count, CAST(NULL AS STRING) AS kind,
      CAST(NULL AS INT) AS client_count, CAST(NULL AS INT) AS client_total_count, client_count AS member_count,
      observed_client_ids AS owners, concat(broker_name, '/', CAST(queue_id AS STRING)) AS queue, expected_reason,
      CAST(NULL AS STRING) AS lists
    FROM gold_ownership_drift
    WHERE state IN {quoted_list(DRIFT_FINDING_KINDS)} AND NOT likely_cause <=> 'group_offline'
    UNION ALL
    SELECT
      consumer_group, topic, CASE {_KIND_OF_STATE} END, likely_cause, 0, queue_count, kind, client_count, client_total_count,
      CAST(NULL AS INT), CAST(NULL AS ARRAY<STRING>), CAST(NULL AS STRING), CAST(NULL AS STRING),
      to_json(struct(examples AS queues, seen_values AS reasons))
    FROM gold_finding
    WHERE CASE {_KIND_OF_STATE} END IS NOT NULL
  )
  GROUP BY consumer_group, topic, state, likely_cause
)""",
        [
            Violation(
                DRIFT_REPORTED,
                "NOT queue_count <=> reported_count",
                "concat('group ', consumer_group, ', topic ', topic, ': ', queue_count, ' queues are ', state, ' (', "
                "coalesce(likely_cause, 'no cause'), '), in findings: ', coalesce(reported_count, 0))",
            ),
            Violation(
                DRIFT_REPORTED,
                "kind IS NOT NULL AND NOT (client_count <=> IF(kind = 'unowned', NULL, owner_count) "
                "AND client_total_count <=> member_count)",
                "concat('group ', consumer_group, ', topic ', topic, ': finding ', kind, ' has ', "
                f"{text_or_null('client_count')}, ' of ', {text_or_null('client_total_count')}, ' clients, drift has ', "
                f"IF(kind = 'unowned', 'null', CAST(owner_count AS STRING)), ' of ', {text_or_null('member_count')})",
            ),
            Violation(
                DRIFT_REPORTED,
                "kind IS NOT NULL AND reported_lists <> lists",
                "concat('group ', consumer_group, ', topic ', topic, ': ', kind, ' lists ', reported_lists, ', drift has ', lists)",
            ),
        ],
        ("consumer_group", "topic"),
    ),
    violations_in(
        """(
  SELECT topic, kind, max(is_there) AS is_there, max(is_reported) AS is_reported
  FROM (
    SELECT topic, kind, TRUE AS is_there, FALSE AS is_reported
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
                DIVERGENCE_REPORTED,
                "is_there <> is_reported",
                "concat('topic ', topic, ': ', kind, IF(is_reported, ' has a finding but no evidence', ' has no finding'))",
            )
        ],
        ("topic",),
    ),
    violations_in(
        f"""(
  SELECT
    consumer_group, topic, sum(queue_count) AS queue_count, sum(reported_count) AS reported_count,
    {first_texts("collect_set(queue)")} AS queues, max(examples) AS examples
  FROM (
    SELECT
      consumer_group, topic, 1 AS queue_count, 0 AS reported_count, concat(broker_name, '/', CAST(queue_id AS STRING)) AS queue,
      CAST(NULL AS STRING) AS examples
    FROM silver_queue_order_lock AS held
    JOIN silver_consume_progress AS progress USING (consumer_group, topic, broker_name, queue_id)
    WHERE held.redelivery_count >= 1 AND NOT progress.consumer_offset > held.head_offset
      AND try_subtract(progress.broker_offset, held.last_offset) > 1
      AND {USERS_GROUP}
    UNION ALL
    SELECT consumer_group, topic, 0, queue_count, CAST(NULL AS STRING), array_join(examples, ', ')
    FROM gold_finding
    WHERE kind = 'order_queue_blocked'
  )
  GROUP BY consumer_group, topic
)""",
        [
            Violation(
                ORDER_BLOCK_REPORTED,
                "NOT queue_count <=> reported_count",
                "concat('group ', consumer_group, ', topic ', topic, ': ', queue_count, ' queues are blocked, in findings: ', "
                "coalesce(reported_count, 0))",
            ),
            Violation(
                ORDER_BLOCK_REPORTED,
                "NOT examples <=> array_join(queues, ', ')",
                "concat('group ', consumer_group, ', topic ', topic, ': blocked are ', array_join(queues, ', '), ', the finding has ', "
                "coalesce(examples, 'none'))",
            ),
        ],
        ("consumer_group", "topic"),
    ),
)
"""Violations of each finding, and of the drift and divergence that findings report."""

ABSENCE_QUERY: Final = f"""
SELECT
  concat({quoted(f"{FINDING.name}.no_")}, kind) AS expectation_id, 1D AS amount,
  concat({_SUBJECT}, ': ', coalesce(evidence, 'null')) AS example,
  {subject_columns(("consumer_group", "topic", "broker_name"))}
FROM gold_finding
WHERE kind IN {quoted_list(FINDING_KINDS)}"""
"""Every finding, as a violation of the expectation that its kind is absent."""
