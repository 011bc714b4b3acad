-- Groups of the clients with the most queues
SELECT DISTINCT consumer_group
FROM (
    SELECT consumer_group, client_id, count(*) AS queue_count
    FROM (SELECT consumer_group, unnest(observed_client_ids) AS client_id FROM ownership_drift WHERE cluster = $cluster AND ds = $ds)
    GROUP BY consumer_group, client_id
    ORDER BY queue_count DESC, consumer_group, client_id
    LIMIT 20
)
