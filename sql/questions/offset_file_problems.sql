-- Which broadcasting clients have defective offset files, and what would a restart do?
--
-- One row per host x client x group of the newest published day of each cluster whose files are not ok, the worst first.
SELECT
    cluster,
    ds,
    host,
    client_id,
    consumer_group,
    state,
    start_outcome,
    start_from,
    round(age_ms / 60000.0, 1) AS age_minutes,
    earlier_snapshots,
    reason
FROM latest.broadcast_offset_file
WHERE state <> 'ok'
ORDER BY
    list_position(['corrupt_both', 'shared_file', 'missing', 'empty', 'recovered_from_bak', 'stale', 'unknown'], state)
    NULLS LAST,
    cluster,
    consumer_group,
    client_id,
    host
