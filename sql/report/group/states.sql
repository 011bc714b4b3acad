-- State of the group, and the number of its members
--
-- A group has several states if the brokers of its topics say different things.
SELECT consumer_group, group_state, group_state_reason, max(client_count) AS client_count
FROM assignment_fairness
WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups)
GROUP BY consumer_group, group_state, group_state_reason
ORDER BY consumer_group, group_state, group_state_reason
