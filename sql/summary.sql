-- One row per published day: numbers of groups, queues, assignments and problems.
-- The first three are 0 if the day has no assignments, and null if it has none and a source, a member or a line could not be read.
-- problems: findings that no other finding of the day explains; critical: the critical ones among them.
SELECT
    p.cluster,
    p.ds,
    coalesce(a.groups, if(u.ds IS NULL, 0, NULL)) AS groups,
    coalesce(a.queues, if(u.ds IS NULL, 0, NULL)) AS queues,
    coalesce(a.assignments, if(u.ds IS NULL, 0, NULL)) AS assignments,
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
LEFT JOIN (
    SELECT DISTINCT cluster, ds
    FROM finding
    WHERE kind IN ('source_failed', 'members_unknown', 'client_unreachable', 'record_rejected')
) AS u USING (cluster, ds)
ORDER BY p.cluster, p.ds
