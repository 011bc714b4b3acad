-- The queue on each published day: who should own it, and who did, the newest day first
SELECT ds, topic, strategy, state, ownership, observed_owners, expected_owners, likely_cause, reason
FROM queue_ownership
WHERE cluster = $cluster AND consumer_group IN ($groups) AND broker_name = $broker AND queue_id = $queue_id AND ds <= $ds
ORDER BY ds DESC, topic
LIMIT 30
