-- Which queues have unknown ownership, and why?
--
-- One row per group x reason of the newest published day of each cluster. Unknown is neither correct nor wrong: a source
-- failed, a client could not be queried, or the settings have no parameters for a strategy.
SELECT
    cluster,
    ds,
    consumer_group,
    unknown_reason,
    count(*) AS queue_count,
    count(DISTINCT topic) AS topic_count,
    max(unasked_client_count) AS unasked_client_count,
    any_value(strategy) AS strategy
FROM latest.ownership_drift
WHERE state = 'unknown'
GROUP BY cluster, ds, consumer_group, unknown_reason
ORDER BY queue_count DESC, cluster, consumer_group, unknown_reason
