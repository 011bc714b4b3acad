-- One row per published day: numbers of groups, queues, assignments and problems.
-- problems: findings that no other finding of the day explains; critical: the critical ones among them.
SELECT
    p.cluster,
    p.ds,
    a.groups,
    a.queues,
    a.assignments,
    coalesce(f.problems, 0) AS problems,
    coalesce(f.critical, 0) AS critical,
    p.gate_verdict AS verdict
FROM publication AS p
LEFT JOIN (
    SELECT
        cluster,
        ds,
        count(DISTINCT consumer_group) AS groups,
        count(DISTINCT (topic, broker_name, queue_id)) AS queues,
        count(*) AS assignments
    FROM queue_assignment
    GROUP BY cluster, ds
) AS a USING (cluster, ds)
LEFT JOIN (
    SELECT cluster, ds, count(*) AS problems, count(*) FILTER (severity = 'critical') AS critical
    FROM finding
    WHERE root_finding_id IS NULL
    GROUP BY cluster, ds
) AS f USING (cluster, ds)
ORDER BY p.cluster, p.ds
