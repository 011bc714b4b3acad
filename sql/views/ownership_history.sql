-- One row per queue, owner and unbroken stretch of days, by the strategy in effect: since when a client has owned a queue, and
-- until when. A day without a publication, or published without the group (quarantined_group), ends a stretch, because nobody knows
-- who owned the queue on it; so does a day on which the owners cannot be told.
-- begins: `changed` (the day before is published, and the client did not own the queue on it); `first_day` (what is known of the
-- group begins there: it may have owned it longer); `after_gap` (the day before is not published, or without the group).
-- missing_day_count: such days right before the stretch. is_owner_before_gap: whether the client owned the queue on the last
-- day before them; null without a gap.
-- is_latest: whether the stretch goes on to the newest published day of the cluster.
WITH published AS (
    SELECT
        cluster,
        ds,
        lag(ds) OVER (PARTITION BY cluster ORDER BY ds) AS ds_before,
        max(ds) OVER (PARTITION BY cluster) AS newest_ds
    FROM publication
),
-- The published days that have a group, of those groups that some day is without.
day_of_group AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        lag(ds) OVER (PARTITION BY cluster, consumer_group ORDER BY ds) AS ds_before
    FROM published
    JOIN (SELECT DISTINCT cluster, consumer_group FROM quarantined_group) AS once_left_out USING (cluster)
    ANTI JOIN quarantined_group USING (cluster, ds, consumer_group)
),
owned AS (
    SELECT
        owner.* EXCLUDE (ds_before),
        CASE WHEN day_of_group.ds IS NULL THEN owner.ds_before ELSE day_of_group.ds_before END AS ds_before,
        lag(ds) OVER (
            PARTITION BY cluster, consumer_group, topic, broker_name, queue_id, client_id ORDER BY ds
        ) AS owned_before
    FROM (
        SELECT DISTINCT cluster, ds, consumer_group, topic, broker_name, queue_id, client_id, ds_before, newest_ds
        FROM queue_assignment
        JOIN published USING (cluster, ds)
        WHERE is_effective AND client_id IS NOT NULL
    ) AS owner
    LEFT JOIN day_of_group USING (cluster, ds, consumer_group)
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
        first(ds_before ORDER BY ds) AS published_before,
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
        WHEN published_before IS NULL THEN 'first_day'
        WHEN published_before < owned_from - 1 THEN 'after_gap'
        ELSE 'changed'
    END AS begins,
    owned_from - published_before - 1 AS missing_day_count,
    CASE WHEN published_before < owned_from - 1 THEN owned_before IS NOT DISTINCT FROM published_before END
        AS is_owner_before_gap
FROM stretches
