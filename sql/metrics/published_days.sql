-- Newest published day of each cluster
SELECT cluster, epoch(ds)::BIGINT AS published_day_seconds, gate_verdict FROM latest.publication ORDER BY cluster
