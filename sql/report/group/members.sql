-- Members of the group: reported strategy, release, queues and lag
--
-- A client id that several processes share is one row, with the releases and strategies of all of them. The last columns are null
-- where the client did not answer.
WITH reported AS (
    SELECT
        consumer_group,
        client_id,
        list_sort(list_distinct(list(strategy) FILTER (strategy IS NOT NULL))) AS strategies
    FROM consumer_client
    WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
    GROUP BY consumer_group, client_id
),
connected AS (
    SELECT
        consumer_group,
        client_id,
        list_sort(list_distinct(list(client_language || ' ' || coalesce(client_version, 'unknown release')))) AS releases
    FROM consumer_connection
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
