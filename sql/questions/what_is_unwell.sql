-- What is unwell in each cluster, the worst first?
--
-- One row per finding of the newest published day of each cluster; `page` explains its kind.
SELECT cluster, ds, severity, kind, consumer_group, topic, broker_name, queue_id, client_id, likely_cause, evidence, advice, page
FROM latest.finding
ORDER BY
    list_position(['critical', 'warning', 'info'], severity),
    cluster,
    kind,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    client_id,
    likely_cause
