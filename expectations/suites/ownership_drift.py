"""Expectations for `gold.ownership_drift`: every queue once, owners as in the sources, states that follow from owners.

Belongs here: owners, states and evidence of causes, recomputed in plain SQL. Does not belong here: the expected owner of a queue,
which the suite of `queue_assignment` judges; whether a state is a problem.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.deviating_member import PARAMETERS_EXPLAIN
from expectations.suites.model import Expectation, Suite, Violation, quoted, quoted_list, violations_in
from expectations.suites.presence import PROXY_TABLES, USERS_GROUP
from expectations.suites.thresholds import (
    DOUBTFUL_OWNER_REASONS,
    DRIFT_CAUSES,
    DRIFT_FINDING_KINDS,
    DRIFT_STATES,
    DRIFT_UNKNOWN_REASONS,
    GRPC_CLIENT_ID_PATTERN,
    MACHINE_ROOM_ONE_OWNER_SINCE,
    REASONS_WITH_A_CAUSE,
    REBALANCE_GRACE_MS,
    UNKNOWN_RULE_REASONS,
)
from rebalance_ledger.tables import OWNERSHIP_DRIFT
from rebalance_ledger.tables.silver.process_owner import PROCESS_OWNER

ONE_ROW_PER_QUEUE: Final = Expectation(
    OWNERSHIP_DRIFT, "one_row_per_queue", "Every queue of a group and topic is in one row only."
)
QUEUES_ACCOUNTED: Final = Expectation(
    OWNERSHIP_DRIFT,
    "queues_accounted",
    "Every queue that queue_assignment assigns or that a client was observed to hold has a row; "
    "there are no other rows.",
    judges=(
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
    ),
)
WORDS_KNOWN: Final = Expectation(
    OWNERSHIP_DRIFT,
    "words_known",
    "State, cause and reason are from their closed lists; only a problem has a cause, and exactly "
    "the unknown states have a reason.",
    judges=(
        "state",
        "likely_cause",
        "unknown_reason",
        "deviating_client_id",
        "deviating_parameters",
    ),
)
OWNERS_EQUAL_SOURCES: Final = Expectation(
    OWNERSHIP_DRIFT,
    "owners_equal_sources",
    "The expected clients and their reason are those of queue_assignment; the observed clients are those whose "
    "process tables contain the queue, and it is being released exactly where one of them has it as dropped.",
    judges=(
        "expected_client_ids",
        "observed_client_ids",
        "is_routed",
        "strategy",
        "observed_process_count",
        "expected_reason",
        "is_being_released",
    ),
)
STATE_FOLLOWS_OWNERS: Final = Expectation(
    OWNERSHIP_DRIFT,
    "state_follows_owners",
    "Every state equals the one that plain SQL derives from the owners; a client that could not "
    "be queried makes no queue unowned.",
    judges=("state",),
)
_NUMBERS_OF_GROUP: Final = (
    "client_count",
    "unasked_client_count",
    "absent_client_count",
    "shared_client_id_count",
    "repeated_client_id_count",
    "unsubscribed_client_count",
    "member_list_count",
    "strategy_count",
    "language_count",
    "version_count",
    "newest_client_age_ms",
)
"""The columns that are the same in all rows of a group and topic and that follow from its members."""

NUMBERS_EQUAL_SOURCES: Final = Expectation(
    OWNERSHIP_DRIFT,
    "numbers_equal_sources",
    "What every row has of its group and topic equals what plain SQL computes: the state of the route; divergent brokers; and where all "
    "brokers list the same members, the numbers of members and the age of the youngest.",
    judges=("route_state", "divergent_broker_count", *_NUMBERS_OF_GROUP),
)
CAUSE_HAS_EVIDENCE: Final = Expectation(
    OWNERSHIP_DRIFT, "cause_has_evidence", "Every cause has its evidence in the silver tables."
)
CAUSE_GIVEN: Final = Expectation(
    OWNERSHIP_DRIFT,
    "cause_given",
    "Every queue that the assignment leaves without an owner for a known reason has a cause.",
)
PROCESS_ANSWERED: Final = Expectation(
    PROCESS_OWNER,
    "process_answered",
    "Every process that was observed to own a queue is one that answered.",
    judges=(
        "consumer_group",
        "client_id",
        "process",
        "client_process.consumer_group",
        "client_process.client_id",
        "client_process.process",
        "client_process.state",
    ),
)

SUITE: Final = Suite(
    "ownership_drift",
    (
        ONE_ROW_PER_QUEUE,
        QUEUES_ACCOUNTED,
        WORDS_KNOWN,
        OWNERS_EQUAL_SOURCES,
        STATE_FOLLOWS_OWNERS,
        NUMBERS_EQUAL_SOURCES,
        CAUSE_HAS_EVIDENCE,
        CAUSE_GIVEN,
        PROCESS_ANSWERED,
        PARAMETERS_EXPLAIN,
    ),
)


def _rows(columns: dict[str, str], relation: str, **given: str) -> str:
    """Return a query with all columns, null of their type by default, so that queries can be combined with UNION."""
    shown = (f"{given.get(name, f'CAST(NULL AS {kind})')} AS {name}" for name, kind in columns.items())
    return f"\n  SELECT {', '.join(shown)}\n  FROM {relation}"


_KEY = "consumer_group, topic, broker_name, queue_id"
_QUEUE = {name: name for name in _KEY.split(", ")}
_JUDGED = (
    "state",
    "likely_cause",
    "unknown_reason",
    "strategy",
    "expected_reason",
    "expected_client_ids",
    "observed_client_ids",
    "observed_process_count",
    "is_routed",
    "is_being_released",
    "deviating_client_id",
    "deviating_parameters",
)


def _suspect_rows(table: str) -> str:
    """Return SQL for the rows of a table that belong to a group with a queue that counts alone do not judge.

    The list of these groups is small, so it is broadcast and the rows are not shuffled.
    """
    return f"(SELECT /*+ BROADCAST(suspect) */ * FROM {table} LEFT SEMI JOIN suspect USING (consumer_group))"


_FACT = {
    **dict.fromkeys(_QUEUE, "STRING"),
    **dict.fromkeys(("chosen", "reason", "strategy", "holder", "process"), "STRING"),
    **dict.fromkeys(
        ("is_silent", "is_absent", "is_repeated", "is_routed", "is_dropped", "is_source", "drift"), "BOOLEAN"
    ),
}
_HOLDER = "IF(coalesce(is_dropped, FALSE), NULL, client_id)"
_POPPED = "is_pop AND NOT coalesce(is_dropped, FALSE)"
# If processes of a client answered directly, their answers replace that of the process that a broker reached.
_BY_BROKER = (
    f"(SELECT * FROM {_suspect_rows('silver_observed_owner')} "
    "LEFT ANTI JOIN (SELECT * FROM answer WHERE process_count > 0) USING (consumer_group, client_id))"
)

# A queue that is being released has a row without a holder; a pop of all queues of a broker is not a queue.
_FACTS: Final = "\n  UNION ALL".join(
    (
        _rows(
            _FACT,
            f"{_suspect_rows('gold_queue_assignment')} LEFT JOIN answer USING (consumer_group, client_id) "
            "WHERE is_effective OR strategy = 'AVG'",
            **_QUEUE,
            chosen="IF(is_effective AND NOT reason <=> 'route_missing', client_id, NULL)",
            reason="IF(is_effective, reason, NULL)",
            strategy="IF(is_effective, strategy, NULL)",
            is_silent="coalesce(state, 'unknown') = 'unknown' OR coalesce(is_puller, FALSE)",
            is_absent="state <=> 'offline'",
            is_routed="NOT coalesce(reason IN ('route_missing', 'queue_not_in_route'), FALSE)",
            is_source="TRUE",
        ),
        _rows(
            _FACT,
            f"{_BY_BROKER} LEFT JOIN repeated USING (consumer_group, client_id) WHERE NOT is_pop",
            **_QUEUE,
            holder=_HOLDER,
            is_repeated=f"{_HOLDER} IS NOT NULL AND coalesce(is_repeated, FALSE)",
            is_dropped="is_dropped",
            is_source="TRUE",
        ),
        _rows(
            _FACT,
            f"{_suspect_rows('silver_process_owner')} WHERE NOT is_pop",
            **_QUEUE,
            holder=_HOLDER,
            process="IF(coalesce(is_dropped, FALSE), NULL, process)",
            is_dropped="is_dropped",
            is_source="TRUE",
        ),
        _rows(_FACT, _suspect_rows("gold_ownership_drift"), **_QUEUE, drift=f"struct({', '.join(_JUDGED)})"),
    )
).replace("CAST(NULL AS BOOLEAN) AS drift", "NULL AS drift")

# Nearly every queue has one expected client that holds it and that the table shows. Counts alone judge such queues,
# which is ten times cheaper; only the others are examined in detail.
_NUMBERS = {
    **dict.fromkeys(_QUEUE, "STRING"),
    **dict.fromkeys(("chosen", "holder", "published", "strategy", "published_strategy"), "BIGINT"),
    "is_plain": "BOOLEAN",
}
_PLAIN_ROW = (
    "state = 'match' AND likely_cause IS NULL AND unknown_reason IS NULL AND expected_reason IS NULL AND is_routed AND NOT is_being_released "
    "AND observed_process_count = 1 AND size(expected_client_ids) = 1 AND expected_client_ids = observed_client_ids "
    "AND deviating_client_id IS NULL AND deviating_parameters IS NULL"
)
_PLAIN_QUEUE = (
    "count(chosen) = 1 AND count(holder) = 1 AND count(published) = 1 AND bool_and(is_plain) "
    "AND max(chosen) = max(holder) AND max(chosen) = max(published) AND max(strategy) = max(published_strategy)"
)
_QUEUES_IN_NUMBERS: Final = "\n  UNION ALL".join(
    (
        _rows(
            _NUMBERS,
            "gold_queue_assignment WHERE is_effective OR strategy = 'AVG'",
            **_QUEUE,
            chosen="IF(is_effective AND client_id IS NOT NULL, xxhash64(client_id), NULL)",
            strategy="IF(is_effective, xxhash64(strategy), NULL)",
            is_plain="reason IS NULL OR NOT is_effective",
        ),
        *(
            _rows(
                _NUMBERS,
                f"{table} WHERE NOT is_pop AND {USERS_GROUP}",
                **_QUEUE,
                holder="xxhash64(client_id)",
                is_plain="NOT coalesce(is_dropped, FALSE)",
            )
            for table in ("silver_observed_owner", "silver_process_owner")
        ),
        _rows(
            _NUMBERS,
            "gold_ownership_drift",
            **_QUEUE,
            published="coalesce(xxhash64(get(expected_client_ids, 0)), 0)",
            published_strategy="xxhash64(strategy)",
            is_plain=f"coalesce({_PLAIN_ROW}, FALSE)",
        ),
    )
)

_REPORTED = {
    "consumer_group": "STRING",
    **dict.fromkeys(("list", "variant", "strategy", "client_id"), "STRING"),
    **dict.fromkeys(
        (
            "is_doubled",
            "is_old",
            "is_new",
            "is_ghost",
            "is_silent",
            "is_by_hand",
            "is_grpc",
            "is_asking",
            "is_without_strategy",
        ),
        "BOOLEAN",
    ),
}
_KEEPS_ROOMS_APART = (
    "client_language = 'JAVA' AND transform(split(client_version, '[.]'), part -> try_cast(part AS INT)) "
    f">= array{MACHINE_ROOM_ONE_OWNER_SINCE}"
)

_OF_MEMBERS = _suspect_rows("silver_consumer_connection")
_REPORTED_OF_GROUPS: Final = "\n  UNION ALL".join(
    (
        _rows(
            _REPORTED,
            f"{_OF_MEMBERS} GROUP BY consumer_group, broker_name",
            consumer_group="consumer_group",
            list="array_join(array_sort(collect_list(client_id)), '\\n')",
            is_doubled="count(*) > size(collect_set(client_id))",
        ),
        _rows(
            _REPORTED,
            # The release that a member reports takes precedence over the one that brokers list, as in the build.
            "(SELECT consumer_group, client_id, max(client_language) AS client_language, "
            "coalesce(max(own_version), max(client_version)) AS client_version, max(state) AS state, "
            "bool_or(is_puller) AS is_puller, max(reported_strategy) AS reported_strategy "
            f"FROM {_OF_MEMBERS} LEFT JOIN answer USING (consumer_group, client_id) GROUP BY consumer_group, client_id)",
            consumer_group="consumer_group",
            variant="concat_ws(' ', client_language, client_version)",
            is_grpc=f"rlike(client_id, {quoted(GRPC_CLIENT_ID_PATTERN)})",
            is_old=f"NOT coalesce({_KEEPS_ROOMS_APART}, FALSE)",
            is_ghost="state <=> 'offline'",
            is_silent="coalesce(state, 'unknown') = 'unknown' OR coalesce(is_puller, FALSE)",
            is_without_strategy=f"reported_strategy IS NULL AND NOT rlike(client_id, {quoted(GRPC_CLIENT_ID_PATTERN)})",
        ),
        # Nobody can ask a member that only proxies list.
        _rows(
            _REPORTED,
            f"{_suspect_rows('silver_proxy_connection')} LEFT JOIN answer USING (consumer_group, client_id)",
            consumer_group="consumer_group",
            is_silent="coalesce(state, 'unknown') = 'unknown'",
        ),
        _rows(
            _REPORTED,
            "answer",
            consumer_group="consumer_group",
            strategy="reported_strategy",
            is_doubled="process_count > 1",
            is_new="is_new",
            is_by_hand="is_by_hand",
            is_asking="is_asking",
        ),
        _rows(
            _REPORTED,
            _suspect_rows("silver_client_subscription"),
            consumer_group="consumer_group",
            client_id="client_id",
        ),
    )
)

_REPEATED: Final = """
-- Ids that every listing broker lists more than once: several processes, or one process with dead connections.
repeated AS (
  SELECT consumer_group, client_id, TRUE AS is_repeated
  FROM (
    SELECT consumer_group, client_id, count(*) AS connection_count
    FROM silver_consumer_connection
    GROUP BY consumer_group, broker_name, client_id
    UNION ALL
    -- Proxies synchronise their client lists, so their entries count as one connection.
    SELECT consumer_group, client_id, 1 FROM silver_proxy_connection
  )
  GROUP BY consumer_group, client_id
  HAVING min(connection_count) > 1
)"""

_HIDDEN_GROUPS: Final = f"""
{PROXY_TABLES},
-- Groups without an answer of some proxy about members: such members may read any queue as well.
hidden_group AS (
  SELECT consumer_group, TRUE AS is_hidden
  FROM (SELECT DISTINCT consumer_group FROM gold_assignment_fairness WHERE group_state = 'online')
  CROSS JOIN proxies LEFT JOIN answer_of_proxy USING (consumer_group)
  WHERE is_unfound OR coalesce(answering_proxy_count, 0) < proxy_count
)"""

SHARED_VIEWS: Final[dict[str, str]] = {
    "drift_answer": f"""
