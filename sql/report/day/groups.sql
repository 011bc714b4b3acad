-- Groups, the worst first
--
-- mismatch_queue_count: queues that are unowned, have several owners or an unexpected one.
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
states AS (
    SELECT consumer_group, list_sort(list_distinct(list(group_state))) AS group_states
    FROM assignment_fairness
    WHERE cluster = $cluster AND ds = $ds
    GROUP BY consumer_group
)
SELECT
    consumer_group,
    group_states,
    coalesce(critical_count, 0) AS critical_count,
    coalesce(warning_count, 0) AS warning_count,
    coalesce(info_count, 0) AS info_count,
    queue_count,
    mismatch_queue_count,
    unknown_queue_count
FROM queues
FULL JOIN problems USING (consumer_group)
FULL JOIN states USING (consumer_group)
ORDER BY critical_count DESC, warning_count DESC, mismatch_queue_count DESC NULLS LAST, info_count DESC, consumer_group
