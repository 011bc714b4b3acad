-- The gate's verdict on the day
SELECT
    publication.gate_verdict,
    publication.baseline_ds,
    publication.run_id,
    publication.code_version,
    count(*) FILTER (gate_result.outcome IN ('passed', 'waived')) AS passed_expectation_count,
    count(*) FILTER (gate_result.outcome = 'failed') AS warning_expectation_count,
    count(*) FILTER (gate_result.outcome = 'approved') AS approved_expectation_count,
    max(gate_result.approved_by) AS approved_by,
    max(gate_result.approval_reason) AS approval_reason,
    count(*) FILTER (gate_result.outcome = 'skipped') AS skipped_expectation_count
FROM publication
LEFT JOIN gate_result USING (cluster, ds)
WHERE publication.cluster = $cluster AND publication.ds = $ds
GROUP BY ALL
