-- One row per published day whose baseline has changed: its values for changes since the baseline are outdated, all others are
-- valid. `ledger backfill` recomputes such days.
-- reasons: `earlier_day_changed` (the rows that were read from baseline_ds have changed); `newer_baseline_available` (a day between
-- baseline_ds and this one was published); `earlier_day_gone`; and for offset files `earlier_export_changed` and
-- `earlier_export_appeared`, if the days of those exports are published. earlier_ds: the newest earlier published day.
WITH published AS (
    SELECT
        cluster,
        ds,
        manifest_sha256,
        baseline_ds,
        compared_content,
        compared_exports,
        list_transform(tables, lambda named: named.table_name || '=' || named.content_hash) AS content,
        lag(ds) OVER (PARTITION BY cluster ORDER BY ds) AS earlier_ds
    FROM publication
),
export_changed AS (
    SELECT DISTINCT day.cluster, day.ds
    FROM (SELECT cluster, ds, unnest(compared_exports) AS compared_export FROM published) AS day
    JOIN published AS earlier
        ON earlier.cluster = day.cluster AND earlier.ds::VARCHAR = split_part(day.compared_export, '=', 1)
    WHERE earlier.manifest_sha256 <> split_part(day.compared_export, '=', 2)
),
-- The build reads the newest three exports before the day (spark_jobs/silver/offset_file_snapshots.py).
export_appeared AS (
    SELECT DISTINCT day.cluster, day.ds
    FROM published AS day
    JOIN published AS earlier ON earlier.cluster = day.cluster AND earlier.ds < day.ds
    WHERE NOT list_contains(
            list_transform(day.compared_exports, lambda export: split_part(export, '=', 1)), earlier.ds::VARCHAR
        )
        AND (len(day.compared_exports) < 3 OR earlier.ds::VARCHAR > list_min(day.compared_exports))
),
judged AS (
    SELECT
        day.cluster,
        day.ds,
        day.baseline_ds,
        day.earlier_ds,
        list_filter(
            [
                CASE WHEN day.baseline_ds = day.earlier_ds
                    AND NOT list_has_all(earlier.content, coalesce(day.compared_content, []))
                    THEN 'earlier_day_changed' END,
                CASE WHEN day.earlier_ds > coalesce(day.baseline_ds, DATE '0001-01-01') THEN 'newer_baseline_available' END,
                CASE WHEN day.baseline_ds > coalesce(day.earlier_ds, DATE '0001-01-01') THEN 'earlier_day_gone' END,
                CASE WHEN export_changed.ds IS NOT NULL THEN 'earlier_export_changed' END,
                CASE WHEN export_appeared.ds IS NOT NULL THEN 'earlier_export_appeared' END
            ],
            lambda reason: reason IS NOT NULL
        ) AS reasons
    FROM published AS day
    LEFT JOIN published AS earlier ON earlier.cluster = day.cluster AND earlier.ds = day.earlier_ds
    LEFT JOIN export_changed ON export_changed.cluster = day.cluster AND export_changed.ds = day.ds
    LEFT JOIN export_appeared ON export_appeared.cluster = day.cluster AND export_appeared.ds = day.ds
)
SELECT cluster, ds, baseline_ds, earlier_ds, reasons
FROM judged
WHERE len(reasons) > 0
