-- Which clients have more than their fair share of queues over all topics of their group?
--
-- One row per group x client that was observed to own queues, on the newest published day of each cluster. The largest excess
-- over the fair share first, clients with an unknown share last. fair_share: 1 / number of members of the group.
SELECT
    cluster,
    ds,
    consumer_group,
    client_id,
    observed_queue_count,
    expected_queue_count,
    observed_topic_count,
    round(queue_share, 3) AS share,
    round(1 / count(*) OVER (PARTITION BY cluster, consumer_group), 3) AS fair_share,
    lag_count
FROM latest.client_load
QUALIFY observed_queue_count > 0
ORDER BY share - fair_share DESC NULLS LAST, cluster, consumer_group, client_id
