-- What could not be asked, or not be read, when the export was taken?
--
-- One row per kind of record, source and error of the newest published day of each cluster. What depends on such a
-- source is unknown in the tables, never zero. An error code of 206 for a group on a broker is normal:
-- nobody of the group is connected to that broker.
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
