-- Groups by max over mean queues per client, the most uneven first
--
-- Topics where clients differ by at most one queue, the optimum, are not listed. spread_bound: the most by which two clients may differ by the strategy's own rule; null where the strategy has none.
SELECT
    consumer_group,
    topic,
    strategy,
    client_count,
    queue_count,
    min_queues_per_client,
    max_queues_per_client,
    round(max_over_mean, 2) AS max_over_mean,
    spread_bound,
    is_within_bound
FROM assignment_fairness
WHERE cluster = $cluster AND ds = $ds AND is_effective AND strategy <> 'BROADCASTING'
    AND max_queues_per_client - min_queues_per_client > 1
ORDER BY max_over_mean DESC, consumer_group, topic
LIMIT 20
