-- Queues by ownership state; a queue counts once for each group that reads it
SELECT cluster, state, count(drift.state) AS queues
FROM (SELECT DISTINCT cluster FROM latest.publication)
CROSS JOIN (
    SELECT unnest(['multiple_owners', 'unowned', 'unexpected_owner', 'unknown', 'shared', 'match']) AS state
)
LEFT JOIN latest.ownership_drift AS drift USING (cluster, state)
GROUP BY cluster, state
ORDER BY cluster, state
