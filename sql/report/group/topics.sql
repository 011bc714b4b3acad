-- Topics of the group: strategy, evidence of it, and fairness
--
-- strategy_source: `observed`: members report the strategy; `configured`: the settings file names it. reporting_client_count:
-- members that reported their strategy, of client_count.
SELECT
    consumer_group,
    topic,
    group_state,
    group_state_reason,
    strategy,
    strategy_source,
    client_count,
    reporting_client_count,
    queue_count,
    unowned_queue_count,
    multiple_owner_queue_count,
    idle_client_count,
    min_queues_per_client,
    max_queues_per_client,
    round(max_over_mean, 2) AS max_over_mean,
    spread_bound,
    is_within_bound
FROM assignment_fairness
WHERE cluster = $cluster AND ds = $ds AND consumer_group IN ($groups) AND is_effective
QUALIFY row_number() OVER (PARTITION BY consumer_group ORDER BY topic LIKE '\%RETRY\%%' ESCAPE '\', topic) <= 60
ORDER BY consumer_group, topic LIKE '\%RETRY\%%' ESCAPE '\', topic
