-- Members of the group: reported strategy, release, queues and lag
--
-- A client id that several processes share is one row, with the releases and strategies of all of them. The last columns are null
-- where the client did not answer. The release of a gRPC client is unknown: brokers and proxies list that of its proxy.
WITH reported AS (
    SELECT
        consumer_group,
        client_id,
        list_sort(list_distinct(list(strategy) FILTER (strategy IS NOT NULL))) AS strategies
    FROM (
        SELECT cluster, ds, consumer_group, client_id, strategy FROM consumer_client
        UNION ALL
        SELECT cluster, ds, consumer_group, client_id, strategy FROM client_process
    )
    WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
    GROUP BY consumer_group, client_id
),
connected AS (
    SELECT
        consumer_group,
        client_id,
        list_sort(list_distinct(list(
            client_language || CASE
                WHEN regexp_matches(client_id, '^(.+@\d+@\d+@-?[0-9a-z]+|.+@\d+#\d+_\d+|[^@:]*[A-Za-z][^@:]*@\d+#\d{1,6})$') AND coalesce(len(strategies), 0) = 0 THEN ' (gRPC)'
                ELSE ' ' || coalesce(client_version, 'unknown release')
            END
        ))) AS releases
    FROM (
        SELECT cluster, ds, consumer_group, client_id, client_language, client_version FROM consumer_connection
        UNION ALL
        SELECT cluster, ds, consumer_group, client_id, client_language, client_version FROM proxy_connection
    )
    LEFT JOIN reported USING (consumer_group, client_id)
    WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
    GROUP BY consumer_group, client_id
)
SELECT
    consumer_group,
    client_id,
    coalesce(releases, []) AS releases,
    coalesce(strategies, []) AS reported_strategies,
    expected_queue_count,
    observed_queue_count,
    round(queue_share, 3) AS queue_share,
    lag_count
FROM client_load
LEFT JOIN reported USING (consumer_group, client_id)
LEFT JOIN connected USING (consumer_group, client_id)
WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
QUALIFY row_number() OVER (PARTITION BY consumer_group ORDER BY observed_queue_count DESC NULLS FIRST, client_id) <= 100
ORDER BY consumer_group, observed_queue_count DESC NULLS FIRST, client_id
