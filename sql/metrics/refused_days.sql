-- Newest refused day of each cluster that is not published
SELECT refused.cluster, epoch(max(refused.ds))::BIGINT AS refused_day_seconds
FROM quarantine.gate_result AS refused
ANTI JOIN publication USING (cluster, ds)
GROUP BY refused.cluster
ORDER BY refused.cluster
