-- Expectations for which the day is published without the group
SELECT expectation_id, expectation
FROM quarantined_group
WHERE cluster = $cluster AND ds = $ds AND consumer_group = $group
ORDER BY expectation_id
