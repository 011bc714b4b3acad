-- Which groups have unconsumed messages, and in which topics?
--
-- One row per group x topic of the newest published day of each cluster with unconsumed messages, the most first.
-- waiting_count: waiting messages in queues with a committed offset (lag_count) and in queues that were never read
-- (never_read_queue_count). unknown_queue_count: queues with an unknown backlog; no sum includes them.
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    sum(waiting_count) AS waiting_count,
    sum(lag_count) AS lag_count,
    max(waiting_count) AS most_waiting_in_a_queue,
    count(*) FILTER (is_never_read) AS never_read_queue_count,
    count(*) FILTER (waiting_count IS NULL) AS unknown_queue_count,
    max(last_consumed_at) AS last_consumed_at
FROM latest.queue_lag
GROUP BY cluster, ds, consumer_group, topic
HAVING sum(waiting_count) > 0
ORDER BY waiting_count DESC, cluster, consumer_group, topic
