"""Counts of the staged assignment, recomputed in plain SQL from the staged rows.

The build assigns queues with `strategies`; this module only counts them, from `silver_*` views of the export and the judged `gold_*`
views. Belongs here: those counts, one row per group, topic and strategy. Does not belong here: the evaluation of a count
(`queue_assignment`, `assignment_fairness`).
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import TYPE_CHECKING

from expectations.suites.model import quoted
from expectations.suites.thresholds import (
    DOUBTFUL_OWNER_REASONS,
    MACHINE_ROOM_ONE_OWNER_SINCE,
    NON_ASCII_PATTERN,
    SPREAD_BOUND,
    UNKNOWN_OWNER_REASONS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from expectations.suites.model import Violation

STRATEGY_SUBJECT = "concat('group ', consumer_group, ', topic ', topic, ', strategy ', strategy)"
"""SQL that names the group, topic and strategy of a row of `judged`."""

NOT_IN_ROUTE = "queue_not_in_route"
"""The reason of a queue that a CONFIG list names and no route has. No count includes it."""

KEPT = "route_missing"
"""The reason of a queue that is in no route and that a client keeps."""

SPREAD_BOUND_OF_STRATEGY = (
    "CASE strategy "
    + " ".join(f"WHEN '{name}' THEN {bound}" for name, bound in SPREAD_BOUND.items())
    + " END"
)
"""SQL for the bound that the row's strategy guarantees; null without a guarantee."""


def _in(reasons: Iterable[str]) -> str:
    return "(" + ", ".join(f"'{reason}'" for reason in reasons) + ")"


