-- What is unwell in each cluster, the worst first?
--
-- One row per finding of the newest published day of each cluster; docs/findings.md explains each kind.
SELECT cluster, ds, severity, kind, consumer_group, topic, broker_name, queue_id, client_id, evidence, advice
FROM latest.finding
ORDER BY
    list_position(['critical', 'warning', 'info'], severity),
    cluster,
    kind,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    client_id
