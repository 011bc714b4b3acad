-- Groups by the worst ownership state of their queues
WITH ranked AS (
    SELECT
        consumer_group,
        min(list_position(['multiple_owners', 'unowned', 'unexpected_owner', 'unknown', 'shared', 'match'], state)) AS rank
    FROM ownership_drift
    WHERE cluster = $cluster AND ds = $ds
    GROUP BY consumer_group
)
SELECT (['multiple_owners', 'unowned', 'unexpected_owner', 'unknown', 'shared', 'match'])[rank] AS state, count(*) AS group_count
FROM ranked
GROUP BY rank
ORDER BY rank