SELECT
  consumer_group, client_id, bool_or(is_new) AS is_new,
  -- One id reports two strategies if its processes differ, or if it was restarted between two answers; then its rule is unknown.
  IF(count(strategy) > 0, array_join(array_sort(collect_set(strategy)), ' and '), NULL) AS reported_strategy,
  bool_or(NOT reports_queues) AS is_puller, bool_or(is_by_hand) AS is_by_hand,
  bool_or(NOT is_client_rebalance) AS is_asking, max(client_version) AS own_version,
  min(IF(started_at IS NULL, NULL, struct(
    abs(unix_millis(captured_at) - unix_millis(started_at)) AS distance_ms, unix_millis(captured_at) - unix_millis(started_at) AS age_ms
  ))).age_ms AS client_age_ms,
  count_if(is_process AND state = 'online') AS process_count,
  CASE WHEN bool_or(state = 'online') THEN 'online' WHEN bool_or(state = 'offline') THEN 'offline'
    ELSE 'unknown' END AS state
FROM (
  SELECT
    consumer_group, client_id, state, is_process, reports_queues, client_version, is_client_rebalance,
    -- A pull consumer has a strategy set but never uses it.
    IF(reports_queues AND NOT (consume_type <=> 'CONSUME_ACTIVELY' AND subscription_count <=> 0),
      coalesce(strategy, strategy_class), NULL) AS strategy,
    consume_type <=> 'CONSUME_ACTIVELY' AND subscription_count <=> 0 AS is_by_hand,
    captured_at, started_at, abs(unix_millis(captured_at) - unix_millis(started_at)) < {REBALANCE_GRACE_MS} AS is_new
  FROM (
    SELECT consumer_group, client_id, state, strategy, strategy_class, client_version, captured_at, started_at, FALSE AS is_process,
      coalesce(reports_queues, TRUE) AS reports_queues, consume_type, subscription_count, is_client_rebalance
    FROM silver_consumer_client
    UNION ALL
    SELECT consumer_group, client_id, state, strategy, strategy_class, client_version, captured_at, started_at, TRUE,
      coalesce(reports_queues, TRUE), consume_type, subscription_count, is_client_rebalance
    FROM silver_client_process
  )
)
GROUP BY consumer_group, client_id
""",
    "drift_suspect": f"""
