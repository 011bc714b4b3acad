-- The ring of CONSISTENT_HASH: each member's part of it
--
-- Groups whose members are all Java clients and use CONSISTENT_HASH. Each member stands ten times on the ring, RocketMQ's default, at
-- the first four bytes of the MD5 hash of `<client id>-<number>`; a queue belongs to the next position. explained_queue_count: queues
-- of the group whose expected owner is the one on this ring; the ring is drawn only if these are all of them.
WITH members AS (
    SELECT DISTINCT consumer_group, client_id
    FROM consumer_connection
    SEMI JOIN (
        SELECT consumer_group
        FROM assignment_fairness
        WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups) AND is_effective
        GROUP BY consumer_group
        HAVING bool_and(strategy = 'CONSISTENT_HASH')
    ) USING (consumer_group)
    WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
    QUALIFY bool_and(client_language = 'JAVA') OVER (PARTITION BY consumer_group)
),
positions AS (
    SELECT
        consumer_group,
        client_id,
        ('0x' || substr(md5(client_id || '-' || number), 1, 8))::BIGINT AS position
    FROM members
    CROSS JOIN range(10) AS numbers (number)
),
arcs AS (
    SELECT
        consumer_group,
        client_id,
        position,
        position - coalesce(
            lag(position) OVER (PARTITION BY consumer_group ORDER BY position),
            max(position) OVER (PARTITION BY consumer_group) - 4294967296
        ) AS width
    FROM positions
),
queues AS (
    SELECT
        consumer_group,
        expected_client_ids[1] AS client_id,
        ('0x' || substr(
            md5('MessageQueue [topic=' || topic || ', brokerName=' || broker_name || ', queueId=' || queue_id || ']'), 1, 8
        ))::BIGINT AS position
    FROM ownership_drift
    WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups) AND len(expected_client_ids) = 1
),
next_positions AS (
    SELECT
        consumer_group,
        position,
        first(client_id ORDER BY position) AS client_id
    FROM positions
    GROUP BY consumer_group, position
),
checked AS (
    SELECT
        queues.consumer_group,
        count(*) AS queue_count,
        count(*) FILTER (queues.client_id = coalesce(
            (
                SELECT first(p.client_id ORDER BY p.position)
                FROM next_positions AS p
                WHERE p.consumer_group = queues.consumer_group AND p.position >= queues.position
            ),
            (
                SELECT first(p.client_id ORDER BY p.position)
                FROM next_positions AS p
                WHERE p.consumer_group = queues.consumer_group
            )
        )) AS explained_queue_count
    FROM queues
    GROUP BY queues.consumer_group
)
SELECT
    arcs.consumer_group,
    arcs.client_id,
    round(sum(width) / 4294967296, 4) AS ring_share,
    queue_count,
    explained_queue_count,
    list({'position': position, 'width': width} ORDER BY position) AS arcs
FROM arcs
JOIN checked USING (consumer_group)
GROUP BY arcs.consumer_group, arcs.client_id, queue_count, explained_queue_count
ORDER BY arcs.consumer_group, arcs.client_id
