-- Who owned this queue for this group on each day, who should have, and since when?
--
-- Put your own in place of the five values of `ownership` and of `seen`.
-- One row per published day, the newest first. should_own: by the strategy in effect; did_own: the clients that had
-- the queue in their own process table (null: none that could be asked had it); since: the first day of the
-- unbroken run of published days with this should_own.
WITH ownership AS (
    SELECT ds, strategy, ownership, owners, reason, lag(owners) OVER (ORDER BY ds) AS owners_before
    FROM queue_ownership
    WHERE cluster = 'shop-prod'
        AND consumer_group = 'order-service'
        AND topic = 'order-events'
        AND broker_name = 'hz@broker-a'
        AND queue_id = 3
),
seen AS (
    SELECT ds, list(DISTINCT client_id ORDER BY client_id) AS clients
    FROM observed_owner
    WHERE cluster = 'shop-prod'
        AND consumer_group = 'order-service'
        AND topic = 'order-events'
        AND broker_name = 'hz@broker-a'
        AND queue_id = 3
        AND is_dropped IS NOT TRUE
    GROUP BY ds
)
SELECT
    ownership.ds,
    ownership.strategy,
    ownership.ownership,
    ownership.owners AS should_own,
    seen.clients AS did_own,
    max(CASE WHEN owners IS DISTINCT FROM owners_before THEN ownership.ds END) OVER (ORDER BY ownership.ds) AS since,
    ownership.reason
FROM ownership
LEFT JOIN seen ON seen.ds = ownership.ds
ORDER BY ownership.ds DESC
