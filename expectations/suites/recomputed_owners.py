"""Queue owners, recomputed in plain SQL from silver: by each strategy, by broadcasting and by reports.

Belongs here: owners by even shares, rooms and lists, readers of broadcasting groups, which strategy is in effect and why, whether a
reason for a missing owner can be true, and how many connections and reports the members have. Does not belong here: rings and mixed
groups (`recomputed_rings`), counts (`recomputed`), and the code of `strategies`, which this module must not use.

Source of the rules: `AllocateMessageQueueAveragely`, `AllocateMessageQueueAveragelyByCircle`, `AllocateMessageQueueByConfig` and
`AllocateMachineRoomNearby` (Java, the same from 4.1.0 to 5.5.0), `AllocateMessageQueueByMachineRoom` (Java before and from 4.8.0),
`AllocateByConfig`, `AllocateByMachineRoom` and `AllocateByMachineNearby` (Go: as Java, as Java before 4.8.0, and as AVG),
`RebalanceImpl.rebalanceByTopic` (broadcasting members read every queue; both lists are sorted before they are divided).
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.configured_rule import RULE_PARAMETERS
from expectations.suites.model import (
    Expectation,
    Suite,
    Violation,
    quoted,
    quoted_list,
    text_or_null,
    violations_in,
)
from expectations.suites.recomputed import KEPT, NOT_IN_ROUTE, STRATEGY_SUBJECT
from expectations.suites.thresholds import (
    GRPC_CLIENT_ID_PATTERN,
    KNOWN_RELEASE_PATTERN,
    NON_ASCII_PATTERN,
    OWNER_REASONS,
    REASONS_OF_RULES,
    REASONS_WITHOUT_SHARES,
    RELEASE_OF_ROOMS_PATTERN,
    ROOM_AND_BROKER_PATTERN,
    STRATEGIES_OF_REASON,
    STRATEGIES_THAT_LEAVE_NOTHING_OUT,
)
from rebalance_ledger.tables import ASSIGNMENT_FAIRNESS, QUEUE_ASSIGNMENT

_REASONS_IN_ANY_STATE: Final = (KEPT, NOT_IN_ROUTE, "strategy_failed")

OWNERS_RECOMPUTED: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "owners_recomputed",
    "Every queue has the owner that plain SQL computes from one broker's member list, for every "
    "RocketMQ strategy, effective or not, and for mixed groups.",
    judges=("client_id", "queue_id"),
)
EVERY_MEMBER_READS: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "every_member_reads",
    "In a broadcasting group, every member on one broker's list that subscribes to the topic has "
    "all of its queues.",
)
STRATEGIES_COMPLETE: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "strategies_complete",
    "Every strategy that is computed for all groups has rows for every group and topic with "
    "queues, except broadcasting groups.",
    judges=("strategy",),
)
STRATEGY_FOLLOWS_REPORTS: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "strategy_follows_reports",
    "The effective strategy is the one that the members report: MIXED if they report several, "
    "none if no member reports one and the settings name none; a configured strategy equals the "
    "settings.",
    judges=("strategy_source", "is_effective"),
)
REASON_TRUE: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "reason_true",
    "Every reason is from the closed list, is possible for its strategy, and silver shows its condition; every queue of an "
    "offline or unknown group has the reason that says so.",
    judges=("reason",),
)
CONNECTIONS_COUNTED: Final = Expectation(
    QUEUE_ASSIGNMENT,
    "connections_counted",
    "Every owner has as many connections as its client id has on the list of one broker, and no other row has a number.",
    judges=("client_connection_count",),
)
REPORTS_COUNTED: Final = Expectation(
    ASSIGNMENT_FAIRNESS,
    "reports_counted",
    "The members that report a strategy are as many as on the list of one broker subscribe to the topic and report one; 0 if the "
    "group is offline, and null if its members are unknown.",
    judges=("reporting_client_count",),
)

SUITE: Final = Suite(
    "assignment_owners",
    (
        OWNERS_RECOMPUTED,
        EVERY_MEMBER_READS,
        STRATEGIES_COMPLETE,
        STRATEGY_FOLLOWS_REPORTS,
        REASON_TRUE,
        CONNECTIONS_COUNTED,
        REPORTS_COUNTED,
    ),
)

_EVEN: Final = ("AVG", "AVG_BY_CIRCLE")
_ROOM: Final = "MACHINE_ROOM"
_NEARBY: Final = "MACHINE_ROOM_NEARBY"
_LISTED: Final = "CONFIG"
HASH: Final = "CONSISTENT_HASH"
_RETRY: Final = "%RETRY%"

_ROOM_AND_BROKER_IN_GO: Final = r"\A[^@]*@[^@]*\z"
"""`room@broker` as Go splits it, which keeps empty parts."""


def room_of(rule: str, name: str) -> str:
    """Return SQL of the machine room of a name by a `RoomRule`; null if the rule does not determine it."""
    # Among prefixes of one name the longest sorts last, so array_max selects it.
    prefix = f"array_max(filter(map_keys({rule}.prefixes), prefix -> startswith({name}, prefix)))"
    return (
        f"nullif(CASE WHEN {rule}.names IS NOT NULL THEN try_element_at({rule}.names, {name}) "
        f"WHEN {rule}.prefixes IS NOT NULL THEN try_element_at({rule}.prefixes, {prefix}) "
        f"WHEN contains({name}, {rule}.separator) THEN substring_index({name}, {rule}.separator, 1) END, '')"
    )


def _is_inside(rule: str) -> str:
    """Return a SQL boolean: MACHINE_ROOM serves the broker's room."""
    return (
        f"queue.broker_name RLIKE {quoted(ROOM_AND_BROKER_PATTERN)} "
        f"AND array_contains({rule}consumer_idcs, substring_index(queue.broker_name, '@', 1))"
    )


