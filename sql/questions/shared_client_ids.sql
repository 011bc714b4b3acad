-- Which client ids are shared by several processes?
--
-- One row per group x client id of the newest published day of each cluster. A broker has one connection per
-- process, so two on one broker are two processes: both consume the same queues, and others have no owner.
WITH connections AS (
    SELECT cluster, ds, consumer_group, client_id, broker_name, count(*) AS connection_count
    FROM latest.consumer_connection
    GROUP BY cluster, ds, consumer_group, client_id, broker_name
)
SELECT
    cluster,
    ds,
    consumer_group,
    client_id,
    max(connection_count) AS process_count,
    list(broker_name ORDER BY broker_name) AS seen_by_brokers
FROM connections
WHERE connection_count > 1
GROUP BY cluster, ds, consumer_group, client_id
ORDER BY cluster, consumer_group, client_id
