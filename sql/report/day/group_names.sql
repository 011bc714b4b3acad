-- Names of the groups of the day
SELECT consumer_group FROM assignment_fairness WHERE cluster = $cluster AND ds = $ds
UNION
SELECT consumer_group FROM ownership_drift WHERE cluster = $cluster AND ds = $ds
UNION
SELECT consumer_group FROM finding WHERE cluster = $cluster AND ds = $ds AND consumer_group IS NOT NULL
UNION
SELECT consumer_group FROM quarantined_group WHERE cluster = $cluster AND ds = $ds
UNION
SELECT consumer_group FROM group_presence WHERE cluster = $cluster AND ds = $ds
UNION
SELECT consumer_group FROM proxy_presence WHERE cluster = $cluster AND ds = $ds
ORDER BY consumer_group
