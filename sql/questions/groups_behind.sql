-- Which groups are behind, and where?
--
-- One row per group x topic of the newest published day of each cluster with messages left to consume, the most first.
-- queues_without_offset_count: queues where the broker has no offset of the group, whose lag is unknown.
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    sum(lag_count) AS lag_count,
    max(lag_count) AS largest_lag_of_a_queue,
    count(*) FILTER (lag_count IS NULL) AS queues_without_offset_count,
    max(last_consumed_at) AS last_consumed_at
FROM latest.queue_lag
GROUP BY cluster, ds, consumer_group, topic
HAVING sum(lag_count) > 0
ORDER BY lag_count DESC, cluster, consumer_group, topic
