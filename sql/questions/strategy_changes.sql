-- Which groups changed their strategy since the baseline day, and how many queues moved?
--
-- One row per group x topic of each cluster's newest published day. observed_moved_queue_count: the queues with a
-- different owner, of the observed_queue_count queues whose owner was observed on both days; it needs no computed owners.
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    baseline_ds,
    baseline_effective_strategy,
    strategy,
    observed_queue_count,
    observed_moved_queue_count
FROM latest.assignment_churn
WHERE is_effective
    AND baseline_effective_strategy IS NOT NULL
    AND baseline_effective_strategy <> strategy
ORDER BY observed_moved_queue_count DESC NULLS LAST, cluster, consumer_group, topic
