-- What would a group gain by another strategy over all its topics, and how many queues would move once?
--
-- One row per group x other strategy of the newest published day of each cluster, the fewest moves first; an unknown
-- number is null.
SELECT
    cluster,
    effective.ds,
    consumer_group,
    effective.strategy AS strategy_in_effect,
    other.strategy AS other_strategy,
    effective.max_queues_per_client AS most_in_effect,
    other.max_queues_per_client AS most_with_other,
    effective.idle_client_count AS idle_in_effect,
    other.idle_client_count AS idle_with_other,
    other.moved_queue_count,
    other.queue_count
FROM latest.strategy_comparison AS effective
JOIN latest.strategy_comparison AS other USING (cluster, consumer_group)
WHERE effective.is_effective AND NOT other.is_effective
ORDER BY moved_queue_count NULLS LAST, cluster, consumer_group, other_strategy
