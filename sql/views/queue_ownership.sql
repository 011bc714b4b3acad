-- One row per group x topic x queue of a day: observed and expected owners of the queue.
-- observed_owners: the clients that have the queue in their own process table; expected_owners: those that the effective
-- strategy assigns, null if that cannot be computed. observed_process_count counts processes, never connections.
-- ownership, as observed: `owned` by one process; `multiple_owners` by several; `unowned`: no process has it; `broadcast`: every member
-- reads it; `shared`: several clients pop from it; `unknown`: not in the export, see reason. Only `unowned` means no owner. state and
-- likely_cause are those of ownership_drift.
SELECT
    cluster,
    ds,
    consumer_group,
    topic,
    broker_name,
    queue_id,
    strategy,
    CASE
        WHEN
            state = 'unknown'
            AND (
                len(observed_client_ids) = 0
                OR coalesce(unasked_client_count, 1) > 0
                OR unknown_reason = 'process_count_unknown'
            )
            THEN 'unknown'
        WHEN state = 'multiple_owners' THEN 'multiple_owners'
        WHEN state = 'shared' OR strategy = 'POP' OR unknown_reason = 'pop_mode' THEN 'shared'
        WHEN len(observed_client_ids) = 0 THEN 'unowned'
        WHEN group_state = 'broadcasting' OR strategy = 'BROADCASTING' THEN 'broadcast'
        WHEN observed_process_count > 1 THEN 'multiple_owners'
        ELSE 'owned'
    END AS ownership,
    observed_client_ids AS observed_owners,
    observed_process_count,
    expected_client_ids AS expected_owners,
    state,
    likely_cause,
    coalesce(unknown_reason, expected_reason) AS reason
FROM ownership_drift
