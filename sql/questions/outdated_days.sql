-- Which published days were compared with something that has changed since?
--
-- One row per such day of any cluster; what it says of changes since the day before is out of date. To compute them again:
-- `ledger backfill` from the first of them to the last.
SELECT cluster, ds, baseline_ds, earlier_ds, reasons
FROM outdated_day
ORDER BY cluster, ds
