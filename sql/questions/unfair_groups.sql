-- Which groups share a topic unevenly, and by how much?
--
-- One row per group x topic of the newest published day of each cluster, the most uneven first. A difference of one
-- queue between two clients is the optimum if the number of clients does not divide the number of queues.
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    strategy,
    client_count,
    queue_count,
    min_queues_per_client,
    max_queues_per_client,
    round(max_over_mean, 2) AS max_over_mean,
    round(jain_index, 3) AS jain_index,
    idle_client_count
FROM latest.assignment_fairness
WHERE is_effective
    AND strategy <> 'BROADCASTING'
    AND max_queues_per_client - min_queues_per_client > 1
ORDER BY max_over_mean DESC, cluster, consumer_group, topic
