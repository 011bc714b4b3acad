-- Which clients carry more than their share over all topics of their group?
--
-- One row per group x client of the newest published day of each cluster that owns something, the largest share
-- above the fair one first; clients whose share cannot be told last. fair_share: one divided by the members of the group.
SELECT
    cluster,
    ds,
    consumer_group,
    client_id,
    queue_count,
    topic_count,
    round(queue_share, 3) AS share,
    round(1 / count(*) OVER (PARTITION BY cluster, consumer_group), 3) AS fair_share,
    lag_count
FROM latest.client_load
QUALIFY queue_count > 0
ORDER BY share - fair_share DESC NULLS LAST, cluster, consumer_group, client_id
