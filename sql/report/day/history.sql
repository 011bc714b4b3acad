-- Findings by group and day, over the last 60 published days
--
-- The 40 groups with most days with a critical finding. A day without the group in the ledger has no row. is_quarantined: the day is
-- published without the group, so its findings are unknown.
WITH days AS (
    SELECT ds FROM publication WHERE cluster = $cluster AND ds <= $ds ORDER BY ds DESC LIMIT 60
),
present AS (
    SELECT DISTINCT consumer_group, ds, false AS is_quarantined
    FROM assignment_fairness
    SEMI JOIN days USING (ds)
    WHERE cluster = $cluster
    UNION
    SELECT DISTINCT consumer_group, ds, true AS is_quarantined
    FROM quarantined_group
    SEMI JOIN days USING (ds)
    WHERE cluster = $cluster
),
counted AS (
    SELECT
        consumer_group,
        ds,
        count(*) FILTER (severity = 'critical') AS critical_count,
        count(*) FILTER (severity = 'warning') AS warning_count,
        count(*) FILTER (severity = 'info') AS info_count
    FROM finding
    SEMI JOIN days USING (ds)
    WHERE cluster = $cluster AND root_finding_id IS NULL AND consumer_group IS NOT NULL
    GROUP BY consumer_group, ds
),
cells AS (
    SELECT
        consumer_group,
        ds,
        is_quarantined,
        CASE WHEN NOT is_quarantined THEN coalesce(critical_count, 0) END AS critical_count,
        CASE WHEN NOT is_quarantined THEN coalesce(warning_count, 0) END AS warning_count,
        CASE WHEN NOT is_quarantined THEN coalesce(info_count, 0) END AS info_count
    FROM present
    LEFT JOIN counted USING (consumer_group, ds)
),
groups AS (
    SELECT consumer_group
    FROM cells
    GROUP BY consumer_group
    ORDER BY
        count(*) FILTER (critical_count > 0) DESC, count(*) FILTER (warning_count > 0) DESC,
        count(*) FILTER (info_count > 0) DESC, consumer_group
    LIMIT 40
)
SELECT * FROM cells SEMI JOIN groups USING (consumer_group) ORDER BY consumer_group, ds