WITH {_REPEATED.strip()},{_HIDDEN_GROUPS}
SELECT DISTINCT consumer_group
FROM (
  SELECT {_KEY} FROM ({_QUEUES_IN_NUMBERS}
  )
  GROUP BY {_KEY}
  HAVING NOT coalesce({_PLAIN_QUEUE}, FALSE)
)
-- Processes that were queried directly may differ from the broker's row that the counts use.
UNION
SELECT consumer_group FROM silver_client_process WHERE {USERS_GROUP}
UNION
SELECT consumer_group FROM repeated WHERE {USERS_GROUP}
UNION
SELECT consumer_group FROM hidden_group
""",
}
"""View name -> Spark SQL of the views that the statement reads many times; materialised first, they are computed once."""

_EXPECTED_NUMBERS: Final = ", ".join(
    f"CAST(coalesce(telling_count, 0) - coalesce(subscribed_count, 0) AS INT) AS {name}"
    if name == "unsubscribed_client_count"
    else f"CAST(expected.{name} AS {'BIGINT' if name.endswith('_ms') else 'INT'}) AS {name}"
    for name in _NUMBERS_OF_GROUP
)
# One answer on members is that of every broker: which list the build takes does not matter.
_NUMBERS_TABLES: Final = f"""
stated_numbers AS (
  SELECT
    consumer_group, topic, group_state, route_state,
    min(xxhash64(divergent_broker_count, {", ".join(_NUMBERS_OF_GROUP)})) = max(xxhash64(divergent_broker_count, {", ".join(_NUMBERS_OF_GROUP)})) AS is_same,
    max(divergent_broker_count) AS divergent_broker_count,
    {", ".join(f"max({name}) AS {name}" for name in _NUMBERS_OF_GROUP)}
  FROM gold_ownership_drift
  GROUP BY consumer_group, topic, group_state, route_state
),
member AS (
  SELECT
    consumer_group, client_id, connection_count, client_language,
    coalesce(own_version, connected_version) AS client_version, reported_strategy, client_age_ms,
    coalesce(state, 'unknown') AS state, coalesce(is_puller, FALSE) AS is_puller, coalesce(process_count, 0) AS process_count,
    rlike(client_id, {quoted(GRPC_CLIENT_ID_PATTERN)}) AND reported_strategy IS NULL AS is_grpc
  FROM (
    SELECT
      consumer_group, client_id, count(*) AS connection_count, max(client_language) AS client_language,
      max(client_version) AS connected_version
    FROM silver_consumer_connection
    GROUP BY consumer_group, client_id
  )
  LEFT JOIN answer USING (consumer_group, client_id)
),
member_list AS (
  SELECT consumer_group, count(*) AS broker_count
  FROM (
    SELECT consumer_group, broker_name, count(*) AS connection_count, sum(xxhash64(client_id) & 4294967295L) AS list
    FROM silver_consumer_connection
    GROUP BY consumer_group, broker_name
  )
  LEFT ANTI JOIN silver_proxy_connection USING (consumer_group)
  GROUP BY consumer_group
  HAVING min(connection_count) = max(connection_count) AND min(list) = max(list)
),
member_number AS (
  SELECT
    consumer_group, count(*) AS client_count, 1 AS member_list_count,
    count_if(NOT is_grpc AND (state = 'unknown' OR is_puller)) AS unasked_client_count,
    count_if(state = 'offline') AS absent_client_count,
    count_if(process_count > 1) AS shared_client_id_count,
    count_if(process_count = 0 AND connection_count > broker_count) AS repeated_client_id_count,
    size(collect_set(reported_strategy)) AS strategy_count, size(collect_set(client_language)) AS language_count,
    size(collect_set(client_version)) AS version_count,
    min(IF(client_age_ms IS NULL, NULL, struct(abs(client_age_ms) AS distance_ms, client_age_ms AS age_ms))).age_ms AS newest_client_age_ms
  FROM member JOIN member_list USING (consumer_group)
  GROUP BY consumer_group
),
telling AS (
  SELECT consumer_group, client_id, topic FROM silver_client_subscription
  LEFT SEMI JOIN (SELECT consumer_group, client_id FROM member WHERE NOT is_grpc) USING (consumer_group, client_id)
),
divergent AS (
  SELECT topic, count(DISTINCT broker_name) AS broker_count FROM gold_route_divergence WHERE is_read_affected GROUP BY topic
),
numbers AS (
  SELECT
    consumer_group, topic, group_state, route_state, is_same, divergent_broker_count, struct({", ".join(_NUMBERS_OF_GROUP)}) AS stated,
    coalesce(broker_count, 0) AS expected_divergent_broker_count,
    IF(coalesce(has_other_view, FALSE), route_state,
      CASE WHEN coalesce(nameserver_count, 0) = 0 THEN 'unknown' WHEN most_queues > 0 THEN 'known' ELSE 'none' END) AS expected_route_state,
    IF(expected.client_count IS NULL, NULL, struct({_EXPECTED_NUMBERS})) AS expected_numbers
  FROM stated_numbers
  LEFT JOIN (SELECT consumer_group, struct(*) AS expected FROM member_number) USING (consumer_group)
  LEFT JOIN (SELECT consumer_group, count(DISTINCT client_id) AS telling_count FROM telling GROUP BY consumer_group) USING (consumer_group)
  LEFT JOIN (SELECT consumer_group, topic, count(*) AS subscribed_count FROM telling GROUP BY consumer_group, topic)
    USING (consumer_group, topic)
  LEFT JOIN divergent USING (topic)
  LEFT JOIN topic_fact USING (topic)
)"""
_WRONG_NUMBERS: Final = (
    "group_state IN ('online', 'broadcasting') AND NOT stated <=> expected_numbers "
    "AND coalesce(stated.client_count, stated.unasked_client_count, stated.member_list_count) IS NOT NULL AND expected_numbers IS NOT NULL"
)

COMMON_TABLES: Final = f"""
answer AS (SELECT * FROM drift_answer),
suspect AS (SELECT * FROM drift_suspect),{_REPEATED},{_HIDDEN_GROUPS},
fact AS ({_FACTS}
),
queue AS (
  SELECT
    {_KEY},
    count(drift) AS row_count, count(is_source) > 0 AS has_source, any_value(drift, TRUE) AS drift,
    array_sort(collect_set(chosen)) AS chosen,
    collect_set(IF(is_silent, chosen, NULL)) AS silent, collect_set(IF(is_absent, chosen, NULL)) AS absent,
    array_sort(collect_set(holder)) AS holders,
    size(collect_set(IF(holder IS NULL, NULL, struct(holder, coalesce(process, ''))))) AS seen_process_count,
    coalesce(bool_or(is_repeated), FALSE) AS has_repeated_holder,
    coalesce(bool_or(is_dropped), FALSE) AS is_dropped,
    max(reason) AS reason, max(strategy) AS strategy, coalesce(bool_or(is_routed), FALSE) AS is_routed
  FROM fact
  GROUP BY {_KEY}
),
-- The members of a group and topic that hold an unexpected queue or lack an expected one.
mismatch AS (
  SELECT consumer_group, topic, collect_set(client_id) AS mismatched
  FROM queue
  LATERAL VIEW explode(array_union(array_except(chosen, holders), array_except(holders, chosen))) AS client_id
  GROUP BY consumer_group, topic
),
group_fact AS (
  SELECT
    consumer_group,
    size(collect_set(list)) AS list_count, size(collect_set(variant)) AS variant_count,
    collect_set(strategy) AS strategies, size(collect_set(client_id)) AS answering_count,
    bool_or(is_without_strategy) AS has_member_without_strategy,
    bool_or(is_doubled) AS has_doubled_id, bool_or(is_old) AS has_old_client, bool_or(is_new) AS has_new_client,
    bool_or(is_ghost) AS has_ghost, bool_or(is_silent) AS has_silent_member,
    coalesce(bool_or(is_by_hand), FALSE) AS has_member_by_hand, coalesce(bool_or(is_grpc), FALSE) AS has_grpc,
    bool_or(is_asking) AS has_asking_member
  FROM ({_REPORTED_OF_GROUPS}
  )
  GROUP BY consumer_group
),
-- Route facts of a topic: its readable queues, whether name servers differ in them, and whether any answered.
topic_fact AS (
  SELECT
    topic, max(most_queues) AS most_queues, sum(nameserver_count) AS nameserver_count,
    coalesce(bool_or(least_queues <> most_queues), FALSE)
      OR coalesce(min(IF(most_queues > 0, teller_count, NULL)) < sum(nameserver_count), FALSE) AS has_other_view
  FROM (
    SELECT topic, min(subscribe_queue_count) AS least_queues, max(subscribe_queue_count) AS most_queues,
      count(*) AS teller_count, 0 AS nameserver_count
    FROM silver_topic_route WHERE is_in_route GROUP BY topic, broker_name
    UNION ALL
    SELECT topic, NULL, NULL, NULL, count(DISTINCT nameserver)
    FROM silver_export_record
    WHERE kind = 'nameserver_route' AND (state = 'payload' OR error_code = 17)
    GROUP BY topic
  )
  GROUP BY topic
),{_NUMBERS_TABLES},
subscription_fact AS (
  SELECT consumer_group, topic, max(group_state) AS group_state, max(subscriber_count) AS subscriber_count,
    flatten(collect_list(pops)) AS pops
  FROM (
    SELECT consumer_group, topic, group_state, NULL AS subscriber_count, NULL AS pops
    FROM {_suspect_rows("gold_assignment_fairness")}
    UNION ALL
    SELECT consumer_group, topic, NULL, count(*), NULL
    FROM {_suspect_rows("silver_client_subscription")}
    GROUP BY consumer_group, topic
    UNION ALL
    SELECT consumer_group, topic, NULL, NULL, collect_set(struct(broker_name, queue_id, client_id))
    FROM (
      SELECT consumer_group, topic, broker_name, queue_id, client_id FROM {_BY_BROKER} WHERE {_POPPED}
      UNION ALL
      SELECT consumer_group, topic, broker_name, queue_id, client_id FROM silver_process_owner WHERE {_POPPED}
    )
    GROUP BY consumer_group, topic
  )
  GROUP BY consumer_group, topic
),
gathered AS (
  SELECT
    queue.*, configured_strategy, has_member_parameters, group_fact.* EXCEPT (consumer_group), topic_fact.* EXCEPT (topic),
    coalesce(group_state, 'unknown') AS group_state, subscriber_count, mismatched,
    drift.observed_process_count AS process_count,
    strategy <=> 'POP' OR coalesce(size(pops) > 0, FALSE) AS is_popped,
    sharing_degree, unobserved_reader_count, is_balancing_off,
    -- Every member of such a group reads every queue, so two holders of one queue are no problem.
    strategy <=> 'BROADCASTING' OR CASE coalesce(group_state, 'unknown') WHEN 'broadcasting' THEN TRUE WHEN 'online' THEN FALSE
      ELSE coalesce(is_reported_broadcasting, FALSE) END AS is_read_by_all,
    filter(
      coalesce(pops, array()), pop -> pop.broker_name = queue.broker_name AND pop.queue_id IN (queue.queue_id, -1)
    ) AS pops_of_queue
  FROM queue
  LEFT JOIN group_fact USING (consumer_group)
  LEFT JOIN (SELECT consumer_group, strategy AS configured_strategy, has_member_parameters FROM configured_rule)
    USING (consumer_group)
  LEFT JOIN topic_fact USING (topic)
  LEFT JOIN subscription_fact USING (consumer_group, topic)
  LEFT JOIN mismatch USING (consumer_group, topic)
  LEFT JOIN (
    SELECT consumer_group, topic, broker_name, queue_id, sharing_degree, unobserved_reader_count
    FROM gold_queue_sharing
  ) USING (consumer_group, topic, broker_name, queue_id)
  LEFT JOIN (
    SELECT broker_name, bool_or(lower(value) = 'false') AS is_balancing_off
    FROM silver_broker_setting WHERE setting = 'serverLoadBalancerEnable' GROUP BY broker_name
  ) USING (broker_name)
  LEFT JOIN (
    SELECT DISTINCT consumer_group, TRUE AS is_reported_broadcasting
    FROM (
      SELECT consumer_group, message_model FROM silver_group_presence
      UNION ALL SELECT consumer_group, message_model FROM silver_proxy_presence
      UNION ALL SELECT consumer_group, message_model FROM silver_consumer_client
      UNION ALL SELECT consumer_group, message_model FROM silver_client_process
    )
    WHERE message_model = 'BROADCASTING'
  ) USING (consumer_group)
),
-- A group whose members report no strategy, and whose settings name none.
met AS (
  SELECT
    *,
    is_routed AND strategy IS NULL AND group_state IN ('online', 'broadcasting') AS is_unreported,
    array_sort(array_distinct(concat(holders, transform(pops_of_queue, pop -> pop.client_id)))) AS clients
  FROM gathered
),
compared AS (
  SELECT
    *,
    is_unreported AND NOT has_member_by_hand AND NOT is_popped AND nameserver_count > 0 AS is_strategy_open,
    array_except(chosen, clients) AS missing,
    size(array_except(clients, chosen)) > 0 AS is_foreign,
    is_popped
      OR coalesce(nameserver_count, 0) = 0
      OR group_state = 'unknown'
      OR coalesce(reason IN {quoted_list(DOUBTFUL_OWNER_REASONS)}, FALSE)
      OR has_member_by_hand AND (strategy IS NULL OR strategy = 'BROADCASTING')
      OR is_unreported AS is_undetermined
  FROM met
),
supposed AS (
  SELECT
    *,
    CASE
      WHEN is_popped THEN CASE
        WHEN greatest(seen_process_count, size(holders)) > 1
          OR size(holders) > 0 AND size(pops_of_queue) > 0 THEN 'multiple_owners'
        WHEN size(pops_of_queue) > 0 OR coalesce(unobserved_reader_count, 0) > 0 THEN 'shared'
        -- Members on a list that the ledger did not use may not have answered, and do not count then.
        WHEN sharing_degree = 0 AND size(holders) = 0
          AND (drift.state = 'unowned' OR NOT coalesce(has_silent_member, FALSE)) THEN 'unowned'
        ELSE 'unknown' END
      WHEN is_read_by_all AND NOT is_undetermined THEN CASE
        WHEN is_foreign THEN 'unexpected_owner'
        WHEN size(chosen) = 0 OR size(array_except(array_except(missing, silent), absent)) > 0 THEN 'unowned'
        WHEN size(array_intersect(missing, silent)) > 0 THEN 'unknown'
        ELSE 'match' END
      WHEN seen_process_count > 1 AND NOT is_read_by_all THEN 'multiple_owners'
      -- Members on a list that the ledger did not use may not have answered, and do not count then.
      WHEN is_undetermined THEN IF(
        size(clients) = 0
          AND (coalesce(reason IN {quoted_list(UNKNOWN_RULE_REASONS)}, FALSE) OR is_strategy_open)
          AND (drift.state = 'unowned' OR NOT coalesce(has_silent_member, FALSE)),
        'unowned', 'unknown')
      WHEN is_foreign THEN 'unexpected_owner'
      WHEN size(array_intersect(missing, silent)) > 0 OR has_repeated_holder THEN 'unknown'
      WHEN size(clients) = 1 THEN 'match'
      ELSE 'unowned'
    END AS supposed_state
  FROM compared
),
judged AS (
  SELECT
    *,
    IF(
      coalesce(is_hidden, FALSE) AND group_state = 'online' AND supposed_state IN ('match', 'unowned'),
      'unknown', supposed_state
    ) AS state
  FROM supposed LEFT JOIN hidden_group USING (consumer_group)
)"""

_IS_NOT_LOST_BY_OWNER: Final = "(drift.state <> 'unowned' OR size(chosen) = 0)"
"""An owner that does not hold what its own rule gives it: other members' rules and subscriptions do not explain that."""

