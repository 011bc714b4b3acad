-- Which queues have no owner, or more than one, and why?
--
-- One row per group x topic x queue of the newest published day of each cluster. observed_owners: the clients that were seen
-- to hold it; expected_owners: those that the strategy in effect chose. Groups that are offline as a whole are not listed: none
-- of their queues has an owner, which `open_findings.sql` says in one row.
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    strategy,
    ownership,
    observed_owners,
    observed_process_count,
    expected_owners,
    likely_cause
FROM latest.queue_ownership
WHERE ownership IN ('unowned', 'multiple_owners')
    AND likely_cause IS DISTINCT FROM 'group_offline'
ORDER BY cluster, consumer_group, topic, broker_name, queue_id
