-- Which groups were quarantined on which day, and why?
--
-- One row per group and violated expectation, newest day first. Only with `gate.quarantine_groups` in the settings. The other tables
-- have no rows of these groups on that day, so their state is unknown.
SELECT cluster, ds, consumer_group, expectation_id, table_name, expectation, observed, examples
FROM quarantined_group
ORDER BY ds DESC, cluster, consumer_group, expectation_id
