-- One row per published day: how much there is, and how well.
SELECT
    p.cluster,
    p.ds,
    a.groups,
    a.queues,
    a.assignments,
    coalesce(f.findings, 0) AS findings,
    coalesce(f.critical, 0) AS critical,
    p.gate_verdict
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
    SELECT cluster, ds, count(*) AS findings, count(*) FILTER (severity = 'critical') AS critical
    FROM finding
    GROUP BY cluster, ds
) AS f USING (cluster, ds)
ORDER BY p.cluster, p.ds
