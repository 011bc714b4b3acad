-- One row per group x client of a day: what the client carries over all topics of its group, by the strategies in effect.
-- Members that own nothing are there with 0 queues. queue_share: of all that the members of the group own, a queue once for each
-- owner; load_rank: 1 owns most, and who owns as much has the same rank. Both are null where untold_topic_count is not 0: of
-- so many topics of the group nobody can tell who owns which queue, and those queues are in no count.
-- lag_count: messages that wait in its queues; null where a broker does not tell this of each, lag_unknown_queue_count of how many.
WITH owned AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        client_id,
        count(*) AS queue_count,
        count(DISTINCT topic) AS topic_count,
        sum(broker_offset - consumer_offset) FILTER (consumer_offset >= 0) AS lag_count,
        count(*) FILTER (coalesce(consumer_offset, -1) < 0 OR broker_offset IS NULL) AS lag_unknown_queue_count
    FROM queue_assignment
    LEFT JOIN consume_progress USING (cluster, ds, consumer_group, topic, broker_name, queue_id)
    WHERE is_effective AND client_id IS NOT NULL
    GROUP BY cluster, ds, consumer_group, client_id
),
members AS (
    SELECT cluster, ds, consumer_group, client_id FROM consumer_connection
    UNION
    SELECT cluster, ds, consumer_group, client_id FROM owned
),
untold AS (
    SELECT cluster, ds, consumer_group, count(DISTINCT topic) AS untold_topic_count
    FROM queue_assignment
    WHERE
        is_effective
        AND reason IN (
            'members_unknown', 'settings_missing', 'strategy_unknown', 'shared_by_pop', 'member_strategy_unknown',
            'strategy_failed'
        )
    GROUP BY cluster, ds, consumer_group
),
loads AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        client_id,
        coalesce(queue_count, 0) AS queue_count,
        coalesce(topic_count, 0) AS topic_count,
        sum(coalesce(queue_count, 0)) OVER of_group AS group_queue_count,
        rank() OVER (of_group ORDER BY coalesce(queue_count, 0) DESC) AS place,
        coalesce(untold_topic_count, 0) AS untold_topic_count,
        CASE WHEN coalesce(lag_unknown_queue_count, 0) = 0 THEN coalesce(lag_count, 0) END AS lag_count,
        coalesce(lag_unknown_queue_count, 0) AS lag_unknown_queue_count
    FROM members
    LEFT JOIN owned USING (cluster, ds, consumer_group, client_id)
    LEFT JOIN untold USING (cluster, ds, consumer_group)
    WINDOW of_group AS (PARTITION BY cluster, ds, consumer_group)
)
SELECT
    cluster,
    ds,
    consumer_group,
    client_id,
    queue_count,
    topic_count,
    CASE WHEN untold_topic_count = 0 THEN queue_count / nullif(group_queue_count, 0) END AS queue_share,
    CASE WHEN untold_topic_count = 0 THEN place END AS load_rank,
    untold_topic_count,
    lag_count::BIGINT AS lag_count,
    lag_unknown_queue_count
FROM loads