_NO_SLOTS: Final = "filter(slots, slot -> FALSE)"


def _divisions(rule: str, queues: str, is_nearby: str) -> str:
    """Return SQL for queues and their clients: a room's queues are divided between its clients, those of a room without clients between all."""
    queue_room, client_room = (
        room_of(f"{rule}broker_room", "queue.broker_name"),
        room_of(f"{rule}consumer_room", "slot.client_id"),
    )
    return f"""CASE
        WHEN strategy = '{_ROOM}' THEN array(
          struct(filter({queues}, queue -> {_is_inside(rule)}) AS queues, slots),
          struct(filter({queues}, queue -> NOT ({_is_inside(rule)})) AS queues, {_NO_SLOTS} AS slots))
        WHEN {is_nearby} AND (
          exists({queues}, queue -> {queue_room} IS NULL) OR exists(slots, slot -> {client_room} IS NULL)
        ) THEN array(struct({queues} AS queues, {_NO_SLOTS} AS slots))
        WHEN {is_nearby} THEN transform(array_distinct(transform({queues}, queue -> {queue_room})), room -> struct(
          filter({queues}, queue -> {queue_room} = room) AS queues,
          IF(exists(slots, slot -> {client_room} = room), filter(slots, slot -> {client_room} = room), slots) AS slots))
        ELSE array(struct({queues} AS queues, slots))
      END"""


# Of n queues and c slots, by AVG the first n % c slots take n div c + 1 queues in a row, and the others n div c. By MACHINE_ROOM each
# takes n div c in a row, and the first n % c one more from the end.
_N: Final = "size(division.queues)"
_C: Final = "greatest(size(division.slots), 1)"
# A duplicate client id takes the share of its first slot only.
_OWNER: Final = (
    "IF(placed.slot > 0 AND get(division.slots, placed.slot - 1).client_id = get(division.slots, placed.slot).client_id, "
    "NULL, get(division.slots, placed.slot).client_id)"
)


def _held(
    rule: str = "", queues: str = "queues", method: str = "method", is_nearby: str = f"strategy = '{_NEARBY}'"
) -> str:
    """Return SQL for the owner of each queue by one rule for all clients in `slots`: array<struct<queue, owner>>."""
    slot = (
        f"CASE {method} WHEN 'AVG' THEN IF(place < ({_N} % {_C}) * ({_N} div {_C} + 1), place div ({_N} div {_C} + 1), "
        f"(place - {_N} % {_C}) div greatest({_N} div {_C}, 1)) "
        f"WHEN '{_ROOM}' THEN IF(place < {_N} - {_N} % {_C}, place div greatest({_N} div {_C}, 1), place - {_N} + {_N} % {_C}) "
        f"ELSE place % {_C} END"
    )
    return f"""flatten(transform({_divisions(rule, queues, is_nearby)}, division ->
        transform(transform(
          division.queues, (queue, place) -> struct(queue, CAST({slot} AS INT) AS slot)),
          placed -> struct(placed.queue AS queue, {_OWNER} AS owner))))"""


