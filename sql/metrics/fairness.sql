-- Most queues of a client divided by the mean, by group: the largest value over the group's topics
--
-- The 200 most uneven groups of each cluster; omitted_group_count: the number of the others. Topics that every member reads and topics
-- where clients differ by at most one queue, the optimum, do not count.
SELECT
    cluster,
    consumer_group,
    max(max_over_mean) AS max_over_mean,
    greatest(count(*) OVER (PARTITION BY cluster) - 200, 0) AS omitted_group_count
FROM latest.assignment_fairness
WHERE is_effective AND strategy <> 'BROADCASTING' AND max_queues_per_client - min_queues_per_client > 1
GROUP BY cluster, consumer_group
QUALIFY row_number() OVER (PARTITION BY cluster ORDER BY max(max_over_mean) DESC, consumer_group) <= 200
ORDER BY cluster, consumer_group