_HAS_EVIDENCE: Final[dict[str, str]] = {
    "group_offline": "group_state = 'offline'",
    "route_missing": "coalesce(most_queues, 0) = 0",
    "mixed_request_modes": "size(holders) > 0 AND size(pops_of_queue) > 0 "
    "OR (reason = 'owner_not_subscribed' AND has_grpc AND topic = concat('%RETRY%', consumer_group))",
    "duplicate_client_id": "has_doubled_id",
    "server_load_balancer_off": "coalesce(is_balancing_off, FALSE) AND coalesce(has_asking_member, FALSE)",
    "room_without_clients": "strategy = 'MACHINE_ROOM'",
    "not_in_config_list": "strategy = 'CONFIG'",
    "config_list_overlap": "strategy = 'CONFIG'",
    "queue_not_in_route": "reason = 'queue_not_in_route'",
    "subscriptions_differ": f"coalesce(subscriber_count, 0) < answering_count AND {_IS_NOT_LOST_BY_OWNER}",
    # Members that report none have the strategy of the settings.
    "mixed_strategies": "(size(strategies) > 1 OR size(strategies) = 1 AND has_member_without_strategy "
    f"AND NOT array_contains(strategies, configured_strategy)) AND {_IS_NOT_LOST_BY_OWNER}",
    "mixed_clients": f"variant_count > 1 AND {_IS_NOT_LOST_BY_OWNER}",
    "mixed_parameters": "reason = 'mixed_parameters' OR has_member_parameters",
    "old_machine_room": "strategy = 'MACHINE_ROOM' AND has_old_client",
    "member_lists_differ": "list_count > 1 OR has_ghost OR has_doubled_id",
    "route_views_differ": "has_other_view",
    "not_yet_rebalanced": "has_new_client OR drift.is_being_released",
    "parameters_differ": "strategy IN ('MACHINE_ROOM', 'CONSISTENT_HASH') AND mismatched = array(drift.deviating_client_id) "
    "AND drift.deviating_parameters IS NOT NULL AND list_count = 1 AND NOT coalesce(has_other_view, FALSE) "
    "AND NOT coalesce(has_ghost OR has_silent_member OR has_doubled_id, FALSE)",
}
"""Cause -> SQL over a row of `judged` that is true if the sources have evidence of it."""

