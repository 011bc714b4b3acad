-- Which queues are held by a client that the group's strategy would not have chosen?
--
-- One row per group x topic x queue of the newest published day of each cluster, whether the chosen client holds the queue
-- too or not. Only queues of which can be told who should own them: elsewhere a difference would say nothing. Right after
-- a change of members or routes differences are normal for some seconds.
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
