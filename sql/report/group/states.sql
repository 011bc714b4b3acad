-- State of the group, and the number of its members
--
-- A group has several states if the brokers of its topics say different things. A group without topics is `offline` if each broker and
-- proxy that was asked answered that it has no member, otherwise `unknown`.
WITH presence AS (
    SELECT consumer_group, bool_and(state = 'offline') AS is_offline
    FROM (
        SELECT cluster, ds, consumer_group, state FROM group_presence
        UNION ALL
        SELECT cluster, ds, consumer_group, state FROM proxy_presence
    )
    WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
    GROUP BY consumer_group
)
SELECT consumer_group, group_state, group_state_reason, max(client_count) AS client_count
FROM assignment_fairness
WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
GROUP BY consumer_group, group_state, group_state_reason
UNION ALL
SELECT
    consumer_group,
    CASE WHEN is_offline THEN 'offline' ELSE 'unknown' END AS group_state,
    NULL AS group_state_reason,
    CASE WHEN is_offline THEN 0 END AS client_count
FROM presence
WHERE
    consumer_group NOT IN (SELECT consumer_group FROM assignment_fairness WHERE cluster = $cluster AND ds = $ds)
    AND consumer_group NOT IN (SELECT consumer_group FROM quarantined_group WHERE cluster = $cluster AND ds = $ds)
ORDER BY consumer_group, group_state, group_state_reason
