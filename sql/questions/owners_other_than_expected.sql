-- Which queues are held by a client that the group's strategy would not have chosen?
--
-- One row per group x topic x queue x client of the newest published day of each cluster. Only groups whose
-- members all answered, and only topics whose effective assignment could be computed: elsewhere a difference
-- would say nothing. Right after a change of members or routes differences are normal for some seconds.
WITH expected AS (
    SELECT cluster, ds, consumer_group, topic, broker_name, queue_id, client_id
    FROM latest.queue_assignment
    WHERE is_effective AND client_id IS NOT NULL
),
observed AS (
    SELECT DISTINCT cluster, ds, consumer_group, topic, broker_name, queue_id, client_id
    FROM latest.observed_owner
    WHERE is_dropped IS NOT TRUE AND NOT is_pop
),
asked AS (
    SELECT cluster, consumer_group
    FROM latest.consumer_client
    GROUP BY cluster, consumer_group
    HAVING bool_and(state = 'online')
),
difference AS (
    (SELECT 'should own it, does not' AS difference, * FROM (FROM expected EXCEPT FROM observed))
    UNION ALL
    (SELECT 'owns it, should not' AS difference, * FROM (FROM observed EXCEPT FROM expected))
)
SELECT cluster, ds, consumer_group, topic, broker_name, queue_id, client_id, difference
FROM difference
SEMI JOIN asked USING (cluster, consumer_group)
SEMI JOIN expected USING (cluster, consumer_group, topic)
ORDER BY cluster, consumer_group, topic, broker_name, queue_id, client_id
