-- Broadcasting clients: state of their offset files, and the effect of a restart
--
-- skipped_messages and repeated_messages are sums over the queues for which they are known; undetermined_queue_count is the number
-- of the others. Null without a queue.
WITH effects AS (
    SELECT
        consumer_group,
        client_id,
        host,
        sum(skipped_message_count) AS skipped_messages,
        sum(repeated_message_count) AS repeated_messages,
        sum(lost_message_count) AS lost_messages,
        count(*) FILTER (skipped_message_count IS NULL) AS undetermined_queue_count
    FROM broadcast_offset
    WHERE cluster = $cluster AND ds = $ds AND restart_reason IS NOT NULL
    GROUP BY consumer_group, client_id, host
)
SELECT
    file.consumer_group,
    file.client_id,
    file.host,
    file.state,
    file.start_outcome,
    skipped_messages,
    repeated_messages,
    lost_messages,
    undetermined_queue_count,
    file.reason
FROM broadcast_offset_file AS file
LEFT JOIN effects
    ON file.consumer_group = effects.consumer_group
        AND file.client_id = effects.client_id
        AND file.host IS NOT DISTINCT FROM effects.host
WHERE file.cluster = $cluster AND file.ds = $ds
ORDER BY
    file.state = 'ok', coalesce(skipped_messages, 0) + coalesce(lost_messages, 0) DESC, file.consumer_group, file.client_id, file.host
LIMIT 100