_SLOT_IDS: Final = "transform(slots, slot -> slot.client_id)"
_RUN: Final = "(size(inside) div size(slots))"
_IS_INSIDE_IN_GO: Final = (
    f"queue.broker_name RLIKE {quoted(_ROOM_AND_BROKER_IN_GO)} "
    "AND array_contains(class.rule.consumer_idcs, substring_index(queue.broker_name, '@', 1))"
)
# Java before 4.8.0 and Go: a run of all queues, as long as a share of the rooms' queues, and one of those that remain.
_OF_WHOLE_LIST: Final = f"""flatten(transform(array(filter(all_queues, queue -> IF(class.is_go, {_IS_INSIDE_IN_GO}, {_is_inside("class.rule.")}))), inside ->
          flatten(transform(filter(class.ids, id -> array_contains({_SLOT_IDS}, id)), id ->
            flatten(transform(array(CAST(array_position({_SLOT_IDS}, id) AS INT) - 1), place ->
              transform(concat(
                slice(all_queues, place * {_RUN} + 1, {_RUN}),
                slice(inside, size(slots) * {_RUN} + place + 1, IF(place < size(inside) % size(slots), 1, 0))),
                queue -> struct(queue.broker_name, queue.queue_id, id AS client_id))))))))"""
_METHOD_OF_CLASS: Final = (
    f"IF(strategy = '{_NEARBY}', IF(class.is_go, 'AVG', class.rule.inner_strategy), strategy)"
)
_OF_ONE_RULE: Final = f"""transform(
          filter({_held("class.rule.", "all_queues", _METHOD_OF_CLASS, f"strategy = '{_NEARBY}' AND NOT class.is_go")},
            held -> array_contains(class.ids, held.owner)),
          held -> struct(held.queue.broker_name, held.queue.queue_id, held.owner AS client_id))"""
# Each class of members takes its part of what its rule gives to all.
_DUE_BY_CLASSES: Final = f"""filter(flatten(transform(classes, class -> IF(strategy = '{_ROOM}' AND (class.is_go OR class.is_old),
          {_OF_WHOLE_LIST},
          {_OF_ONE_RULE}))), due -> NOT array_contains(unsubscribed, due.client_id))"""


def _faults(missing: str, beside: str) -> str:
    """Return SQL for faults from the pairs of queue and client that the rows do not have, and those that they have in vain."""
    no_text = "CAST(NULL AS STRING)"
    queue = (
        "named_struct('key', encode('', 'UTF-16BE'), 'queue_id', pair.queue_id, 'client_id', {client}, "
        f"'broker_name', pair.broker_name, 'reason', {no_text})"
    )
    return (
        f"concat(transform({missing}, pair -> struct({queue.format(client=no_text)} AS queue, pair.client_id AS owner)), "
        f"transform({beside}, pair -> struct({queue.format(client='pair.client_id')} AS queue, {no_text} AS owner)))"
    )


_FAULTS_OF_CLASSES: Final = _faults(
    f"IF(arrays_overlap(reasons, array{quoted_list(REASONS_WITHOUT_SHARES)}), array(), array_except(shares, given))",
    "array_except(filter(given, pair -> array_contains(known_ids, pair.client_id)), shares)",
)
# An array of one element, so that the shares are computed once.
_FAULTS_BY_CLASSES: Final = f"flatten(transform(array({_DUE_BY_CLASSES}), shares -> {_FAULTS_OF_CLASSES}))"

# The queues that clients on a broker's list take by their own lists, and the queues assigned to them.
_OF_LISTS: Final = """flatten(transform(
        filter(lists_of_clients, part -> part.topic = topic AND exists(slots, slot -> slot.client_id = part.client_id)
          AND NOT array_contains(unsubscribed, part.client_id)),
        part -> transform(part.queue_ids, queue_id -> struct(part.broker_name, queue_id, part.client_id))))"""
