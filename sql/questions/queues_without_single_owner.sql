-- Which queues have no owner or several owners, and why?
--
-- One row per group x topic x queue of the newest published day of each cluster. observed_owners: the clients that were
-- observed to hold it; expected_owners: those that the effective strategy assigns. Groups that are completely offline are not
-- listed: none of their queues has an owner, and `open_findings.sql` has one row for each.
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