_EVIDENCE = " ".join(f"WHEN {quoted(cause)} THEN {sql}" for cause, sql in _HAS_EVIDENCE.items())
_WRONG_STATES = quoted_list(DRIFT_FINDING_KINDS)
_SUBJECT = "concat('group ', consumer_group, ', topic ', topic, ', queue ', broker_name, '/', queue_id, ': ', {details})"
_OWNERS = (
    "'expected ', coalesce(concat('[', array_join({chosen}, ' '), ']'), 'null'), ', observed [', "
    "array_join({seen}, ' '), ']'"
)


def _example(details: str) -> str:
    return _SUBJECT.format(details=details)


VIOLATION_QUERIES: Final = (
    violations_in(
        "judged",
        (
            Violation(
                ONE_ROW_PER_QUEUE, "row_count > 1", _example("concat(row_count, ' rows')"), "row_count - 1"
            ),
            Violation(
                QUEUES_ACCOUNTED,
                "row_count = 0 OR NOT has_source",
                _example("IF(row_count = 0, 'no row', 'in no source')"),
            ),
            Violation(
                WORDS_KNOWN,
                f"row_count > 0 AND (NOT drift.state IN {quoted_list(DRIFT_STATES)}"
                f" OR NOT coalesce(drift.likely_cause, {quoted(DRIFT_CAUSES[0])}) IN {quoted_list(DRIFT_CAUSES)}"
                f" OR drift.likely_cause IS NOT NULL AND NOT drift.state IN {_WRONG_STATES}"
                " OR (drift.state = 'unknown') <> (drift.unknown_reason IS NOT NULL)"
                f" OR NOT coalesce(drift.unknown_reason, {quoted(DRIFT_UNKNOWN_REASONS[0])}) "
                f"IN {quoted_list(DRIFT_UNKNOWN_REASONS)}"
                " OR drift.likely_cause <=> 'parameters_differ' <> (drift.deviating_client_id IS NOT NULL)"
                " OR (drift.deviating_client_id IS NULL) <> (drift.deviating_parameters IS NULL))",
                _example(
                    "concat_ws(', ', drift.state, coalesce(drift.likely_cause, 'no cause'), "
                    "coalesce(drift.unknown_reason, 'no reason'))"
                ),
            ),
            Violation(
                OWNERS_EQUAL_SOURCES,
                "row_count > 0 AND has_source AND ("
                "NOT drift.expected_client_ids <=> IF(is_undetermined, NULL, chosen)"
                " OR NOT drift.observed_client_ids <=> clients"
                " OR NOT drift.is_routed <=> is_routed OR NOT drift.strategy <=> strategy"
                " OR NOT drift.expected_reason <=> reason OR NOT drift.is_being_released <=> is_dropped"
                " OR NOT is_popped AND process_count <> seen_process_count)",
                _example(
                    f"concat({_OWNERS.format(chosen='drift.expected_client_ids', seen='drift.observed_client_ids')}, "
                    f"' by ', process_count, ' processes; sources: ', "
                    f"{_OWNERS.format(chosen='IF(is_undetermined, NULL, chosen)', seen='clients')}, "
                    "IF(drift.expected_reason <=> reason, '', concat(', ', coalesce(reason, 'no reason'))), "
                    "IF(drift.is_being_released <=> is_dropped, '', IF(is_dropped, ', dropped', ', not dropped')))"
                ),
            ),
            Violation(
                STATE_FOLLOWS_OWNERS,
                "row_count > 0 AND has_source AND NOT drift.state <=> state",
                _example(
                    f"concat(drift.state, ' where ', state, ' follows from ', {_OWNERS.format(chosen='chosen', seen='clients')})"
                ),
            ),
            Violation(
                CAUSE_HAS_EVIDENCE,
                f"has_source AND NOT coalesce(CASE drift.likely_cause {_EVIDENCE} ELSE TRUE END, FALSE)",
                _example("drift.likely_cause"),
            ),
            Violation(
                CAUSE_GIVEN,
                f"drift.state = 'unowned' AND NOT is_undetermined AND reason IN {quoted_list(REASONS_WITH_A_CAUSE)} "
                "AND drift.likely_cause IS NULL",
                _example("concat(reason, ', and no cause')"),
            ),
        ),
        ("consumer_group", "topic", "broker_name"),
    ),
    violations_in(
        "numbers",
        [
            Violation(
                NUMBERS_EQUAL_SOURCES,
                "NOT is_same OR divergent_broker_count <> expected_divergent_broker_count "
                # Of a topic that the group does not subscribe to nothing is known but what clients hold.
                "AND NOT (group_state = 'unknown' AND divergent_broker_count = 0) "
                f"OR group_state <> 'unknown' AND NOT route_state <=> expected_route_state OR {_WRONG_NUMBERS}",
                "concat('group ', consumer_group, ', topic ', topic, IF(is_same, '', ', rows that differ'), "
                "', route ', coalesce(route_state, 'null'), ', ', coalesce(divergent_broker_count, 0), ' divergent brokers, ', to_json(stated), "
                "'; the sources give ', expected_route_state, ', ', expected_divergent_broker_count, ' and ', "
                "coalesce(to_json(expected_numbers), 'no numbers'))",
            )
        ],
        ("consumer_group", "topic"),
    ),
    violations_in(
        """(
  SELECT DISTINCT consumer_group, client_id, process FROM silver_process_owner
  LEFT ANTI JOIN (SELECT * FROM silver_client_process WHERE state = 'online') USING (consumer_group, client_id, process)
)""",
        [
            Violation(
                PROCESS_ANSWERED,
                "TRUE",
                "concat('group ', consumer_group, ', client ', client_id, ', process ', process)",
            )
        ],
        ("consumer_group",),
    ),
)
"""Violations of each queue and of each process."""
