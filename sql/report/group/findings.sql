-- Findings of the group, the worst first
--
-- explained_by: kind of the finding that explains this one. root_kind: kind of the finding at the root of that explanation;
-- is_root_of_group: whether that one is of the same group. since: first day of the unbroken run of published days that have it; null if
-- the group was quarantined on the published day before it: whether that day had the finding is unknown.
WITH days AS (
    SELECT ds, row_number() OVER (ORDER BY ds DESC) AS age FROM publication WHERE cluster = $cluster AND ds <= $ds
),
seen AS (
    SELECT finding_id, ds, age, row_number() OVER (PARTITION BY finding_id ORDER BY ds DESC) AS appearance
    FROM finding
    JOIN days USING (ds)
    WHERE cluster = $cluster AND consumer_group IN ($groups)
),
runs AS (
    SELECT finding_id, min(ds) AS since, max(age) + 1 AS age_before, count(*) AS day_count
    FROM seen
    WHERE age = appearance
    GROUP BY finding_id
),
quarantined AS (
    SELECT DISTINCT consumer_group AS quarantined_group, age AS age_before
    FROM quarantined_group
    JOIN days USING (ds)
    WHERE cluster = $cluster AND consumer_group IN ($groups)
)
SELECT
    f.consumer_group,
    f.severity,
    f.kind,
    f.topic,
    f.broker_name,
    f.client_id,
    f.likely_cause,
    f.evidence,
    f.advice,
    CASE WHEN quarantined_group IS NULL THEN runs.since END AS since,
    CASE WHEN quarantined_group IS NULL THEN day_count END AS day_count,
    parent.kind AS explained_by,
    root.kind AS root_kind,
    root.consumer_group IS NOT DISTINCT FROM f.consumer_group AS is_root_of_group,
    f.page
FROM finding AS f
LEFT JOIN runs USING (finding_id)
LEFT JOIN quarantined ON f.consumer_group = quarantined.quarantined_group AND runs.age_before = quarantined.age_before
LEFT JOIN (SELECT finding_id, kind FROM finding WHERE cluster = $cluster AND ds = $ds) AS parent
    ON f.parent_finding_id = parent.finding_id
LEFT JOIN (SELECT finding_id, kind, consumer_group FROM finding WHERE cluster = $cluster AND ds = $ds) AS root
    ON f.root_finding_id = root.finding_id
WHERE f.cluster = $cluster AND f.ds = $ds AND f.consumer_group IN ($groups)
QUALIFY row_number() OVER (
    PARTITION BY f.consumer_group
    ORDER BY
        f.root_finding_id IS NOT NULL, list_position(['critical', 'warning', 'info'], f.severity), f.kind, f.topic, f.broker_name,
        f.client_id, f.likely_cause
) <= 60
ORDER BY
    f.consumer_group, f.root_finding_id IS NOT NULL, list_position(['critical', 'warning', 'info'], f.severity), f.kind, f.topic, f.broker_name,
    f.client_id, f.likely_cause
