-- Findings that no other finding explains, by kind and severity
SELECT cluster, severity, kind, count(*) AS findings
FROM latest.finding
WHERE root_finding_id IS NULL
GROUP BY cluster, severity, kind
ORDER BY cluster, severity, kind
