-- Which queues changed hands, came or went since the published day before?
--
-- One row per group x topic x queue of each cluster with two published days, the newest two compared. Owners are those of
-- the strategy in effect. A queue whose owner was or is unknown is left out, and so is a group that one of the days was published
-- without (quarantined_group): nobody can say whether it moved.
SELECT
    cluster,
    before.ds AS ds_before,
    now.ds AS ds_now,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    CASE WHEN before.ds IS NULL THEN 'added' WHEN now.ds IS NULL THEN 'removed' ELSE 'moved' END AS change,
    before.owners AS owners_before,
    now.owners AS owners_now,
    before.strategy AS strategy_before,
    now.strategy AS strategy_now
FROM latest.queue_ownership AS now
FULL JOIN previous.queue_ownership AS before USING (cluster, consumer_group, topic, broker_name, queue_id)
ANTI JOIN (
    SELECT cluster, consumer_group FROM latest.quarantined_group
    UNION
    SELECT cluster, consumer_group FROM previous.quarantined_group
) AS left_out USING (cluster, consumer_group)
WHERE cluster IN (SELECT cluster FROM previous.publication)
    AND before.owners IS DISTINCT FROM now.owners
    AND before.ownership IS DISTINCT FROM 'unknown'
    AND now.ownership IS DISTINCT FROM 'unknown'
ORDER BY cluster, consumer_group, topic, broker_name, queue_id
