-- Which groups moved more queues than they had to, and what changed?
--
-- One row per group x topic of each cluster's newest published day that moved queues, the most needless first.
-- needless_move_count: queues that changed owner and need not have for the clients' queue counts of now; null where every member
-- reads every queue or a queue has several owners.
SELECT
    cluster,
    consumer_group,
    topic,
    strategy,
    compared_ds,
    moved_queue_count,
    least_move_count,
    moved_queue_count - least_move_count AS needless_move_count,
    added_queue_count,
    removed_queue_count,
    joined_client_count,
    left_client_count,
    changes
FROM latest.assignment_churn
WHERE is_effective AND moved_queue_count > 0
ORDER BY needless_move_count DESC NULLS LAST, moved_queue_count DESC, cluster, consumer_group, topic
