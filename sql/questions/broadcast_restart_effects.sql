-- Which messages would each broadcasting client skip or repeat after a restart?
--
-- One row per client x host x topic of the newest published day of each cluster. skipped_messages and repeated_messages
-- are sums over the queues where this is known; undetermined_queue_count counts the others.
SELECT
    cluster,
    ds,
    consumer_group,
    client_id,
    host,
    topic,
    list(DISTINCT restart_reason ORDER BY restart_reason) AS restart_reasons,
    sum(skipped_message_count) AS skipped_messages,
    sum(repeated_message_count) AS repeated_messages,
    count(*) FILTER (skipped_message_count IS NULL) AS undetermined_queue_count,
    sum(lost_message_count) AS lost_messages
FROM latest.broadcast_offset
WHERE restart_reason IS NOT NULL
GROUP BY ALL
ORDER BY skipped_messages + repeated_messages DESC NULLS FIRST, cluster, consumer_group, client_id, host, topic
