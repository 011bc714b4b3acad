-- The newest refused day that is later than every published day, and the expectations that failed
WITH newest AS (
    SELECT max(ds) AS ds
    FROM quarantine.gate_result
    WHERE cluster = $cluster AND ds > coalesce((SELECT max(ds) FROM publication WHERE cluster = $cluster), DATE '1970-01-01')
)
SELECT ds, run_id, expectation_id, expectation, examples
FROM quarantine.gate_result
WHERE cluster = $cluster AND ds = (SELECT ds FROM newest) AND severity = 'block' AND outcome = 'failed'
ORDER BY expectation_id
