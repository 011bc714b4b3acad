-- Findings of the baseline day that this day does not have, the worst first
--
-- Findings of groups that the day is published without (quarantined) are not listed: whether they persist is unknown.
SELECT severity, kind, consumer_group, topic, broker_name, client_id, likely_cause, evidence
FROM finding
WHERE cluster = $cluster
    AND ds = (SELECT baseline_ds FROM publication WHERE cluster = $cluster AND ds = $ds)
    AND root_finding_id IS NULL
    AND finding_id NOT IN (
        SELECT finding_id FROM finding WHERE cluster = $cluster AND ds = $ds AND finding_id IS NOT NULL
    )
    AND coalesce(
        consumer_group NOT IN (SELECT consumer_group FROM quarantined_group WHERE cluster = $cluster AND ds = $ds), TRUE
    )
ORDER BY
    list_position(['critical', 'warning', 'info'], severity), kind, consumer_group, topic, broker_name, client_id, likely_cause
LIMIT 50
