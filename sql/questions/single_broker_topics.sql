-- Which topics cannot be written if one broker fails?
--
-- One row per topic of the newest published day of each cluster that has a single broker to write to. Other brokers of
-- its route that accept no messages, and the reason, are in brokers_that_take_nothing. Static topics are excluded: the effect of
-- losing a broker depends on where their logical queues are.
SELECT
    cluster,
    ds,
    topic,
    any_value(broker_name) FILTER (is_only_writable_broker) AS stops_with_broker,
    any_value(writable_queue_count) FILTER (is_only_writable_broker) AS writable_queue_count,
    list(broker_name || ': ' || reason ORDER BY broker_name) FILTER (reason IS NOT NULL) AS brokers_that_take_nothing
FROM latest.producer_spread
GROUP BY cluster, ds, topic
HAVING bool_or(is_only_writable_broker)
ORDER BY cluster, stops_with_broker, topic
