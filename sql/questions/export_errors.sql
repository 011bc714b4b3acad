-- Which sources failed or could not be read during the export?
--
-- One row per kind of record, source and error of the newest published day of each cluster. Values that depend on such
-- a source are unknown in the tables, never zero. Error code 206 for a group on a broker is normal: no member of the group is
-- connected to that broker.
SELECT
    cluster,
    ds,
    kind,
    state,
    coalesce(broker_name, nameserver, client_id) AS source,
    error_type,
    error_code,
    count(*) AS record_count,
    min(error_message) AS example,
    min(file || ':' || line_number) AS example_line
FROM latest.export_record
WHERE state <> 'payload'
GROUP BY ALL
ORDER BY cluster, kind, record_count DESC, source, error_type, error_code
