-- Which strategies would share a topic more evenly than the effective one?
--
-- One row per group x topic x better strategy of the newest published day of each cluster, the largest gain first.
-- Spread: maximum minus minimum queue count of a client. Queue moves by such a change are not considered.
SELECT
    cluster,
    effective.ds,
    consumer_group,
    topic,
    effective.strategy AS strategy_in_effect,
    other.strategy AS fairer_strategy,
    effective.max_queues_per_client - effective.min_queues_per_client AS spread_in_effect,
    other.max_queues_per_client - other.min_queues_per_client AS spread_with_other,
    effective.unowned_queue_count AS unowned_in_effect,
    other.unowned_queue_count AS unowned_with_other
FROM latest.assignment_fairness AS effective
JOIN latest.assignment_fairness AS other USING (cluster, consumer_group, topic)
WHERE effective.is_effective
    AND NOT other.is_effective
    AND spread_with_other < spread_in_effect
    AND other.unowned_queue_count <= effective.unowned_queue_count
ORDER BY spread_in_effect - spread_with_other DESC, cluster, consumer_group, topic, fairer_strategy
