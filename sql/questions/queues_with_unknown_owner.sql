-- Of which queues can nobody say whether they are owned as they should be, and why?
--
-- One row per group x reason of the newest published day of each cluster. Unknown is neither good nor bad news: a source
-- failed, a client could not be asked, or nobody told the ledger the parameters of a strategy.
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
