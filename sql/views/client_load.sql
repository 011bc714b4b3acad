-- One row per group x client of a day: observed and expected load of the client over all topics of its group.
-- Members are the clients that a broker or a proxy lists. Those that own nothing have 0 queues; a client that a broker reports as not
-- connected is no member.
-- observed_queue_count: queues in its own process table, null for a client that did not answer; expected_queue_count: queues that
-- the effective strategies assign to it. queue_share: share of all queues that the members of the group own, counting a queue once
-- per owner; load_rank: 1 owns most, equal loads have equal ranks. Both are null if undetermined_topic_count is not 0: the number of
-- topics of the group whose owners are unknown or whose queues several clients pop.
-- lag_count: messages that wait in its queues; null if unknown for some queue, of which lag_unknown_queue_count is the number.
WITH held AS (
    SELECT cluster, ds, consumer_group, topic, broker_name, queue_id, unnest(observed_client_ids) AS client_id
    FROM ownership_drift
),
observed AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        client_id,
        count(*) AS queue_count,
        count(DISTINCT topic) AS topic_count,
        sum(waiting_count) AS lag_count,
        count(*) FILTER (waiting_count IS NULL) AS lag_unknown_queue_count
    FROM held
    LEFT JOIN queue_lag USING (cluster, ds, consumer_group, topic, broker_name, queue_id)
    GROUP BY cluster, ds, consumer_group, client_id
),
expected AS (
    SELECT cluster, ds, consumer_group, client_id, count(*) AS queue_count
    FROM (SELECT cluster, ds, consumer_group, unnest(expected_client_ids) AS client_id FROM ownership_drift)
    GROUP BY cluster, ds, consumer_group, client_id
),
answered AS (
    SELECT cluster, ds, consumer_group, client_id FROM consumer_client WHERE state = 'online'
    UNION
    SELECT cluster, ds, consumer_group, client_id FROM client_process WHERE state = 'online'
),
members AS (
    SELECT cluster, ds, consumer_group, client_id
    FROM consumer_connection
    ANTI JOIN (SELECT * FROM consumer_client WHERE state = 'offline') AS gone
        USING (cluster, ds, consumer_group, client_id)
    UNION
    SELECT cluster, ds, consumer_group, client_id FROM proxy_connection
    UNION
    SELECT cluster, ds, consumer_group, client_id FROM observed
    UNION
    SELECT cluster, ds, consumer_group, client_id FROM answered
),
topics AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        topic,
        bool_or(ownership IN ('unknown', 'shared')) AS is_undetermined,
        bool_or(expected_owners IS NULL) AS is_expectation_unknown
    FROM queue_ownership
    GROUP BY cluster, ds, consumer_group, topic
),
undetermined AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        count(*) FILTER (is_undetermined) AS undetermined_topic_count,
        bool_or(is_expectation_unknown) AS is_expectation_unknown
    FROM topics
    GROUP BY cluster, ds, consumer_group
),
loads AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        client_id,
        CASE WHEN answered.client_id IS NOT NULL OR observed.client_id IS NOT NULL
            THEN coalesce(observed.queue_count, 0) END AS observed_queue_count,
        CASE WHEN answered.client_id IS NOT NULL OR observed.client_id IS NOT NULL
            THEN coalesce(observed.topic_count, 0) END AS observed_topic_count,
        CASE WHEN NOT coalesce(is_expectation_unknown, TRUE)
            THEN coalesce(expected.queue_count, 0) END AS expected_queue_count,
        sum(observed.queue_count) OVER of_group AS group_queue_count,
        rank() OVER (of_group ORDER BY coalesce(observed.queue_count, 0) DESC) AS place,
        coalesce(undetermined_topic_count, 0) AS undetermined_topic_count,
        CASE WHEN coalesce(lag_unknown_queue_count, 0) = 0 THEN coalesce(lag_count, 0) END AS lag_count,
        coalesce(lag_unknown_queue_count, 0) AS lag_unknown_queue_count
    FROM members
    LEFT JOIN observed USING (cluster, ds, consumer_group, client_id)
    LEFT JOIN expected USING (cluster, ds, consumer_group, client_id)
    LEFT JOIN answered USING (cluster, ds, consumer_group, client_id)
    LEFT JOIN undetermined USING (cluster, ds, consumer_group)
    WINDOW of_group AS (PARTITION BY cluster, ds, consumer_group)
)
SELECT
    cluster,
    ds,
    consumer_group,
    client_id,
    observed_queue_count,
    expected_queue_count,
    observed_topic_count,
    CASE WHEN undetermined_topic_count = 0 THEN observed_queue_count / nullif(group_queue_count, 0) END AS queue_share,
    CASE WHEN undetermined_topic_count = 0 AND observed_queue_count IS NOT NULL THEN place END AS load_rank,
    undetermined_topic_count,
    CASE WHEN observed_queue_count IS NOT NULL THEN try_cast(lag_count AS BIGINT) END AS lag_count,
    lag_unknown_queue_count
FROM loads
