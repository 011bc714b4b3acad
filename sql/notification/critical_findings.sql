-- Critical findings that no other finding explains
SELECT finding_id, kind, consumer_group, topic, broker_name, client_id, evidence, advice
FROM finding
WHERE cluster = $cluster AND ds = $ds AND root_finding_id IS NULL AND severity = 'critical'
ORDER BY kind, consumer_group, topic, broker_name, client_id, finding_id
