-- One row per group x strategy of a day: the distribution of all topics of the group by the strategy, compared with the effective one.
-- is_effective: effective for all of these topics; topic_count: topics that it was computed for. moved_queue_count: queues whose
-- owners would differ from those of the effective strategy. Loads count a queue once per owner; members that own nothing count:
-- client_count is from the member lists that the ledger uses.
-- Unknown numbers are null: undetermined_topic_count topics have unknown owners by this strategy, and undetermined_effective_topic_count topics
-- (for moved_queue_count) by the effective one.
WITH owners AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        topic,
        broker_name,
        queue_id,
        strategy,
        bool_or(is_effective) AS is_effective,
        count(client_id) AS owner_count,
        -- Equal for equal sets of owners; lists of millions of queues would not fit into memory.
        sum(hash(client_id)) AS owners_hash,
        bool_or(coalesce(reason IN (
            'members_unknown', 'settings_missing', 'strategy_unknown', 'pop_mode', 'mixed_request_modes',
            'request_modes_differ', 'request_mode_unknown', 'server_off', 'strategy_unknown_to_broker', 'member_strategy_unknown',
            'strategy_failed', 'release_unknown'
        ), false)) AS is_undetermined
    FROM queue_assignment
    WHERE reason IS DISTINCT FROM 'queue_not_in_route'
    GROUP BY cluster, ds, consumer_group, topic, broker_name, queue_id, strategy
),
topics AS (
    SELECT
        owners.cluster,
        owners.ds,
        owners.consumer_group,
        owners.topic,
        owners.strategy,
        bool_and(owners.is_effective) AS is_effective,
        count(*) AS queue_count,
        count(*) FILTER (owners.owner_count = 0) AS unowned_queue_count,
        count(*) FILTER (owners.owner_count > 1) AS multiple_owner_queue_count,
        count(*) FILTER (
            owners.owner_count IS DISTINCT FROM effective.owner_count OR owners.owners_hash IS DISTINCT FROM effective.owners_hash
        ) AS moved_queue_count,
        bool_or(owners.is_undetermined) AS is_undetermined,
        bool_or(coalesce(effective.is_undetermined, true)) AS is_effective_undetermined
    FROM owners
    LEFT JOIN owners AS effective
        ON
            effective.is_effective
            AND owners.cluster = effective.cluster
            AND owners.ds = effective.ds
            AND owners.consumer_group = effective.consumer_group
            AND owners.topic = effective.topic
            AND owners.broker_name = effective.broker_name
            AND owners.queue_id = effective.queue_id
    GROUP BY owners.cluster, owners.ds, owners.consumer_group, owners.topic, owners.strategy
),
queues AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        strategy,
        bool_and(is_effective) AS is_effective,
        count(*) AS topic_count,
        sum(queue_count)::BIGINT AS queue_count,
        sum(unowned_queue_count)::BIGINT AS unowned_queue_count,
        sum(multiple_owner_queue_count)::BIGINT AS multiple_owner_queue_count,
        sum(moved_queue_count)::BIGINT AS moved_queue_count,
        count(*) FILTER (is_undetermined) AS undetermined_topic_count,
        count(*) FILTER (is_effective_undetermined) AS undetermined_effective_topic_count
    FROM topics
    GROUP BY cluster, ds, consumer_group, strategy
),
loads AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        strategy,
        count(*) AS owner_count,
        min(queue_count) AS least,
        max(queue_count) AS most,
        sum(queue_count) AS owned,
        sum(queue_count * queue_count) AS squared
    FROM (
        SELECT cluster, ds, consumer_group, strategy, client_id, count(*) AS queue_count
        FROM queue_assignment
        WHERE client_id IS NOT NULL
        GROUP BY cluster, ds, consumer_group, strategy, client_id
    )
    GROUP BY cluster, ds, consumer_group, strategy
),
members AS (
    SELECT cluster, ds, consumer_group, max(client_count) AS client_count
    FROM assignment_fairness
    GROUP BY cluster, ds, consumer_group
),
states AS (
    SELECT cluster, ds, consumer_group, bool_and(group_state <> 'unknown') AS is_known
    FROM assignment_fairness
    GROUP BY cluster, ds, consumer_group
),
compared AS (
    SELECT
        queues.*,
        CASE WHEN is_known THEN greatest(coalesce(client_count, 0), coalesce(owner_count, 0)) END AS client_count,
        coalesce(owner_count, 0) AS owner_count,
        least,
        coalesce(most, 0) AS most,
        coalesce(owned, 0) AS owned,
        squared,
        undetermined_topic_count = 0 AS is_determined,
        undetermined_topic_count = 0 AND is_known AND coalesce(client_count, 0) > 0 AS has_loads
    FROM queues
    LEFT JOIN loads USING (cluster, ds, consumer_group, strategy)
    LEFT JOIN members USING (cluster, ds, consumer_group)
    LEFT JOIN states USING (cluster, ds, consumer_group)
)
SELECT
    cluster,
    ds,
    consumer_group,
    strategy,
    is_effective,
    topic_count,
    queue_count,
    client_count,
    CASE WHEN has_loads THEN CASE WHEN owner_count < client_count THEN 0 ELSE least END END AS min_queues_per_client,
    CASE WHEN has_loads THEN most END AS max_queues_per_client,
    CASE WHEN has_loads THEN owned / client_count END AS mean_queues_per_client,
    CASE WHEN has_loads THEN most * client_count / nullif(owned, 0) END AS max_over_mean,
    CASE WHEN has_loads THEN owned * owned / nullif(client_count * squared, 0) END AS jain_index,
    CASE WHEN has_loads THEN greatest(client_count - owner_count, 0) END AS idle_client_count,
    CASE WHEN is_determined THEN unowned_queue_count END AS unowned_queue_count,
    CASE WHEN is_determined THEN multiple_owner_queue_count END AS multiple_owner_queue_count,
    CASE WHEN is_determined AND undetermined_effective_topic_count = 0 THEN moved_queue_count END AS moved_queue_count,
    undetermined_topic_count,
    undetermined_effective_topic_count
FROM compared
