-- Which topics do the name servers describe differently?
--
-- One row per topic x broker of the newest published day of each cluster that some name server does not know, or
-- knows with another permission, other queue numbers or another order configuration. Clients ask one name server
-- at random, so members of a group may then share different sets of queues.
WITH asked AS (
    SELECT cluster, count(DISTINCT nameserver) AS nameserver_count
    FROM latest.topic_route
    GROUP BY cluster
)
SELECT
    cluster,
    ds,
    topic,
    broker_name,
    any_value(nameserver_count) AS nameserver_count,
    count(*) AS knowing_nameserver_count,
    list(
        struct_pack(
            nameserver := nameserver,
            perm := perm,
            read_queue_count := read_queue_count,
            write_queue_count := write_queue_count,
            order_topic_conf := order_topic_conf
        ) ORDER BY nameserver
    ) AS answers
FROM latest.topic_route
JOIN asked USING (cluster)
GROUP BY cluster, ds, topic, broker_name
HAVING count(*) < any_value(nameserver_count)
    OR count(DISTINCT (perm, read_queue_count, write_queue_count, order_topic_conf)) > 1
ORDER BY cluster, topic, broker_name
