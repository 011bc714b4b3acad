-- Findings of the baseline day that this day does not have, the worst first
SELECT severity, kind, consumer_group, topic, broker_name, client_id, likely_cause, evidence
FROM finding
WHERE cluster = $cluster
    AND ds = (SELECT baseline_ds FROM publication WHERE cluster = $cluster AND ds = $ds)
    AND root_finding_id IS NULL
    AND finding_id NOT IN (
        SELECT finding_id FROM finding WHERE cluster = $cluster AND ds = $ds AND finding_id IS NOT NULL
    )
ORDER BY
    list_position(['critical', 'warning', 'info'], severity), kind, consumer_group, topic, broker_name, client_id, likely_cause
LIMIT 50
