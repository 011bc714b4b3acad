-- Which client ids are, or may be, shared by several processes?
--
-- One row per group x client id of the newest published day of each cluster; certain ones first. process_count: processes with
-- this id that answered a direct query: two of them consume the same queues, and other queues have no owner. It is null if no process
-- was queried and every listing broker lists the id several times: several processes, or one process with dead connections, which a
-- broker removes after two minutes. least_connection_count: minimum number of connections of the id over the listing brokers.
WITH connections AS (
    SELECT cluster, ds, consumer_group, client_id, broker_name, count(*) AS connection_count
    FROM latest.consumer_connection
    GROUP BY cluster, ds, consumer_group, client_id, broker_name
),
listed AS (
    SELECT
        cluster,
        ds,
        consumer_group,
        client_id,
        min(connection_count) AS least_connection_count,
        list(broker_name ORDER BY broker_name) AS seen_by_brokers
    FROM connections
    GROUP BY cluster, ds, consumer_group, client_id
),
processes AS (
    SELECT cluster, ds, consumer_group, client_id, count(*) AS process_count
    FROM latest.client_process
    WHERE state = 'online'
    GROUP BY cluster, ds, consumer_group, client_id
)
SELECT cluster, ds, consumer_group, client_id, process_count, least_connection_count, seen_by_brokers
FROM listed
FULL JOIN processes USING (cluster, ds, consumer_group, client_id)
WHERE coalesce(process_count, least_connection_count) > 1
ORDER BY process_count IS NULL, cluster, consumer_group, client_id
