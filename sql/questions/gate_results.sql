-- Which expectations failed, and was the day published?
--
-- One row per failed expectation, newest day first: `published` for those that only warn or are waived, `refused` for
-- days that the gate refused to publish.
SELECT 'published' AS outcome, cluster, ds, expectation_id, severity, expectation, observed, threshold_min, threshold_max, examples, waiver
FROM gold.gate_result
WHERE NOT is_success
UNION ALL BY NAME
SELECT 'refused' AS outcome, cluster, ds, expectation_id, severity, expectation, observed, threshold_min, threshold_max, examples, waiver
FROM quarantine.gate_result
WHERE NOT is_success
ORDER BY ds DESC, cluster, outcome, expectation_id