_LISTED_FAULTS: Final = _faults(
    f"filter(array_except({_OF_LISTS}, given), due -> is_effective "
    "OR exists(queues, queue -> queue.broker_name = due.broker_name AND queue.queue_id = due.queue_id))",
    f"array_except(given, {_OF_LISTS})",
)
_IS_WRONG: Final = f"""CASE
        WHEN held.queue.client_id IS NOT NULL
          THEN NOT held.queue.client_id <=> held.owner OR array_contains(unsubscribed, held.queue.client_id)
        WHEN held.owner IS NULL THEN FALSE
        WHEN held.queue.reason <=> 'owner_not_subscribed'
          THEN NOT (array_contains(unsubscribed, held.owner) OR is_plain_retry AND held.owner RLIKE {quoted(GRPC_CLIENT_ID_PATTERN)})
        ELSE strategy_source = 'hypothetical' OR NOT coalesce(held.queue.reason IN {quoted_list(REASONS_OF_RULES)}, FALSE)
      END"""

COMMON_TABLES: Final = f"""
-- The queues of a group, topic and strategy in the order in which clients divide them: Java compares UTF-16 code units.
assigned AS (
  SELECT
    consumer_group, topic, strategy, max(strategy_source) AS strategy_source, bool_or(is_effective) AS is_effective,
    array_sort(collect_list(IF(
      strategy IN {quoted_list((*_EVEN, _ROOM, _NEARBY))} AND is_routed OR strategy = '{_LISTED}' AND is_on_list,
      struct(encode(broker_name, 'UTF-16BE') AS key, queue_id, client_id, broker_name, reason), NULL
    ))) AS queues,
    collect_set(IF(strategy = 'BROADCASTING' AND is_routed, client_id, NULL)) AS readers,
    size(collect_set(IF(strategy = 'BROADCASTING' AND is_routed, concat(queue_id, '/', broker_name), NULL))) AS read_queue_count,
    count_if(is_routed AND client_id IS NOT NULL) AS owned_count,
    collect_set(reason) AS reasons, bool_or(is_routed) AS is_routed,
    collect_set(IF(client_connection_count IS NULL AND (client_id IS NULL OR reason <=> '{KEPT}'), NULL,
      struct(client_id, client_connection_count))) AS connection_counts
  FROM (
    SELECT
      *, NOT coalesce(reason IN ('{KEPT}', '{NOT_IN_ROUTE}'), FALSE) AS is_routed, NOT reason <=> '{KEPT}' AS is_on_list
    FROM gold_queue_assignment
  )
  GROUP BY consumer_group, topic, strategy
),
listed_member AS (
  SELECT consumer_group, broker_name, client_id FROM silver_consumer_connection
  UNION ALL
  -- Proxies synchronise their client lists, so their lists count as one.
  SELECT DISTINCT consumer_group, CAST(NULL AS STRING), client_id FROM silver_proxy_connection
),
connection_of_member AS (
  SELECT consumer_group, collect_set(struct(client_id, client_connection_count)) AS listed_counts
  FROM (
    SELECT consumer_group, broker_name, client_id, CAST(count(*) AS INT) AS client_connection_count
    FROM listed_member
    GROUP BY consumer_group, broker_name, client_id
  )
  GROUP BY consumer_group
),
list_of_members AS (
  SELECT
    consumer_group, collect_set(slots) AS lists, bool_or(size(array_distinct(slots)) < size(slots)) AS has_repeated_id,
    max(is_odd) AS is_odd
  FROM (
    SELECT
      consumer_group, broker_name, array_sort(collect_list(struct(encode(client_id, 'UTF-16BE') AS key, client_id))) AS slots,
      bool_or(client_id RLIKE {quoted(NON_ASCII_PATTERN)} OR broker_name RLIKE {quoted(NON_ASCII_PATTERN)}) AS is_odd
    FROM listed_member
    GROUP BY consumer_group, broker_name
  )
  GROUP BY consumer_group
),
-- Properties of each member that a broker or proxy lists.
listed_client AS (
  SELECT consumer_group, client_id, max(client_language) AS client_language, max(client_version) AS listed_version
  FROM (
    SELECT consumer_group, client_id, client_language, client_version FROM silver_consumer_connection
    UNION ALL
    SELECT consumer_group, client_id, client_language, client_version FROM silver_proxy_connection
  )
  GROUP BY consumer_group, client_id
),
-- What the members of a group have in common, and what they report.
reported_of_group AS (
  SELECT
    consumer_group, count(*) AS member_count, count(reported_strategy) AS reported_count, collect_set(reported_strategy) AS reported_strategies,
    count(DISTINCT client_language, coalesce(own_version, listed_version)) > 1
      OR bool_or(client_language IS NULL OR coalesce(own_version, listed_version) IS NULL) AS may_be_mixed,
    NOT coalesce(bool_and(client_language = 'JAVA'), FALSE) AS has_other_language,
    NOT coalesce(bool_and(client_language IN ('JAVA', 'GO')), FALSE) AS has_language_without_lists, bool_or(process_count > 1) AS has_processes,
    NOT coalesce(bool_and(coalesce(own_version, listed_version) RLIKE {quoted(RELEASE_OF_ROOMS_PATTERN)}), FALSE) AS has_old_rooms
  FROM listed_client
  LEFT JOIN drift_answer USING (consumer_group, client_id)
  GROUP BY consumer_group
),
-- The members of a group with settings whose rule is known, by what their rules differ in.
own_rule AS (
  SELECT
    *,
    filter(classes, class -> own_strategy = '{_ROOM}'
      OR own_strategy = '{_NEARBY}' AND (class.is_go OR class.rule.inner_strategy IN {quoted_list(_EVEN)})) AS even_classes,
    filter(classes, class -> own_strategy = '{HASH}'
      OR own_strategy = '{_NEARBY}' AND NOT class.is_go AND class.rule.inner_strategy = '{HASH}') AS ring_classes
  FROM (
    SELECT consumer_group, max(strategy) AS own_strategy, collect_list(class) AS classes
    FROM (
      SELECT
        consumer_group, strategy,
        struct(collect_set(client_id) AS ids, is_go, is_old, any_value(rule) AS rule) AS class
      FROM (
        SELECT
          consumer_group, client_id, strategy, client_language = 'GO' AS is_go,
          strategy = '{_ROOM}' AND client_language = 'JAVA' AND NOT client_version RLIKE {quoted(RELEASE_OF_ROOMS_PATTERN)} AS is_old,
          coalesce(get(filter(members, member -> member.client_id = client.client_id), 0).rule, struct({RULE_PARAMETERS})) AS rule
        FROM (
          SELECT
            consumer_group, client_id,
            coalesce(client_language, IF(reported_strategy IS NULL, NULL, 'JAVA')) AS client_language,
            coalesce(own_version, listed_version) AS client_version
          FROM listed_client LEFT JOIN drift_answer USING (consumer_group, client_id)
        ) AS client
        JOIN configured_rule USING (consumer_group)
        WHERE client_language = 'GO'
          OR client_language = 'JAVA' AND coalesce(client_version RLIKE {quoted(KNOWN_RELEASE_PATTERN)}, strategy <> '{_ROOM}')
      )
      -- Go counts a room that is listed twice twice.
      WHERE NOT (is_go AND strategy = '{_ROOM}' AND size(array_distinct(rule.consumer_idcs)) < size(rule.consumer_idcs))
      GROUP BY consumer_group, strategy, is_go, is_old, to_json(rule)
    )
    GROUP BY consumer_group
  )
),
reported_strategy AS (
  SELECT
    consumer_group, collect_set(reported_strategy) AS reported,
    collect_set(IF(reported_strategy IS NULL, NULL, client_id)) AS reporting_ids
  FROM drift_answer
  GROUP BY consumer_group
),
subscriber_of_topic AS (
  SELECT consumer_group, topic, collect_set(client_id) AS subscribers FROM silver_client_subscription GROUP BY consumer_group, topic
),
subscriber_of_group AS (
  SELECT consumer_group, collect_set(client_id) AS known FROM silver_client_subscription GROUP BY consumer_group
),
of_every_group AS (
  SELECT collect_set(strategy) AS usual_strategies FROM gold_assignment_fairness WHERE strategy_source = 'hypothetical'
),
explained_assignment AS (
  SELECT
    assigned.*, group_state, coalesce(lists, array()) AS lists, coalesce(has_repeated_id, FALSE) AS has_repeated_id,
    coalesce(may_be_mixed, TRUE) AS may_be_mixed, coalesce(reported, array()) AS reported, coalesce(reported_strategies, array()) AS reported_strategies,
    array_sort(array_except(connection_counts, coalesce(listed_counts, array()))) AS wrong_connection_counts,
    configured_strategy, coalesce(group_rule.has_member_parameters, FALSE) AS has_member_parameters,
    consumer_idcs, broker_room, consumer_room, lists_of_clients,
    IF(strategy = '{_NEARBY}', inner_strategy, strategy) AS method,
    CASE
      WHEN strategy IN {quoted_list(_EVEN)} THEN TRUE
      WHEN rule_strategy IS NULL THEN FALSE
      WHEN strategy_source = 'hypothetical' THEN TRUE
      WHEN strategy = '{_LISTED}' THEN NOT coalesce(has_language_without_lists, TRUE)
      ELSE NOT coalesce(has_other_language OR group_rule.has_member_parameters OR strategy = '{_ROOM}' AND has_old_rooms, TRUE)
    END AND (strategy <> '{_NEARBY}' OR inner_strategy IN {quoted_list(_EVEN)}) AS has_known_rule,
    filter(queues, queue -> queue.client_id IS NOT NULL) AS given_queues,
    array_sort(array_distinct(transform(queues, queue -> struct(queue.key AS key, queue.queue_id AS queue_id, queue.broker_name AS broker_name)))) AS all_queues,
    own_strategy <=> strategy AND strategy_source <> 'hypothetical' AND size(even_classes) > 0 AS has_classes,
    even_classes AS classes, flatten(transform(even_classes, class -> class.ids)) AS known_ids,
    size(lists) = 1 AND reported_count = member_count AND NOT has_processes AS is_all_reported,
    -- Clients in Go and C++ sort by byte, which is Java's order for ASCII.
    coalesce(is_odd AND has_other_language AND (is_effective OR strategy_source <> 'hypothetical'), FALSE) AS has_other_order,
    topic = concat('{_RETRY}', consumer_group) AS is_plain_retry,
    array_except(coalesce(known, array()), coalesce(subscribers, array())) AS unsubscribed,
    max(IF(is_effective, strategy, NULL)) OVER of_topic AS effective_strategy,
    strategy = min(strategy) OVER of_topic AS is_first_strategy,
    bool_or(is_routed) OVER of_topic AS is_topic_routed,
    array_except(usual_strategies, collect_set(strategy) OVER of_topic) AS missing_strategies
  FROM assigned
  LEFT JOIN (SELECT consumer_group, topic, strategy, group_state FROM gold_assignment_fairness)
    USING (consumer_group, topic, strategy)
  LEFT JOIN list_of_members USING (consumer_group)
  LEFT JOIN reported_of_group USING (consumer_group)
  LEFT JOIN reported_strategy USING (consumer_group)
  LEFT JOIN own_rule USING (consumer_group)
  LEFT JOIN connection_of_member USING (consumer_group)
  LEFT JOIN subscriber_of_topic USING (consumer_group, topic)
  LEFT JOIN subscriber_of_group USING (consumer_group)
  LEFT JOIN (
    SELECT consumer_group, strategy AS configured_strategy, has_member_parameters FROM configured_rule
  ) AS group_rule USING (consumer_group)
  LEFT JOIN (
    SELECT
      consumer_group AS rule_group, strategy AS rule_strategy, consumer_idcs, inner_strategy, broker_room, consumer_room, lists_of_clients
    FROM configured_rule
  ) ON rule_strategy = strategy AND rule_group <=> IF(strategy_source = 'hypothetical', NULL, consumer_group)
  CROSS JOIN of_every_group
  WINDOW of_topic AS (PARTITION BY consumer_group, topic)
),
held_against_lists AS (
  SELECT
    * EXCEPT (given),
    IF(group_state = 'online' AND size(queues) > 0 AND (has_known_rule OR has_classes) AND NOT has_other_order, transform(lists, slots -> CASE
      WHEN strategy = '{_LISTED}' THEN
        IF(strategy_source <> 'hypothetical' AND arrays_overlap(reasons, array{quoted_list(REASONS_OF_RULES)}),
          array(), {_LISTED_FAULTS})
      WHEN has_known_rule THEN filter({_held()}, held -> {_IS_WRONG})
      ELSE {_FAULTS_BY_CLASSES}
    END), array()) AS faults_by_list
  FROM (
    SELECT
      * EXCEPT (given_queues),
      transform(given_queues, queue -> struct(queue.broker_name, queue.queue_id, queue.client_id)) AS given
    FROM explained_assignment
  )
),
judged_owners AS (
  SELECT
    *,
    -- The list that explains the rows best; the first of several equal ones.
    array_min(transform(faults_by_list, (faults, place) -> struct(size(faults) AS fault_count, place))) AS best
  FROM held_against_lists
),
counted_reports AS (
  SELECT
    consumer_group, topic, group_state, reporting_client_count,
    transform(lists, slots -> size(array_except(
      array_intersect(transform(slots, slot -> slot.client_id), coalesce(reporting_ids, array())),
      array_except(coalesce(known, array()), coalesce(subscribers, array()))))) AS expected_counts
  FROM (SELECT DISTINCT consumer_group, topic, group_state, reporting_client_count FROM gold_assignment_fairness)
  LEFT JOIN list_of_members USING (consumer_group)
  LEFT JOIN reported_strategy USING (consumer_group)
  LEFT JOIN subscriber_of_topic USING (consumer_group, topic)
  LEFT JOIN subscriber_of_group USING (consumer_group)
)"""

