-- Expectations for which the day is published without the group
SELECT consumer_group, expectation_id, expectation
FROM quarantined_group
WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
ORDER BY consumer_group, expectation_id
