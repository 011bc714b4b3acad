-- Findings by severity, with those that are new and resolved since the baseline day
--
-- finding_count: root findings of the day. new_count: those of them that the baseline day does not have. resolved_count: root findings
-- of the baseline day that this day does not have, by the severity that they had. Null without a baseline day. Findings of groups that
-- are quarantined on one of the days are neither new nor resolved: whether that day has them is unknown.
WITH day AS (
    SELECT ds, baseline_ds FROM publication WHERE cluster = $cluster AND ds = $ds
),
now AS (
    SELECT * FROM finding WHERE cluster = $cluster AND ds = $ds
),
baseline AS (
    SELECT * FROM finding WHERE cluster = $cluster AND ds = (SELECT baseline_ds FROM day)
),
quarantined AS (
    SELECT DISTINCT consumer_group
    FROM quarantined_group
    WHERE cluster = $cluster AND ds IN (SELECT unnest([ds, baseline_ds]) FROM day)
),
counted AS (
    SELECT
        severity,
        count(*) AS finding_count,
        count(*) FILTER (
            finding_id NOT IN (SELECT finding_id FROM baseline WHERE finding_id IS NOT NULL)
            AND coalesce(consumer_group NOT IN (SELECT consumer_group FROM quarantined), TRUE)
        ) AS new_count
    FROM now
    WHERE root_finding_id IS NULL
    GROUP BY severity
),
resolved AS (
    SELECT severity, count(*) AS resolved_count
    FROM baseline
    WHERE root_finding_id IS NULL
        AND finding_id NOT IN (SELECT finding_id FROM now WHERE finding_id IS NOT NULL)
        AND coalesce(consumer_group NOT IN (SELECT consumer_group FROM quarantined), TRUE)
    GROUP BY severity
)
SELECT
    severity,
    coalesce(finding_count, 0) AS finding_count,
    CASE WHEN baseline_ds IS NOT NULL THEN coalesce(new_count, 0) END AS new_count,
    CASE WHEN baseline_ds IS NOT NULL THEN coalesce(resolved_count, 0) END AS resolved_count
FROM (VALUES ('critical'), ('warning'), ('info')) AS severities (severity)
CROSS JOIN day
LEFT JOIN counted USING (severity)
LEFT JOIN resolved USING (severity)
ORDER BY list_position(['critical', 'warning', 'info'], severity)
