-- Clients by queues over all topics of their group, the most loaded first
--
-- fair_share: 1 divided by the members of the group. lag_count: messages that wait in the client's queues.
SELECT
    consumer_group,
    client_id,
    observed_queue_count,
    expected_queue_count,
    round(queue_share, 3) AS queue_share,
    round(1 / count(*) OVER (PARTITION BY consumer_group), 3) AS fair_share,
    lag_count
FROM client_load
WHERE cluster = $cluster AND ds = $ds
QUALIFY observed_queue_count > 0
ORDER BY observed_queue_count DESC, consumer_group, client_id
LIMIT 20
