-- One row per group x topic x queue of a day: who owns the queue by the strategy in effect.
-- ownership: `owned`; `multi_owned` (several clients, or one client id that several processes share); `unowned`;
-- `broadcast` (every member reads it); `unknown` where the export does not tell. Only `unowned` means nobody.
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    strategy,
    strategy_source,
    CASE
        WHEN strategy = 'BROADCASTING' THEN 'broadcast'
        WHEN count(client_id) > 1 OR max(client_connection_count) > 1 THEN 'multi_owned'
        WHEN count(client_id) = 1 THEN 'owned'
        WHEN any_value(reason) IN (
            'group_offline', 'duplicate_client_id', 'room_without_consumers', 'not_in_configured_list',
            'mixed_strategies', 'mixed_clients', 'owner_not_subscribed', 'left_out_by_strategy'
        ) THEN 'unowned'
        ELSE 'unknown'
    END AS ownership,
    coalesce(list(client_id ORDER BY client_id) FILTER (client_id IS NOT NULL), []) AS owners,
    max(client_connection_count) AS processes_per_owner,
    any_value(reason) AS reason
FROM queue_assignment
WHERE is_effective
GROUP BY cluster, ds, consumer_group, topic, broker_name, queue_id, strategy, strategy_source
