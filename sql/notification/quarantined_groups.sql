-- Groups that the day is published without: whether their findings persist is unknown
SELECT DISTINCT consumer_group FROM quarantined_group WHERE cluster = $cluster AND ds = $ds ORDER BY consumer_group
