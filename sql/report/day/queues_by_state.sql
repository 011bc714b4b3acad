-- Queues by ownership state
--
-- One queue counts once for each group that reads it. docs/ownership-drift.md explains the states.
SELECT state, count(*) AS queue_count, count(DISTINCT consumer_group) AS group_count
FROM ownership_drift
WHERE cluster = $cluster AND ds = $ds
GROUP BY state
ORDER BY list_position(['multiple_owners', 'unowned', 'unexpected_owner', 'unknown', 'shared', 'match'], state)
