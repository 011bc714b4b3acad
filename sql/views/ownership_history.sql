-- One row per queue, owner and unbroken run of days on which the client was observed to own the queue (it had the queue in its own
-- process table). A day without a publication, or with the group quarantined (quarantined_group), ends a run, because the owner on
-- that day is unknown; so does a day on which the owner was not observed (queue_ownership: `unknown`).
-- begins: `changed` (the day before is published, and the client did not own the queue on it); `first_day` (the first known day of
-- the queue: the client may have owned it longer); `after_gap` (the day before is not published, has the group quarantined, or has
-- no observed owner). missing_day_count: such days right before the run. is_owner_before_gap: whether the client owned
-- the queue on the last day before them; null without a gap.
-- is_latest: whether the run extends to the newest published day of the cluster.
WITH published AS (
    SELECT
        cluster,
        ds,
        lag(ds) OVER (PARTITION BY cluster ORDER BY ds) AS ds_before,
        max(ds) OVER (PARTITION BY cluster) AS newest_ds
    FROM publication
),
undetermined AS (
    SELECT cluster, ds, consumer_group, topic, broker_name, queue_id
    FROM queue_ownership
    WHERE ownership = 'unknown'
),
queue_with_gap AS (
    SELECT DISTINCT cluster, consumer_group, topic, broker_name, queue_id FROM undetermined
    UNION
    SELECT DISTINCT cluster, consumer_group, topic, broker_name, queue_id
    FROM ownership_drift
    SEMI JOIN quarantined_group USING (cluster, consumer_group)
),
-- The published days with an observed owner, for queues without one on some day.
day_of_queue AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        topic,
        broker_name,
        queue_id,
        lag(ds) OVER (PARTITION BY cluster, consumer_group, topic, broker_name, queue_id ORDER BY ds) AS ds_before
    FROM published
    JOIN queue_with_gap USING (cluster)
    ANTI JOIN quarantined_group USING (cluster, ds, consumer_group)
    ANTI JOIN undetermined USING (cluster, ds, consumer_group, topic, broker_name, queue_id)
),
owned AS (
    SELECT
        owner.* EXCLUDE (ds_before),
        CASE WHEN day_of_queue.ds IS NULL THEN owner.ds_before ELSE day_of_queue.ds_before END AS ds_before,
        lag(ds) OVER (
            PARTITION BY cluster, consumer_group, topic, broker_name, queue_id, client_id ORDER BY ds
        ) AS owned_before
    FROM (
        SELECT
            cluster, ds, consumer_group, topic, broker_name, queue_id, unnest(observed_owners) AS client_id, ds_before, newest_ds
        FROM queue_ownership
        JOIN published USING (cluster, ds)
        WHERE ownership <> 'unknown'
    ) AS owner
    LEFT JOIN day_of_queue USING (cluster, ds, consumer_group, topic, broker_name, queue_id)
),
numbered AS (
    SELECT
        *,
        count(*) FILTER (owned_before IS DISTINCT FROM ds - 1) OVER (
            PARTITION BY cluster, consumer_group, topic, broker_name, queue_id, client_id ORDER BY ds
        ) AS stretch
    FROM owned
),
stretches AS (
    SELECT
        cluster,
        consumer_group,
        topic,
        broker_name,
        queue_id,
        client_id,
        min(ds) AS owned_from,
        max(ds) AS owned_to,
        count(*) AS day_count,
        first(ds_before ORDER BY ds) AS known_before,
        first(owned_before ORDER BY ds) AS owned_before,
        any_value(newest_ds) AS newest_ds
    FROM numbered
    GROUP BY cluster, consumer_group, topic, broker_name, queue_id, client_id, stretch
)
SELECT
    cluster,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    client_id,
    owned_from,
    owned_to,
    day_count,
    owned_to = newest_ds AS is_latest,
    CASE
        WHEN known_before IS NULL THEN 'first_day'
        WHEN known_before < owned_from - 1 THEN 'after_gap'
        ELSE 'changed'
    END AS begins,
    owned_from - known_before - 1 AS missing_day_count,
    CASE WHEN known_before < owned_from - 1 THEN owned_before IS NOT DISTINCT FROM known_before END
        AS is_owner_before_gap
FROM stretches
