-- Owners of the group's queues over time, the newest change first
--
-- One row per queue, owner and unbroken run of days on which the client was observed to own the queue.
SELECT consumer_group, topic, broker_name, queue_id, client_id, owned_from, owned_to, day_count, begins, missing_day_count
FROM ownership_history
WHERE cluster = $cluster AND consumer_group IN ($groups) AND owned_from <= $ds
QUALIFY row_number() OVER (PARTITION BY consumer_group ORDER BY owned_from DESC, topic, broker_name, queue_id, client_id) <= 100
ORDER BY consumer_group, owned_from DESC, topic, broker_name, queue_id, client_id
