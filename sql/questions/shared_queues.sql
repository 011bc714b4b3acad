-- Which members may read each queue that a group pops, and which messages wait in it?
--
-- One row per group x topic x queue of topics that members pop, on the newest published day of each cluster; the queues with the most
-- waiting messages first. Members share such a queue, so it has no owner. possible_readers: by the rules of the broker and the proxy,
-- null if unknown; observed_readers: those that showed their pops, null if none of the readers can; pullers: members that hold the
-- queue alone and take messages from the others. ready_count: messages that were not handed out yet. retry_backlog_count: messages of
-- the topic that wait for another delivery.
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    request_mode,
    expected_reader_ids AS possible_readers,
    observed_reader_ids AS observed_readers,
    puller_ids AS pullers,
    ready_count,
    in_flight_count_at_most,
    retry_backlog_count,
    order_blocked_until
FROM latest.queue_sharing
ORDER BY ready_count DESC NULLS LAST, cluster, consumer_group, topic, broker_name, queue_id
