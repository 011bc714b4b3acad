-- Which queues have no owner, or more than one, and why?
--
-- One row per group x topic x queue of the newest published day of each cluster. Groups that are offline as a
-- whole are left out: all of their queues have no owner, which `what_is_unwell.sql` says in one row.
SELECT cluster, ds, consumer_group, topic, broker_name, queue_id, strategy, ownership, owners, processes_per_owner, reason
FROM latest.queue_ownership
WHERE ownership IN ('unowned', 'multi_owned')
    AND reason IS DISTINCT FROM 'group_offline'
ORDER BY cluster, consumer_group, topic, broker_name, queue_id
