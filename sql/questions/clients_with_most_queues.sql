-- Which clients carry more than their share over all topics of their group?
--
-- One row per group x client of the newest published day of each cluster that owns something, the largest share
-- within its group first. fair_share: one divided by the clients that own something.
SELECT
    cluster,
    ds,
    consumer_group,
    client_id,
    count(*) AS queue_count,
    count(DISTINCT topic) AS topic_count,
    round(count(*) / sum(count(*)) OVER (PARTITION BY cluster, consumer_group), 3) AS share,
    round(1 / count(*) OVER (PARTITION BY cluster, consumer_group), 3) AS fair_share
FROM latest.queue_assignment
WHERE is_effective AND client_id IS NOT NULL AND strategy <> 'BROADCASTING'
GROUP BY cluster, ds, consumer_group, client_id
ORDER BY share - fair_share DESC, cluster, consumer_group, client_id
