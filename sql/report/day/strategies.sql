-- Strategies compared over all groups
--
-- effective_group_count: groups in which the strategy is in effect for all topics. Sums are over the groups for which the
-- number is known: unowned_queue_count without undetermined_group_count groups, idle_client_count and the two fairness numbers without
-- loads_unknown_group_count, moved_queue_count without moves_unknown_group_count. moved_queue_count: queues whose owner would change from
-- the effective strategy's to this one's.
SELECT
    strategy,
    count(*) AS group_count,
    count(*) FILTER (is_effective) AS effective_group_count,
    count(*) FILTER (unowned_queue_count IS NULL) AS undetermined_group_count,
    count(*) FILTER (idle_client_count IS NULL) AS loads_unknown_group_count,
    count(*) FILTER (moved_queue_count IS NULL) AS moves_unknown_group_count,
    sum(unowned_queue_count) AS unowned_queue_count,
    sum(idle_client_count) AS idle_client_count,
    round(max(max_over_mean), 2) AS worst_max_over_mean,
    round(avg(jain_index), 3) AS mean_jain_index,
    sum(moved_queue_count) AS moved_queue_count
FROM strategy_comparison
WHERE cluster = $cluster AND ds = $ds
GROUP BY strategy
ORDER BY effective_group_count DESC, strategy