def judged_tables(queue_violations: Iterable[Violation]) -> str:
    """Return the common tables up to `judged`: one row per (group, topic, strategy) of assignment or fairness.

    Args:
        queue_violations: Violations of one queue, over the columns of `queue`. Each becomes two columns of `judged`,
            `<rule>_count` and `<rule>_example`, so that queues are read once.

    Returns:
        `name AS (…), …` for a WITH clause.
    """
    carried = ",\n    ".join(
        f"count_if({violation.when}) AS {violation.expectation.rule}_count,\n"
        f"    min(IF({violation.when}, {violation.example}, NULL)) AS {violation.expectation.rule}_example"
        for violation in queue_violations
    )
    return f"""
-- Every further grouping is within a group and topic, so the largest table is shuffled and sorted once.
placed_row AS (
  SELECT
    *,
    coalesce(client_id = lag(client_id) OVER (
      PARTITION BY consumer_group, topic, strategy, broker_name, queue_id ORDER BY client_id
    ), FALSE) AS is_repeated
  FROM (
    SELECT /*+ REPARTITION(consumer_group, topic) */ * FROM gold_queue_assignment
    WHERE NOT reason <=> '{NOT_IN_ROUTE}'
  )
),
queue AS (
  SELECT
    consumer_group, topic, strategy, broker_name, queue_id,
    count_if(NOT is_repeated AND client_id IS NOT NULL) AS owner_count,
    count_if(is_repeated) AS repeated_row_count,
    count_if(client_id IS NULL) AS unowned_row_count,
    min(client_id) AS first_owner, max(client_id) AS last_owner,
    bool_or(reason <=> '{KEPT}') AS is_kept,
    max(IF(client_id IS NULL, reason, NULL)) AS unowned_reason,
    max(IF(client_id IS NOT NULL AND reason <> '{KEPT}', reason, NULL)) AS owner_reason,
    min(strategy_source) AS first_source, max(strategy_source) AS last_source,
    bool_or(is_effective) AS is_effective, bool_and(is_effective) AS is_always_effective
  FROM placed_row
  GROUP BY consumer_group, topic, strategy, broker_name, queue_id
),
counted AS (
  SELECT
    consumer_group, topic, strategy,
    -- Kept queues are in no route, so they are not among the assigned queues.
    count_if(NOT is_kept) AS queue_count,
    count_if(is_kept) AS kept_queue_count,
    coalesce(bit_xor(IF(is_kept, NULL, xxhash64(broker_name, queue_id))), 0L) AS queue_hash,
    sum(owner_count) AS owned_pair_count,
    count_if(owner_count = 0) AS unowned_queue_count,
    count_if(owner_count > 1) AS multiple_owner_queue_count,
    count_if(unowned_reason IN {_in(UNKNOWN_OWNER_REASONS)}) AS unknown_queue_count,
    count_if(unowned_reason IN {_in(DOUBTFUL_OWNER_REASONS)}) AS doubtful_queue_count,
    count_if(unowned_reason = 'owner_not_subscribed') AS not_subscribed_queue_count,
    min(first_source) AS first_source, max(last_source) AS last_source,
    bool_or(is_effective) AS is_effective, bool_and(is_always_effective) AS is_always_effective,
    {carried}
  FROM queue
  GROUP BY consumer_group, topic, strategy
),
load AS (
  SELECT
    consumer_group, topic, strategy,
    count(*) AS owner_client_count,
    min(queue_count) AS least_load, max(queue_count) AS most_load,
    sum(queue_count * queue_count) AS squared_load,
    collect_list(IF(is_shared, client_id, NULL)) AS owners
  FROM (
    SELECT
      consumer_group, topic, strategy, client_id,
      count(*) AS queue_count, bool_or(NOT reason <=> '{KEPT}') AS is_shared
    FROM gold_queue_assignment
    WHERE client_id IS NOT NULL AND NOT reason <=> '{NOT_IN_ROUTE}'
    GROUP BY consumer_group, topic, strategy, client_id
  )
  GROUP BY consumer_group, topic, strategy
),
-- The assignment, its clients' loads and the published fairness, joined by key.
matched AS (
  SELECT
    consumer_group, topic, strategy,
    any_value(counted, TRUE) AS counted, any_value(load, TRUE) AS load, any_value(fairness, TRUE) AS fairness
  FROM (
    SELECT consumer_group, topic, strategy, struct(*) AS counted, NULL AS load, NULL AS fairness FROM counted
    UNION ALL
    SELECT consumer_group, topic, strategy, NULL, struct(*), NULL FROM load
    UNION ALL
    SELECT consumer_group, topic, strategy, NULL, NULL, struct(*) FROM gold_assignment_fairness
  )
  GROUP BY consumer_group, topic, strategy
),
-- Brokers may list different members; a client rebalances over the list of one of them.
group_on_broker AS (
  SELECT
    consumer_group, broker_name,
    array_sort(collect_set(client_id)) AS members, count(client_id) AS connection_count,
    bool_or(is_online_clustering) AS is_online_clustering
  FROM (
    SELECT consumer_group, broker_name, client_id, FALSE AS is_online_clustering
    FROM silver_consumer_connection
    UNION ALL
    -- Proxies synchronise their client lists, so their lists count as one.
    SELECT DISTINCT consumer_group, CAST(NULL AS STRING), client_id, FALSE
    FROM silver_proxy_connection
    UNION ALL
    SELECT consumer_group, broker_name, NULL, state = 'online' AND message_model <=> 'CLUSTERING'
    FROM silver_group_presence
  )
  GROUP BY consumer_group, broker_name
),
seen_group AS (
  SELECT
    consumer_group,
    collect_set(IF(connection_count > 0, members, NULL)) AS member_lists,
    bool_or(connection_count > size(members)) AS has_duplicate_id,
    collect_set(IF(is_online_clustering, broker_name, NULL)) AS online_broker_names,
    bool_or(broker_name RLIKE {quoted(NON_ASCII_PATTERN)}) AS has_odd_broker
  FROM group_on_broker
  GROUP BY consumer_group
),
-- The release that a member reports takes precedence over the one that brokers list, as in the build.
group_client AS (
  SELECT
    consumer_group,
    bool_and(coalesce(
      client_language = 'JAVA'
      AND transform(split(client_version, '[.]'), part -> try_cast(part AS INT))
        >= array{MACHINE_ROOM_ONE_OWNER_SINCE},
      FALSE
    )) AS keeps_rooms_apart,
    min(client_language) <=> max(client_language) AS has_one_language,
    bool_or(client_id RLIKE {quoted(NON_ASCII_PATTERN)}) AS has_odd_client
  FROM (
    SELECT
      consumer_group, client_id, max(client_language) AS client_language, bool_or(is_listed) AS is_listed,
      coalesce(max(own_version), max(listed_version)) AS client_version
    FROM (
      SELECT consumer_group, client_id, client_language, NULL AS own_version, client_version AS listed_version,
        TRUE AS is_listed
      FROM silver_consumer_connection
      UNION ALL
      SELECT consumer_group, client_id, client_language, NULL, client_version, TRUE FROM silver_proxy_connection
      UNION ALL
      SELECT consumer_group, client_id, NULL, client_version, NULL, FALSE FROM silver_consumer_client
      UNION ALL
      SELECT consumer_group, client_id, NULL, client_version, NULL, FALSE FROM silver_client_process
    )
    GROUP BY consumer_group, client_id
  )
  WHERE is_listed
  GROUP BY consumer_group
),
-- Name servers may differ; the queues of a topic must be those of one of them.
topic_queues AS (
  SELECT
    topic,
    collect_set(struct(queue_count, queue_hash)) AS queue_sets,
    min(queue_count) AS fewest_routed_queues, max(queue_count) AS most_routed_queues,
    flatten(collect_set(broker_names)) AS routed_broker_names
  FROM (
    SELECT
      topic, nameserver,
      count(queue_id) AS queue_count,
      coalesce(bit_xor(IF(queue_id IS NULL, NULL, xxhash64(broker_name, queue_id))), 0L) AS queue_hash,
      array_sort(collect_set(broker_name)) AS broker_names
    FROM silver_topic_route
    LATERAL VIEW OUTER explode(
      IF(subscribe_queue_count > 0, sequence(0, subscribe_queue_count - 1), array())
    ) AS queue_id
    WHERE is_in_route
    GROUP BY topic, nameserver
  )
  GROUP BY topic
),
-- Clients that report their subscriptions; a member that could not be queried is not among them.
subscriber AS (
  SELECT consumer_group, topic, collect_set(client_id) AS subscriber_ids
  FROM silver_client_subscription
  GROUP BY consumer_group, topic
),
reporting_client AS (
  SELECT consumer_group, collect_set(client_id) AS reporting_ids
  FROM silver_client_subscription
  GROUP BY consumer_group
),
joined AS (
  SELECT
    consumer_group, topic, strategy,
    counted.* EXCEPT (consumer_group, topic, strategy),
    load.* EXCEPT (consumer_group, topic, strategy),
    fairness,
    fairness.client_count AS client_count,
    has_duplicate_id, keeps_rooms_apart, has_one_language,
    -- Clients in Go and C++ sort by byte, which is Java's order for ASCII.
    has_one_language OR NOT (has_odd_client OR has_odd_broker) AS has_one_order,
    has_member_parameters IS NOT NULL AS has_member_parameters,
    transform(member_lists, members -> size(members)) AS client_counts,
    -- Per list: the members that report a subscription to the topic, and those that do not report other ones only.
    transform(member_lists, members -> struct(
      size(array_intersect(members, coalesce(subscriber_ids, array()))) AS least_count,
      size(array_except(members, array_except(coalesce(reporting_ids, array()), coalesce(subscriber_ids, array())))) AS most_count
    )) AS subscribed_counts,
    array_except(load.owners, coalesce(flatten(member_lists), array())) AS foreign_clients,
    arrays_overlap(online_broker_names, routed_broker_names) AS is_online_clustering,
    queue_sets, fewest_routed_queues, most_routed_queues,
    {SPREAD_BOUND_OF_STRATEGY} AS promised_bound,
    coalesce(counted.kept_queue_count, 0) > 0 AS is_kept,
    -- Kept queues are divided between no clients: every value per client is null.
    IF(counted.kept_queue_count > 0, NULL, fairness.client_count) AS sharing_client_count,
    counted IS NOT NULL AS is_assigned,
    strategy = min(strategy) OVER of_topic AS is_first_strategy,
    count_if(counted.is_effective) OVER of_topic AS effective_strategy_count,
    min(counted.queue_count) OVER of_topic AS least_queue_count,
    max(counted.queue_count) OVER of_topic AS most_queue_count,
    min(counted.queue_hash) OVER of_topic <> max(counted.queue_hash) OVER of_topic AS is_uneven_queue_set
  FROM matched
  LEFT JOIN seen_group USING (consumer_group)
  LEFT JOIN group_client USING (consumer_group)
  LEFT JOIN (SELECT consumer_group, TRUE AS has_member_parameters FROM configured_rule WHERE has_member_parameters)
    USING (consumer_group)
  LEFT JOIN topic_queues USING (topic)
  LEFT JOIN subscriber USING (consumer_group, topic)
  LEFT JOIN reporting_client USING (consumer_group)
  WINDOW of_topic AS (PARTITION BY consumer_group, topic)
),
judged AS (
  SELECT
    *,
    fairness.group_state = 'unknown'
      OR coalesce(unknown_queue_count > 0, FALSE) AS is_unknown,
    -- A part is known, or nothing is shared: a count may be set or null.
    NOT is_assigned OR doubtful_queue_count > 0 AS is_doubtful,
    coalesce(has_duplicate_id, FALSE) OR is_kept
      OR coalesce(not_subscribed_queue_count, 0) > 0 OR coalesce(unknown_queue_count, 0) > 0
      OR has_member_parameters AS is_spread_excused,
    IF(sharing_client_count > 0, coalesce(most_load, 0), NULL) AS expected_most,
    IF(sharing_client_count > 0, IF(coalesce(owner_client_count, 0) < sharing_client_count, 0, least_load), NULL) AS expected_least,
    coalesce(owned_pair_count, 0) / nullif(sharing_client_count, 0) AS expected_mean,
    coalesce(most_load, 0) * nullif(sharing_client_count, 0) / nullif(owned_pair_count, 0) AS expected_most_over_mean,
    owned_pair_count * owned_pair_count / nullif(sharing_client_count * squared_load, 0) AS expected_jain,
    sharing_client_count - coalesce(owner_client_count, 0) AS expected_idle,
    IF(is_kept, NULL, coalesce(unowned_queue_count, 0)) AS expected_unowned,
    IF(is_kept, NULL, coalesce(multiple_owner_queue_count, 0)) AS expected_multiple,
    most_load - IF(owner_client_count < array_min(client_counts), 0, least_load) AS spread
  FROM joined
)"""
