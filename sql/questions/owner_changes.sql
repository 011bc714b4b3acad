-- Which queues changed owner, appeared or disappeared since the previous published day?
--
-- One row per group x topic x queue of each cluster with two published days, the newest two compared. Owners are observed
-- owners: clients that had the queue in their own process table. Queues whose owner was not observed on either day, and groups
-- quarantined on one of the days (quarantined_group), are not listed: whether they moved is unknown.
SELECT
    cluster,
    before.ds AS ds_before,
    now.ds AS ds_now,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    CASE WHEN before.ds IS NULL THEN 'added' WHEN now.ds IS NULL THEN 'removed' ELSE 'moved' END AS change,
    before.observed_owners AS observed_owners_before,
    now.observed_owners AS observed_owners_now,
    before.strategy AS baseline_strategy,
    now.strategy AS strategy_now
FROM latest.queue_ownership AS now
FULL JOIN previous.queue_ownership AS before USING (cluster, consumer_group, topic, broker_name, queue_id)
ANTI JOIN (
    SELECT cluster, consumer_group FROM latest.quarantined_group
    UNION
    SELECT cluster, consumer_group FROM previous.quarantined_group
) AS excluded_groups USING (cluster, consumer_group)
WHERE cluster IN (SELECT cluster FROM previous.publication)
    AND before.observed_owners IS DISTINCT FROM now.observed_owners
    AND before.ownership IS DISTINCT FROM 'unknown'
    AND now.ownership IS DISTINCT FROM 'unknown'
ORDER BY cluster, consumer_group, topic, broker_name, queue_id
