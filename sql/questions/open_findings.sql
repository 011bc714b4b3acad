-- Which problems does each cluster have, the worst first?
--
-- One row per root finding of the newest published day of each cluster: a problem that no other finding of the day explains.
-- findings_below: number of findings that it explains (findings_by_root.sql lists them). page: documentation of its kind.
WITH below AS (
    SELECT cluster, ds, root_finding_id, count(*) AS findings_below
    FROM latest.finding
    WHERE root_finding_id IS NOT NULL
    GROUP BY cluster, ds, root_finding_id
)

SELECT
    f.cluster,
    f.ds,
    f.severity,
    f.kind,
    f.consumer_group,
    f.topic,
    f.broker_name,
    f.client_id,
    f.likely_cause,
    coalesce(b.findings_below, 0) AS findings_below,
    f.evidence,
    f.advice,
    f.page,
    f.finding_id
FROM latest.finding AS f
LEFT JOIN below AS b ON f.cluster = b.cluster AND f.ds = b.ds AND f.finding_id = b.root_finding_id
WHERE f.root_finding_id IS NULL
ORDER BY
    list_position(['critical', 'warning', 'info'], f.severity),
    f.cluster,
    f.kind,
    f.consumer_group,
    f.topic,
    f.broker_name,
    f.client_id,
    f.likely_cause
