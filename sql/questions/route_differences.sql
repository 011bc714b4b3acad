-- Which topics do the name servers describe differently, among themselves or than the broker itself?
--
-- One row per topic x broker of the newest published day of each cluster with a difference; `differences` is explained in
-- docs/tables.md. Clients ask one name server at random: where is_read_affected, members of a group may share different
-- sets of queues. answers: what each name server says; its addresses of the broker are in route_divergence.
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
