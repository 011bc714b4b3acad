-- Which groups moved more queues than necessary, and what changed?
--
-- One row per group x topic of each cluster's newest published day that moved queues, the most unnecessary moves first.
-- moved_queue_count: by the effective strategies. observed_moved_queue_count: by the observed holders, known even where owners
-- cannot be computed. needless_move_count: queues that changed owner although the clients' current queue counts did not require
-- it; null if every member reads every queue or a queue has several owners.
SELECT
    cluster,
    consumer_group,
    topic,
    strategy,
    baseline_effective_strategy,
    baseline_ds,
    moved_queue_count,
    observed_moved_queue_count,
    least_move_count,
    moved_queue_count - least_move_count AS needless_move_count,
    added_queue_count,
    removed_queue_count,
    joined_client_count,
    left_client_count,
    changes
FROM latest.assignment_churn
WHERE is_effective AND (moved_queue_count > 0 OR observed_moved_queue_count > 0)
ORDER BY needless_move_count DESC NULLS LAST, moved_queue_count DESC NULLS LAST, cluster, consumer_group, topic
