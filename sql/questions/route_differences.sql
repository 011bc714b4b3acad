-- Which routes differ between name servers, or between a name server and the broker?
--
-- One row per topic x broker of the newest published day of each cluster with a difference; docs/tables.md explains
-- `differences`. Clients query one name server at random: with is_read_affected, members of a group may divide different sets
-- of queues. answers: the answer of each name server; its addresses of the broker are in route_divergence.
SELECT
    cluster,
    ds,
    topic,
    broker_name,
    list_sort(list_distinct(flatten(list(differences)))) AS differences,
    bool_or(is_read_affected) AS is_read_affected,
    any_value(nameserver_count) AS nameserver_count,
    list(
        struct_pack(
            nameserver := nameserver,
            is_routed := is_routed,
            perm := perm,
            read_queue_count := read_queue_count,
            write_queue_count := write_queue_count,
            order_topic_conf := order_topic_conf
        ) ORDER BY nameserver
    ) AS answers,
    any_value(
        struct_pack(
            perm := config_perm,
            read_queue_count := config_read_queue_count,
            write_queue_count := config_write_queue_count
        )
    ) FILTER (is_config_known) AS broker_configuration
FROM latest.route_divergence
GROUP BY cluster, ds, topic, broker_name
HAVING bool_or(state = 'differs')
ORDER BY is_read_affected DESC, cluster, topic, broker_name
