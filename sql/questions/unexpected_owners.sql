-- Which queues are held by a client that the group's strategy does not assign them to?
--
-- One row per group x topic x queue of the newest published day of each cluster, whether or not the expected client also
-- holds the queue. Only queues with a known expected owner. Differences are normal for some seconds after a change of members
-- or routes.
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    state,
    likely_cause,
    expected_owners,
    observed_owners,
    list_filter(observed_owners, lambda client_id: NOT list_contains(expected_owners, client_id)) AS unexpected_owners
FROM latest.queue_ownership
WHERE ownership <> 'shared'
    AND expected_owners IS NOT NULL
    AND len(unexpected_owners) > 0
ORDER BY cluster, consumer_group, topic, broker_name, queue_id
