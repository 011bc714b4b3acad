-- Which findings have the same root finding, and through which chain of explanation?
--
-- One row per finding of the newest published day of each cluster, grouped by the root that explains it; the worst roots first.
-- level: 0 for the root, 1 for findings that it explains directly, 2 for findings below those. parent_kind: kind of the finding
-- that explains this one directly.
WITH RECURSIVE placed AS (
    SELECT *, 0 AS level, severity AS root_severity, finding_id AS root_id, CAST(NULL AS VARCHAR) AS parent_kind
    FROM latest.finding
    WHERE parent_finding_id IS NULL
    UNION ALL
    SELECT f.*, p.level + 1, p.root_severity, p.root_id, p.kind
    FROM latest.finding AS f
    JOIN placed AS p ON f.cluster = p.cluster AND f.ds = p.ds AND f.parent_finding_id = p.finding_id
)

SELECT
    cluster,
    ds,
    root_severity,
    root_id,
    level,
    kind,
    parent_kind,
    consumer_group,
    topic,
    broker_name,
    client_id,
    likely_cause,
    evidence
FROM placed
ORDER BY
    list_position(['critical', 'warning', 'info'], root_severity),
    cluster,
    root_id,
    level,
    kind,
    consumer_group,
    topic,
    broker_name,
    client_id,
    likely_cause
