-- Groups, the worst first
--
-- mismatch_queue_count: queues that are unowned, have several owners or an unexpected one. is_quarantined: the day is published without
-- the group, so the other columns are unknown. A group without queues, progress and findings has only group_states: `offline` if each
-- broker and proxy that was asked answered that it has no member, otherwise `unknown`.
WITH problems AS (
    SELECT
        consumer_group,
        count(*) FILTER (severity = 'critical') AS critical_count,
        count(*) FILTER (severity = 'warning') AS warning_count,
        count(*) FILTER (severity = 'info') AS info_count
    FROM finding
    WHERE cluster = $cluster AND ds = $ds AND consumer_group IS NOT NULL AND root_finding_id IS NULL
    GROUP BY consumer_group
),
queues AS (
    SELECT
        consumer_group,
        count(*) AS queue_count,
        count(*) FILTER (state IN ('unowned', 'multiple_owners', 'unexpected_owner')) AS mismatch_queue_count,
        count(*) FILTER (state = 'unknown') AS unknown_queue_count
    FROM ownership_drift
    WHERE cluster = $cluster AND ds = $ds
    GROUP BY consumer_group
),
quarantined AS (
    SELECT DISTINCT consumer_group FROM quarantined_group WHERE cluster = $cluster AND ds = $ds
),
states AS (
    SELECT consumer_group, list_sort(list_distinct(list(group_state))) AS group_states
    FROM assignment_fairness
    WHERE cluster = $cluster AND ds = $ds
    GROUP BY consumer_group
),
presence AS (
    SELECT consumer_group, CASE WHEN bool_and(state = 'offline') THEN ['offline'] ELSE ['unknown'] END AS presence_states
    FROM (
        SELECT cluster, ds, consumer_group, state FROM group_presence
        UNION ALL
        SELECT cluster, ds, consumer_group, state FROM proxy_presence
    )
    WHERE cluster = $cluster AND ds = $ds
    GROUP BY consumer_group
)
SELECT
    consumer_group,
    CASE WHEN quarantined.consumer_group IS NULL THEN coalesce(group_states, presence_states) END AS group_states,
    CASE WHEN quarantined.consumer_group IS NULL THEN coalesce(critical_count, 0) END AS critical_count,
    CASE WHEN quarantined.consumer_group IS NULL THEN coalesce(warning_count, 0) END AS warning_count,
    CASE WHEN quarantined.consumer_group IS NULL THEN coalesce(info_count, 0) END AS info_count,
    queue_count,
    mismatch_queue_count,
    unknown_queue_count,
    quarantined.consumer_group IS NOT NULL AS is_quarantined
FROM queues
FULL JOIN problems USING (consumer_group)
FULL JOIN states USING (consumer_group)
FULL JOIN quarantined USING (consumer_group)
FULL JOIN presence USING (consumer_group)
ORDER BY
    critical_count DESC NULLS LAST, warning_count DESC NULLS LAST, mismatch_queue_count DESC NULLS LAST, info_count DESC NULLS LAST,
    consumer_group
