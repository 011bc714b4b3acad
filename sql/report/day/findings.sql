-- Findings that no other finding explains, the worst first
--
-- since: first day of the unbroken run of published days that have the finding; null if the group was quarantined on the published
-- day before it: whether that day had the finding is unknown. findings_below: findings that it explains.
WITH days AS (
    SELECT ds, row_number() OVER (ORDER BY ds DESC) AS age FROM publication WHERE cluster = $cluster AND ds <= $ds
),
seen AS (
    SELECT finding_id, ds, age, row_number() OVER (PARTITION BY finding_id ORDER BY ds DESC) AS appearance
    FROM finding
    JOIN days USING (ds)
    WHERE cluster = $cluster
),
runs AS (
    SELECT finding_id, min(ds) AS since, max(age) + 1 AS age_before FROM seen WHERE age = appearance GROUP BY finding_id
),
quarantined AS (
    SELECT DISTINCT consumer_group AS quarantined_group, age AS age_before
    FROM quarantined_group
    JOIN days USING (ds)
    WHERE cluster = $cluster
),
below AS (
    SELECT root_finding_id AS finding_id, count(*) AS findings_below
    FROM finding
    WHERE cluster = $cluster AND ds = $ds AND root_finding_id IS NOT NULL
    GROUP BY root_finding_id
)
SELECT
    severity,
    kind,
    consumer_group,
    topic,
    broker_name,
    client_id,
    likely_cause,
    evidence,
    advice,
    CASE WHEN quarantined_group IS NULL THEN runs.since END AS since,
    coalesce(findings_below, 0) AS findings_below
FROM finding
LEFT JOIN runs USING (finding_id)
LEFT JOIN quarantined ON finding.consumer_group = quarantined.quarantined_group AND runs.age_before = quarantined.age_before
LEFT JOIN below USING (finding_id)
WHERE cluster = $cluster AND ds = $ds AND root_finding_id IS NULL
ORDER BY
    list_position(['critical', 'warning', 'info'], severity), since DESC, kind, consumer_group, topic, broker_name, client_id,
    likely_cause
LIMIT 150
