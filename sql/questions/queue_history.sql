-- Who owned this queue for this group on each day, who should have, and since when?
--
-- Put your own in place of the five values of `ownership`.
-- One row per published day, the newest first. should_own: by the strategy in effect; did_own: the clients that had
-- the queue in their own process table; state and likely_cause: whether that is as it should be; since: the first day of the
-- unbroken run of published days with this should_own.
WITH ownership AS (
    SELECT *, lag(expected_client_ids) OVER (ORDER BY ds) AS expected_before
    FROM ownership_drift
    WHERE cluster = 'shop-prod'
        AND consumer_group = 'order-service'
        AND topic = 'order-events'
        AND broker_name = 'hz@broker-a'
        AND queue_id = 3
)
SELECT
    ds,
    strategy,
    expected_client_ids AS should_own,
    observed_client_ids AS did_own,
    max(CASE WHEN expected_client_ids IS DISTINCT FROM expected_before THEN ds END) OVER (ORDER BY ds) AS since,
    state,
    likely_cause,
    coalesce(unknown_reason, expected_reason) AS reason
FROM ownership
ORDER BY ds DESC
