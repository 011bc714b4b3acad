-- One row per group x queue of a day: how many messages the group has yet to consume, as the queue's broker says.
-- lag_count: messages; null where the broker has no offset of the group.
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    broker_offset,
    consumer_offset,
    CASE WHEN consumer_offset >= 0 THEN broker_offset - consumer_offset END AS lag_count,
    last_consumed_at
FROM consume_progress
