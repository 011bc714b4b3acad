-- Which groups were days published without, and why?
--
-- One row per group and expectation that it breaks, newest day first. Only where the settings have `gate.quarantine_groups`; every
-- other table has no row of these groups on that day, which says nothing of them.
SELECT cluster, ds, consumer_group, expectation_id, table_name, expectation, observed, examples
FROM quarantined_group
ORDER BY ds DESC, cluster, consumer_group, expectation_id