_FIRST_FAULT: Final = "get(get(faults_by_list, best.place), 0)"
_MISSING_READERS: Final = (
    "array_except(transform(slots, slot -> slot.client_id), array_union(readers, unsubscribed))"
)
# A broadcasting member reads the topics to which it subscribes.
_HAS_LIST_WITHOUT_READER: Final = "coalesce(exists(lists, slots -> forall(slots, slot -> array_contains(unsubscribed, slot.client_id))), FALSE)"
_HAS_REPORTED: Final = "group_state = 'online' AND is_first_strategy AND is_topic_routed"
_TOPIC: Final = "concat('group ', consumer_group, ', topic ', topic, ': effective strategy ', coalesce(effective_strategy, 'none')"

VIOLATIONS: Final = (
    Violation(
        OWNERS_RECOMPUTED,
        "best.fault_count > 0",
        f"concat({STRATEGY_SUBJECT}, ': queue ', {_FIRST_FAULT}.queue.broker_name, '/', {_FIRST_FAULT}.queue.queue_id, ' is given to ', "
        f"coalesce({_FIRST_FAULT}.queue.client_id, 'no client'), ', expected ', coalesce({_FIRST_FAULT}.owner, 'no client'), "
        "IF(best.fault_count > 1, concat(' (and ', best.fault_count - 1, ' more)'), ''))",
        "best.fault_count",
    ),
    Violation(
        EVERY_MEMBER_READS,
        "strategy = 'BROADCASTING' AND read_queue_count > 0 AND size(lists) > 0 AND ("
        f"NOT exists(lists, slots -> size({_MISSING_READERS}) = 0) OR owned_count <> size(readers) * read_queue_count "
        "OR arrays_overlap(readers, unsubscribed))",
        f"concat({STRATEGY_SUBJECT}, ': ', owned_count, ' owners of ', read_queue_count, ' queues by ', size(readers), ' members')",
    ),
    Violation(
        STRATEGIES_COMPLETE,
        "is_first_strategy AND is_topic_routed AND NOT coalesce(group_state = 'broadcasting', FALSE) AND size(missing_strategies) > 0",
        "concat('group ', consumer_group, ', topic ', topic, ': without ', array_join(array_sort(missing_strategies), ' and '))",
    ),
    Violation(
        STRATEGY_FOLLOWS_REPORTS,
        f"{_HAS_REPORTED} AND is_all_reported AND NOT coalesce(effective_strategy IN (IF(size(reported_strategies) > 1, 'MIXED', get(reported_strategies, 0)), 'POP'), FALSE)",
        f"{_TOPIC}, ', and all members report ', array_join(array_sort(reported_strategies), ' and '))",
    ),
    Violation(
        STRATEGY_FOLLOWS_REPORTS,
        f"{_HAS_REPORTED} AND size(reported) = 0 AND configured_strategy IS NULL AND effective_strategy <> 'POP'",
        f"{_TOPIC}, ', and neither members nor settings give one')",
    ),
    Violation(
        STRATEGY_FOLLOWS_REPORTS,
        "strategy_source = 'configured' AND (configured_strategy IS NULL OR NOT strategy IN (configured_strategy, 'MIXED')) "
        "OR strategy_source = 'observed' AND group_state = 'online' AND is_routed "
        "AND NOT (array_contains(reported, strategy) OR strategy = 'POP' OR strategy = 'MIXED' AND size(reported) > 1)",
        f"concat({STRATEGY_SUBJECT}, ': source ', strategy_source, ', members report ', "
        "coalesce(nullif(array_join(array_sort(reported), ' and '), ''), 'none'), ', settings give ', coalesce(configured_strategy, 'none'))",
    ),
    Violation(
        CONNECTIONS_COUNTED,
        "size(wrong_connection_counts) > 0",
        f"concat({STRATEGY_SUBJECT}, ': client ', coalesce(wrong_connection_counts[0].client_id, 'null'), ' with ', "
        f"{text_or_null('wrong_connection_counts[0].client_connection_count')}, ' connections')",
        "size(wrong_connection_counts)",
    ),
    *(
        Violation(
            REASON_TRUE,
            f"array_contains(reasons, {quoted(reason)}) AND NOT strategy IN {quoted_list(strategies)}",
            f"concat({STRATEGY_SUBJECT}, ': reason {reason}')",
        )
        for reason, strategies in STRATEGIES_OF_REASON.items()
    ),
    Violation(
        REASON_TRUE,
        f"size(array_except(reasons, array{quoted_list(OWNER_REASONS)})) > 0",
        f"concat({STRATEGY_SUBJECT}, ': reason ', get(array_except(reasons, array{quoted_list(OWNER_REASONS)}), 0))",
    ),
    *(
        Violation(
            REASON_TRUE,
            f"group_state = {quoted(state)} AND size(array_except(reasons, array{quoted_list((reason, *_REASONS_IN_ANY_STATE))})) > 0",
            f"concat({STRATEGY_SUBJECT}, ': reasons ', array_join(array_sort(reasons), ' and '), ', group {state}')",
        )
        for state, reason in {"offline": "group_offline", "unknown": "members_unknown"}.items()
    ),
    Violation(
        REASON_TRUE,
        f"array_contains(reasons, 'not_assigned_by_strategy') AND strategy IN {quoted_list(STRATEGIES_THAT_LEAVE_NOTHING_OUT)} "
        f"AND NOT (strategy = 'BROADCASTING' AND {_HAS_LIST_WITHOUT_READER})",
        f"concat({STRATEGY_SUBJECT}, ': reason not_assigned_by_strategy')",
    ),
    *(
        Violation(
            REASON_TRUE,
            f"array_contains(reasons, {quoted(reason)}) AND NOT coalesce({condition}, FALSE)",
            f"concat({STRATEGY_SUBJECT}, ': reason {reason}, group ', coalesce(group_state, 'unknown'))",
        )
        for reason, condition in {
            "group_offline": "group_state = 'offline'",
            "members_unknown": "group_state = 'unknown'",
            "duplicate_client_id": "has_repeated_id",
            "mixed_clients": "may_be_mixed AND strategy_source <> 'hypothetical'",
            "mixed_parameters": "has_member_parameters AND strategy_source <> 'hypothetical'",
        }.items()
    ),
)
"""Violations per group, topic and strategy, over the columns of `judged_owners`."""

QUERIES: Final = (
    violations_in("judged_owners", VIOLATIONS, ("consumer_group", "topic")),
    violations_in(
        "counted_reports",
        (
            Violation(
                REPORTS_COUNTED,
                "CASE WHEN group_state IN ('online', 'broadcasting') "
                "THEN NOT coalesce(array_contains(expected_counts, reporting_client_count), FALSE) "
                "WHEN group_state = 'offline' THEN NOT reporting_client_count <=> 0 ELSE reporting_client_count IS NOT NULL END",
                "concat('group ', consumer_group, ', topic ', topic, ': reporting_client_count is ', "
                f"{text_or_null('reporting_client_count')}, ', the group is ', group_state, ', and of the members that one broker lists there report ', "
                "coalesce(array_join(array_sort(expected_counts), ' or '), 'none'))",
            ),
        ),
        ("consumer_group", "topic"),
    ),
)
