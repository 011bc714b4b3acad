-- Who owned a queue on each day, who should have, and since when?
--
-- One row per queue and published day, the newest day first. should_own: by the strategy in effect; did_own: the clients that had
-- the queue in their own process table; state and likely_cause: whether the two agree; since: the first day of the
-- unbroken run of published days with this should_own. Restrict it to one queue: --cluster, --group, --topic, --broker, --queue.
WITH published AS (
    SELECT cluster, ds, lag(ds) OVER (PARTITION BY cluster ORDER BY ds) AS published_before FROM publication
),
ownership AS (
    SELECT
        drift.*,
        published_before,
        lag(ds) OVER of_queue AS ds_before,
        lag(expected_client_ids) OVER of_queue AS expected_before
    FROM ownership_drift AS drift
    JOIN published USING (cluster, ds)
    WINDOW of_queue AS (PARTITION BY cluster, consumer_group, topic, broker_name, queue_id ORDER BY ds)
)
SELECT
    cluster,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    ds,
    strategy,
    expected_client_ids AS should_own,
    observed_client_ids AS did_own,
    max(CASE WHEN expected_client_ids IS DISTINCT FROM expected_before OR ds_before < published_before THEN ds END)
        OVER (PARTITION BY cluster, consumer_group, topic, broker_name, queue_id ORDER BY ds) AS since,
    state,
    likely_cause,
    coalesce(unknown_reason, expected_reason) AS reason
FROM ownership
ORDER BY cluster, consumer_group, topic, broker_name, queue_id, ds DESC
