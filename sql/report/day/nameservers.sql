-- Routes that differ between name servers, or between a name server and the broker
--
-- is_read_affected: consumers that query different name servers divide different sets of queues.
SELECT
    topic,
    broker_name,
    list_sort(list_distinct(flatten(list(differences)))) AS differences,
    bool_or(is_read_affected) AS is_read_affected,
    list_sort(list(nameserver || ': ' || CASE
        WHEN state = 'unknown' THEN 'no answer'
        WHEN is_routed THEN 'perm ' || perm || ', ' || read_queue_count || ' read, ' || write_queue_count || ' write queues'
            || coalesce(', order ' || order_topic_conf, '')
        ELSE 'not in the route'
    END)) AS answers
FROM route_divergence
WHERE cluster = $cluster AND ds = $ds
GROUP BY topic, broker_name
HAVING bool_or(state = 'differs')
ORDER BY is_read_affected DESC, topic, broker_name
LIMIT 50
