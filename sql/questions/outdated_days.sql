-- Which published days have a baseline that has changed since?
--
-- One row per such day of any cluster; its values for changes since the baseline are outdated. To recompute these days:
-- `ledger backfill` from the first of them to the last.
SELECT cluster, ds, baseline_ds, earlier_ds, reasons
FROM outdated_day
ORDER BY cluster, ds
