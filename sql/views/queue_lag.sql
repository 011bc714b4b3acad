-- One row per group x queue of a day: the messages that the group has yet to consume, by the queue's broker.
-- lag_count: messages after the group's committed offset; null where the broker has none.
-- waiting_count: messages that the broker keeps and the group has not committed. If the broker reports no committed offset of
-- the group, the queue was never read and all of its messages wait (is_never_read). Null if unknown: the broker did not answer, the
-- group keeps its offsets elsewhere (BROADCASTING, pull consumers), or it is offline.
WITH answered AS (
    SELECT DISTINCT cluster, ds, consumer_group, broker_name
    FROM export_record
    WHERE kind = 'consume_stats' AND state = 'payload'
),
-- A union and left joins, unlike a full join, read only the days and groups that a query asks for.
keys AS (
    SELECT cluster, ds, consumer_group, topic, broker_name, queue_id FROM consume_progress
    UNION
    SELECT cluster, ds, consumer_group, topic, broker_name, queue_id FROM ownership_drift
),
queues AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        topic,
        broker_name,
        queue_id,
        coalesce(progress.broker_offset, queue_offset.max_offset) AS broker_offset,
        progress.consumer_offset,
        queue_offset.min_offset,
        progress.last_consumed_at,
        coalesce(progress.consumer_offset, -1) < 0
        AND (progress.cluster IS NOT NULL OR answered.cluster IS NOT NULL)
        AND drift.group_state = 'online'
        AND drift.unknown_reason IS DISTINCT FROM 'pull_consumer_reports_no_queues'
        AND drift.unknown_reason IS DISTINCT FROM 'assigned_by_hand' AS is_never_read
    FROM keys
    LEFT JOIN consume_progress AS progress USING (cluster, ds, consumer_group, topic, broker_name, queue_id)
    LEFT JOIN ownership_drift AS drift USING (cluster, ds, consumer_group, topic, broker_name, queue_id)
    LEFT JOIN queue_offset USING (cluster, ds, topic, broker_name, queue_id)
    LEFT JOIN answered USING (cluster, ds, consumer_group, broker_name)
),
-- HUGEINT: a broker may report any 64-bit offsets. A difference beyond 64 bits is unknown.
differences AS (
    SELECT
        *,
        CASE WHEN consumer_offset >= 0 THEN broker_offset::HUGEINT - consumer_offset END AS after_committed,
        CASE
            WHEN consumer_offset >= 0 THEN broker_offset::HUGEINT - greatest(consumer_offset, coalesce(min_offset, 0))
            WHEN is_never_read THEN broker_offset::HUGEINT - min_offset
        END AS waiting
    FROM queues
)
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    broker_offset,
    consumer_offset,
    -- A committed offset beyond the broker's newest one means no message, and must not reduce a sum over queues; greatest ignores null.
    try_cast(CASE WHEN after_committed < 0 THEN 0 ELSE after_committed END AS BIGINT) AS lag_count,
    try_cast(CASE WHEN waiting < 0 THEN 0 ELSE waiting END AS BIGINT) AS waiting_count,
    coalesce(is_never_read, FALSE) AS is_never_read,
    last_consumed_at
FROM differences
