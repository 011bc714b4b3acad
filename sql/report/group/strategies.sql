-- Strategies compared for the group, over all its topics
--
-- moved_queue_count: queues whose owner would change from the effective strategy's to this one's. Null: unknown, because the owners
-- of undetermined_topic_count topics by this strategy are.
SELECT
    consumer_group,
    strategy,
    is_effective,
    unowned_queue_count,
    multiple_owner_queue_count,
    idle_client_count,
    min_queues_per_client,
    max_queues_per_client,
    round(max_over_mean, 2) AS max_over_mean,
    round(jain_index, 3) AS jain_index,
    moved_queue_count,
    undetermined_topic_count
FROM strategy_comparison
WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
ORDER BY consumer_group, is_effective DESC, strategy
