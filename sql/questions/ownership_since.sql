-- Since when has each client owned its queues?
--
-- One row per queue and owner of each cluster's newest published day, the most recent change of owner first. owned_from is the first
-- day of the unbroken run of published days; if `begins` is not `changed`, the client may have owned the queue longer:
-- is_owner_before_gap is whether it did when it was last observed.
SELECT
    cluster,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    client_id,
    owned_from,
    day_count,
    begins,
    missing_day_count,
    is_owner_before_gap
FROM ownership_history
WHERE is_latest
ORDER BY owned_from DESC, cluster, consumer_group, topic, broker_name, queue_id, client_id
