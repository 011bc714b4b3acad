-- Queues of the group: who owns each, and who should
--
-- The queues with a mismatch first. ownership: as observed; only `unowned` means no owner. observed_owners: clients that have the queue
-- in their own process table. expected_owners: clients that the effective strategy chooses; null if unknown.
SELECT consumer_group, topic, broker_name, queue_id, state, ownership, observed_owners, expected_owners, likely_cause, reason
FROM queue_ownership
WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
QUALIFY row_number() OVER (
    PARTITION BY consumer_group
    ORDER BY
        list_position(['multiple_owners', 'unowned', 'unexpected_owner', 'unknown', 'shared', 'match'], state),
        topic LIKE '\%RETRY\%%' ESCAPE '\', topic, broker_name, queue_id
) <= 256
ORDER BY
    consumer_group,
    list_position(['multiple_owners', 'unowned', 'unexpected_owner', 'unknown', 'shared', 'match'], state),
    topic LIKE '\%RETRY\%%' ESCAPE '\', topic, broker_name, queue_id
