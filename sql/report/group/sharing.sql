-- Queues that members of the group pop: who may read each, and what waits
--
-- Members share such a queue, so it has no owner. possible_readers: by the rules of the broker and the proxy; null if unknown.
-- observed_readers: those that showed their pops; null if none of the readers can, as clients of a proxy. pullers: members that hold the
-- queue alone and take messages from the others. ready_count: messages that were not handed out yet. retry_backlog_count: messages of
-- the topic that wait for another delivery. The queues with the most waiting messages first.
SELECT
    consumer_group,
    topic,
    broker_name,
    queue_id,
    expected_reader_ids AS possible_readers,
    observed_reader_ids AS observed_readers,
    puller_ids AS pullers,
    ready_count,
    in_flight_count_at_most,
    retry_backlog_count
FROM queue_sharing
WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
QUALIFY row_number() OVER (
    PARTITION BY consumer_group ORDER BY ready_count DESC NULLS LAST, topic, broker_name, queue_id
) <= 100
ORDER BY consumer_group, ready_count DESC NULLS LAST, topic, broker_name, queue_id
