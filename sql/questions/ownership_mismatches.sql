-- Which queues have an ownership mismatch, and why?
--
-- One row per group x topic x state x cause of the newest published day of each cluster, the worst first. Groups that are
-- completely offline are not listed: `open_findings.sql` has one row for each. evidence_*: evidence of the likely cause;
-- docs/findings/causes.md explains each cause. The queues themselves are rows of ownership_drift.
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    state,
    likely_cause,
    count(*) AS queue_count,
    list(broker_name || '/' || queue_id ORDER BY broker_name, queue_id)[1:5] AS example_queues,
    any_value(strategy) AS strategy,
    list_sort(list_distinct(flatten(list(observed_client_ids))))[1:5] AS example_owners,
    any_value(client_count) AS client_count,
    list_sort(list_distinct(list(expected_reason))) AS evidence_reasons,
    max(observed_process_count) AS evidence_most_processes,
    any_value(strategy_count) AS evidence_strategies,
    any_value(shared_client_id_count) AS evidence_shared_client_ids,
    any_value(unsubscribed_client_count) AS evidence_unsubscribed_clients,
    any_value(member_list_count) AS evidence_member_lists,
    any_value(divergent_broker_count) AS evidence_divergent_brokers,
    any_value(newest_client_age_ms) AS evidence_newest_client_age_ms
FROM latest.ownership_drift
WHERE state IN ('unowned', 'multiple_owners', 'unexpected_owner')
    AND likely_cause IS DISTINCT FROM 'group_offline'
GROUP BY cluster, ds, consumer_group, topic, state, likely_cause
ORDER BY
    list_position(['multiple_owners', 'unowned', 'unexpected_owner'], state),
    queue_count DESC,
    cluster,
    consumer_group,
    topic,
    likely_cause
