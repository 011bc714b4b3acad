-- Queues that changed owner by day, and the fewest that had to, over the last 60 published days
--
-- Sums over the groups and topics that could be compared with the baseline day; not_compared_count is the number of the others.
-- Topics whose members read every queue are not counted.
SELECT
    ds,
    sum(moved_queue_count) FILTER (least_move_count IS NOT NULL) AS moved_queue_count,
    sum(least_move_count) AS least_move_count,
    count(*) FILTER (state <> 'compared') AS not_compared_count
FROM assignment_churn
WHERE cluster = $cluster
    AND is_effective
    AND ds IN (SELECT ds FROM publication WHERE cluster = $cluster AND ds <= $ds ORDER BY ds DESC LIMIT 60)
GROUP BY ds
ORDER BY ds
