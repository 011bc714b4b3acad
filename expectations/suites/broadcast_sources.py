"""Second computation of the tables on offset files: from silver, from the files' text, and by the rules in the documents.

The build reads the files with a reader for each client library. This module reads the same bytes in Spark SQL, where a file has the
plain form that clients write: a regular expression cuts out the queues, and what remains must be the frame of the table. Every
client library reads that form alike, so no library's rules are needed. What else a file may hold only its library determines: such a
file is not compared, and where a client starts is then computed from the state that the reader gave.

It reads `offset_file_content` (host string, client_id string, consumer_group string, is_previous boolean, moment int, side string,
content binary): the bytes of the day's files, and of those of earlier exports that they are compared with, up to a size. They count only
if they have the hash that the export's index states. And it reads `earlier_index_line` (ds date, value string): the lines of the
indexes of the earlier exports.

Belongs here: mappings from silver and text to columns, and the rules by which they follow from each other. Does not belong here:
expectations on single rows (`broadcast_offset`), and how a library reads a damaged file.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import TYPE_CHECKING, Final

from expectations.suites.model import (
    Expectation,
    Suite,
    Violation,
    quoted,
    quoted_list,
    text_or_null,
    violations_in,
)
from expectations.suites.presence import PROXY_TABLES
from expectations.suites.thresholds import (
    ASSUMED_CLIENT_LANGUAGE,
    ASSUMED_CLIENT_VERSION,
    COLLECTED_CLIENT_LANGUAGES,
    CONSUME_FROM_LAST_SETTINGS,
    GRPC_CLIENT_ID_PATTERN,
    KNOWN_RELEASE_PATTERN,
    MOST_KEPT_OFFSET_FILE_BYTES,
    MOST_OFFSET_FILE_BYTES,
    OFFSET_FILE_ORPHAN_AFTER_MS,
    OFFSET_FILE_STALE_AFTER_MS,
    PROCESS_BOUND_CLIENT_ID_PATTERN,
)
from rebalance_ledger.tables import BROADCAST_OFFSET, BROADCAST_OFFSET_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

_INDEX_COLUMNS: Final = {
    "moment": "newest.moment",
    "captured_at": "newest.captured_at",
    "snapshot_count": "coalesce(expected_snapshot_count, 0)",
    "host_count": "coalesce(expected_host_count, 0)",
    "main_size_bytes": "newest.main.size_bytes",
    "bak_size_bytes": "newest.bak.size_bytes",
    "main_modified_at": "newest.main.modified_at",
    "bak_modified_at": "newest.bak.modified_at",
    "age_ms": "unix_millis(newest.captured_at) - unix_millis(greatest(newest.main.modified_at, newest.bak.modified_at))",
}
"""Column of `broadcast_offset_file` -> SQL for its value by the index of the export."""

_CLIENT_COLUMNS: Final = {
    "message_model": "expected_model",
    "is_online": "expected_is_online",
    "process_count": "CASE WHEN expected_is_online THEN connected_process_count WHEN NOT expected_is_online THEN 0 END",
    "client_language": f"IF(newest IS NULL, NULL, IF(newest.is_go, 'GO', coalesce(own_language, '{ASSUMED_CLIENT_LANGUAGE}')))",
    "client_version": "CASE WHEN newest IS NULL THEN NULL "
    "WHEN own_versions IS NOT NULL THEN IF(array_contains(own_versions, client_version), client_version, own_versions[0]) "
    "WHEN group_versions IS NOT NULL THEN IF(array_contains(group_versions, client_version), client_version, group_versions[0]) "
    f"ELSE '{ASSUMED_CLIENT_VERSION}' END",
    "client_version_source": "CASE WHEN newest IS NULL THEN NULL WHEN own_versions IS NOT NULL THEN 'client' "
    "WHEN group_versions IS NOT NULL THEN 'group' ELSE 'assumed' END",
}
"""Column -> SQL for its value by what brokers and members report."""

_PREVIOUS_COLUMNS: Final = {
    "previous_ds": "expected_previous_ds",
    "previous_modified_at": "expected_previous_modified_at",
    "previous_start_outcome": "CASE WHEN expected_previous_ds IS NULL THEN NULL WHEN previous_entries IS NULL THEN previous_start_outcome "
    "WHEN size(previous_entries) > 0 THEN 'stored' ELSE 'default' END",
}
"""Column of `broadcast_offset_file` -> SQL for its value by the earlier exports."""

_START_COLUMNS: Final = {
    "state": "expected_state",
    "start_from": "expected_start_from",
    "start_outcome": "IF(expected_state IN ('unknown', 'clustering_group_with_file'), NULL, "
    "IF(newest IS NULL, 'default', expected_outcome))",
    # What a reader says of a file that it refuses is its own.
    "reason": "IF(main_state IS NULL AND newest IS NOT NULL AND NOT is_failed AND NOT is_too_large OR "
    "rlike(reason, concat('(?s)^', expected_reason, '$')), reason, expected_reason)",
}
"""Column -> SQL for its value by the rule in docs/offset-files.md, and the states in docs/broadcast-offsets.md."""

_QUEUE_COLUMNS: Final = {
    "start_from": "source_of_files",
    "offsets_captured_at": "asked_at",
    "last_stored_at": "reported_last_stored_at",
    "previous_ds": "IF(previous_offset IS NULL, NULL, previous_ds_of_files)",
    "consume_from_where": "reported_setting",
    "is_routed": "CASE WHEN coalesce(route_count, 0) = 0 THEN IF(was_answered, FALSE, NULL) "
    "WHEN readable_count = route_count THEN TRUE WHEN readable_count = 0 THEN FALSE "
    # Name servers that disagree: the route is that of one of them.
    "ELSE is_routed IS NOT FALSE END",
}
"""Column of `broadcast_offset` -> SQL for its value by its source."""

_RESTART_COLUMNS: Final = {
    "restart_reason": "expected_reason",
    "restart_offset": "expected_offset",
    "skipped_message_count": "IF(is_counted, greatest(expected_offset - reached, 0), NULL)",
    "repeated_message_count": "IF(is_counted, greatest(reached - expected_offset, 0), NULL)",
}
"""Column -> SQL for its value by the rule in docs/broadcast-offsets.md."""

INDEX_EQUALS: Final = Expectation(
    BROADCAST_OFFSET_FILE,
    "snapshot_equals_index",
    "Every row is of the newest snapshot in the index of the export: its number, time, sizes, times of writing and age, and the number "
    "of snapshots and hosts.",
    judges=tuple(_INDEX_COLUMNS),
)
CLIENT_EQUALS: Final = Expectation(
    BROADCAST_OFFSET_FILE,
    "client_equals_sources",
    "Message model, presence, processes, language and release of every client equal what plain SQL computes from the reports of brokers "
    "and members.",
    judges=tuple(_CLIENT_COLUMNS),
)
CONTENT_EQUALS: Final = Expectation(
    BROADCAST_OFFSET_FILE,
    "content_equals_files",
    "A missing or empty file is reported as such, and a file in the form that clients write as a table with the number of queues that a "
    "second reader finds; any other file is neither missing nor empty. No other file has a number of queues. The bytes that were read "
    "are those of the index.",
    judges=("main_state", "bak_state", "main_entry_count", "bak_entry_count", "earlier_snapshots"),
)
PREVIOUS_EQUALS: Final = Expectation(
    BROADCAST_OFFSET_FILE,
    "previous_equals_export",
    "The earlier snapshot of every row is the newest in the indexes of the earlier exports, with its day, time of writing and, for a file in "
    "the form that clients write, the outcome of a start. Its bytes are those of the index.",
    judges=tuple(_PREVIOUS_COLUMNS),
)
START_FOLLOWS: Final = Expectation(
    BROADCAST_OFFSET_FILE,
    "start_follows_rule",
    "State, reason, outcome of a start and the file that decides it are those that the documented rule gives for the states of both files.",
    judges=tuple(_START_COLUMNS),
)
QUEUE_EQUALS: Final = Expectation(
    BROADCAST_OFFSET,
    "queue_equals_sources",
    "Source file, earlier day, times of the broker, setting of the client or group and route of every queue equal those of their sources.",
    judges=tuple(_QUEUE_COLUMNS),
)
OFFSET_EQUALS: Final = Expectation(
    BROADCAST_OFFSET,
    "offset_equals_files",
    "Every stored offset, the greatest of earlier snapshots, and that of the earlier day, is the one that a second reader finds in the file "
    "that decides, where it has the form that clients write.",
    judges=("stored_offset", "highest_earlier_offset", "previous_offset"),
)
RESTART_RECOMPUTED: Final = Expectation(
    BROADCAST_OFFSET,
    "restart_follows_rule",
    "Reason and offset of every restart, and the messages it skips and repeats, equal what plain SQL computes by the documented rule.",
    judges=tuple(_RESTART_COLUMNS),
)

SUITE: Final = Suite(
    "broadcast_sources",
    (
        INDEX_EQUALS,
        CLIENT_EQUALS,
        CONTENT_EQUALS,
        PREVIOUS_EQUALS,
        START_FOLLOWS,
        QUEUE_EQUALS,
        OFFSET_EQUALS,
        RESTART_RECOMPUTED,
    ),
)

_FILES: Final = "host, client_id, consumer_group"
_QUEUE: Final = "topic, broker_name, queue_id"
_IS_NO_GRPC: Final = f"NOT rlike(client_id, {quoted(GRPC_CLIENT_ID_PATTERN)})"
_OF_BROADCAST: Final = "LEFT SEMI JOIN gold_broadcast_offset_file USING (consumer_group)"

# Every reader takes this form alike: each name once, without escapes or control characters, and whole numbers.
_BLANKS: Final = r"[ \t\r\n]*"
_NAME: Final = r'[^"\\{}\x00-\x1f]*'
_FIELD: Final = (
    rf'(?:"(?:topic|brokerName)"{_BLANKS}:{_BLANKS}"{_NAME}"|"queueId"{_BLANKS}:{_BLANKS}[0-9]{{1,9}})'
)
_OFFSET: Final = rf"{_BLANKS}:{_BLANKS}(?:0|-?[1-9][0-9]{{0,17}})"
_BETWEEN: Final = f"{_BLANKS},{_BLANKS}"
_JAVA_ENTRY: Final = rf"\{{{_BLANKS}{_FIELD}{_BETWEEN}{_FIELD}{_BETWEEN}{_FIELD}{_BLANKS}\}}{_OFFSET}"
_GO_FIELD: Final = rf'(?:\\"(?:topic|brokerName)\\":\\"{_NAME}\\"|\\"queueId\\":[0-9]{{1,9}})'
_GO_ENTRY: Final = rf'"\{{{_GO_FIELD},{_GO_FIELD},{_GO_FIELD}\}}"{_OFFSET}'
_FRAME: Final = (
    rf'^{_BLANKS}\{{{_BLANKS}"offsetTable"{_BLANKS}:{_BLANKS}\{{([E, \t\r\n]*)\}}{_BLANKS}\}}{_BLANKS}$'
)
_ENTRY: Final = f"IF(is_go_file, {quoted(_GO_ENTRY)}, {quoted(_JAVA_ENTRY)})"

_QUEUE_END: Final = r'}"?\s*:\s*(-?[0-9]+)$'
_QUOTE: Final = '"'
_ESCAPED_QUOTE: Final = r"\""

# `{…}:5` and Go's `"{…}":5` to `{…,"offset":5}`.
_ENTRIES: Final = (
    "from_json(concat('[', array_join(transform(entry_texts, entry -> regexp_replace(trim(LEADING '\"' FROM "
    f"replace(entry, {quoted(_ESCAPED_QUOTE)}, {quoted(_QUOTE)})), {quoted(_QUEUE_END)}, ',\"offset\":$1}}')), ','), ']'), "
    "'array<struct<topic: string, brokerName: string, queueId: int, offset: bigint>>')"
)

_INDEX_LINE: Final = (
    "host string, client_id string, `group` string, moment int, captured_at timestamp, path string, sha256 string, size bigint, "
    "mtime timestamp"
)

FILE_TABLES: Final = f"""
landed_file AS (
  SELECT {_FILES}, CAST(NULL AS DATE) AS previous_ds, moment, captured_at, path, sha256, size_bytes, modified_at
  FROM silver_offset_file
  WHERE state = 'landed'
  UNION ALL
  -- Of earlier exports the newest snapshot of the newest one that has the files.
  SELECT {_FILES}, previous_ds, moment, captured_at, path, sha256, size_bytes, modified_at
  FROM (
    SELECT *, max(struct(previous_ds, moment)) OVER (PARTITION BY {_FILES}) AS newest_before
    FROM earlier_index_line
    LATERAL VIEW inline(array(from_json(value, {quoted(_INDEX_LINE)})))
      AS host, client_id, consumer_group, moment, captured_at, path, sha256, size_bytes, modified_at
    LATERAL VIEW inline(array(struct(ds))) AS previous_ds
    WHERE sha256 IS NOT NULL
  )
  WHERE newest_before = struct(previous_ds, moment)
),
file_by_name AS (
  SELECT
    {_FILES}, previous_ds, moment, captured_at, element_at(split(path, '/'), -1) AS name,
    struct(captured_at, path, sha256, size_bytes, modified_at) AS file
  FROM landed_file
),
snapshot_of_index AS (
  SELECT
    {_FILES}, previous_ds, previous_ds IS NOT NULL AS is_previous, moment, captured_at, is_go, coalesce(is_go OR client_language = 'GO', FALSE) AS is_go_file, main, bak,
    -- Neither file is read if one is too large or no reader of the release is known.
    NOT coalesce(greatest(main.size_bytes, bak.size_bytes) > {MOST_OFFSET_FILE_BYTES}, FALSE) AND CASE
      WHEN is_go OR client_language = 'GO' THEN TRUE
      WHEN client_language IS NULL THEN coalesce(has_known_clients, TRUE)
      ELSE coalesce(client_language = 'JAVA' AND rlike(client_version, {quoted(KNOWN_RELEASE_PATTERN)}), FALSE) END
      AS is_readable
  FROM (
    SELECT *, IF(is_go, go_main, java_main) AS main, IF(is_go, go_bak, java_bak) AS bak
    FROM (
      SELECT
        *, coalesce(java_main, java_bak) IS NULL AND coalesce(go_main, go_bak) IS NOT NULL AS is_go
      FROM (
        SELECT
          {_FILES}, previous_ds, moment, max(captured_at) AS captured_at,
          max(IF(name = 'offsets.json', file, NULL)) AS java_main, max(IF(name = 'offsets.json.bak', file, NULL)) AS java_bak,
          max(IF(name = 'offset.json', file, NULL)) AS go_main, max(IF(name = 'offset.json.bak', file, NULL)) AS go_bak
        FROM file_by_name
        GROUP BY {_FILES}, previous_ds, moment
      )
    )
  )
  LEFT JOIN (SELECT {_FILES}, client_language, client_version FROM gold_broadcast_offset_file) USING ({_FILES})
  -- A row without files of today has no release.
  LEFT JOIN (
    SELECT
      consumer_group,
      bool_and(coalesce(client_language = 'JAVA', TRUE) AND coalesce(rlike(client_version, {quoted(KNOWN_RELEASE_PATTERN)}), TRUE)) AS has_known_clients
    FROM (
      SELECT consumer_group, client_language, client_version FROM silver_consumer_connection
      UNION ALL
      SELECT consumer_group, client_language, client_version FROM silver_proxy_connection WHERE {_IS_NO_GRPC}
      UNION ALL
      SELECT consumer_group, NULL, client_version FROM silver_consumer_client
    ) {_OF_BROADCAST}
    GROUP BY consumer_group
  ) USING (consumer_group)
),
-- One row per file that was read, with the queues of those in the form that clients write. What is computed in a generator is
-- computed once: filters are not moved below it.
read_file AS (
  SELECT
    {_FILES}, is_previous, moment, side, is_intact,
    IF(is_framed AND forall(read_entries, e -> e.topic IS NOT NULL AND e.brokerName IS NOT NULL AND e.queueId IS NOT NULL)
      AND size(array_distinct(transform(read_entries, e -> struct(e.topic, e.brokerName, e.queueId)))) = size(read_entries),
      read_entries, NULL) AS entries
  FROM snapshot_of_index
  JOIN offset_file_content USING ({_FILES}, is_previous, moment)
  LATERAL VIEW inline(array(struct(
    sha2(content, 256) <=> IF(side = 'main', main.sha256, bak.sha256),
    IF(is_readable AND is_valid_utf8(content), decode(content, 'UTF-8'), NULL)))) AS is_intact, text
  LATERAL VIEW inline(array(struct(
    regexp_extract_all(text, {_ENTRY}, 0), regexp_replace(text, {_ENTRY}, 'E')))) AS entry_texts, remaining_text
  LATERAL VIEW inline(array(struct(
    {_ENTRIES},
    rlike(remaining_text, {quoted(_FRAME)}) AND translate(regexp_extract(remaining_text, {quoted(_FRAME)}, 1), ' \t\r\n', '')
      = array_join(transform(entry_texts, entry -> 'E'), ',')))) AS read_entries, is_framed
)"""
"""The snapshots of the index, and the files that were read: `snapshot_of_index`, `read_file`."""

SHARED_VIEWS: Final = {
    "offset_file_snapshot": f"""
WITH {FILE_TABLES}
SELECT
  * EXCEPT (is_intact, has_main, has_bak),
  coalesce(is_intact, TRUE)
    AND (NOT is_readable OR coalesce(has_main OR main.size_bytes > {MOST_KEPT_OFFSET_FILE_BYTES}, main IS NULL)
      AND coalesce(has_bak OR bak.size_bytes > {MOST_KEPT_OFFSET_FILE_BYTES}, bak IS NULL)) AS are_intact,
  CASE
    WHEN NOT is_readable THEN NULL
    WHEN main_word = 'offsets' THEN main_entries
    -- Text in another form than clients write has no word.
    WHEN NOT coalesce(main_word, '') IN ('missing', 'empty') THEN NULL
    WHEN bak_word IN ('missing', 'empty') OR is_go_file THEN slice(coalesce(main_entries, bak_entries, array()), 1, 0)
    WHEN bak_word = 'offsets' THEN bak_entries
  END AS table_entries
FROM (
  SELECT
    *,
    CASE WHEN main IS NULL THEN 'missing' WHEN main.size_bytes = 0 THEN 'empty' WHEN main_entries IS NOT NULL THEN 'offsets' END AS main_word,
    CASE WHEN bak IS NULL THEN 'missing' WHEN bak.size_bytes = 0 THEN 'empty' WHEN bak_entries IS NOT NULL THEN 'offsets' END AS bak_word
  FROM snapshot_of_index
  LEFT JOIN (
    SELECT
      {_FILES}, is_previous, moment, bool_and(is_intact) AS is_intact, bool_or(side = 'main') AS has_main, bool_or(side = 'bak') AS has_bak,
      max(IF(side = 'main', entries, NULL)) AS main_entries, max(IF(side = 'bak', entries, NULL)) AS bak_entries
    FROM read_file
    GROUP BY {_FILES}, is_previous, moment
  ) USING ({_FILES}, is_previous, moment)
)"""
}
"""View name -> SQL: every snapshot with what size and text of its files show. Several parts of the statement read it."""


def _shortcoming(side: str, suffix: str = "") -> str:
    """Return SQL for the pattern of the words on a file that gives no table."""
    return (
        f"concat(file_name, '{suffix}', CASE {side}_state WHEN 'missing' THEN ' is missing' WHEN 'empty' THEN ' is empty' "
        "ELSE ' cannot be read( [(].+[)])?' END)"
    )


def _holding(side: str, suffix: str = "") -> str:
    """Return SQL for the pattern of the words on the file that decides."""
    return (
        f"CASE {side}_state WHEN 'offsets' THEN concat(file_name, '{suffix} holds ', {side}_entry_count, ' offsets') "
        f"WHEN 'no_table' THEN concat(file_name, '{suffix} holds no table') ELSE concat('in ', file_name, '{suffix}, .+') END"
    )


COMMON_TABLES: Final = f"""
{PROXY_TABLES},
indexed_files AS (
  SELECT
    {_FILES}, CAST(count(*) AS INT) AS expected_snapshot_count, max(struct(moment, captured_at, main, bak, is_go)) AS newest
  FROM offset_file_snapshot
  WHERE NOT is_previous
  GROUP BY {_FILES}
),
failed_files AS (
  SELECT {_FILES}, max(moment) AS failed_moment FROM silver_offset_file WHERE state = 'failed' GROUP BY {_FILES}
),
hosts_of_client AS (
  SELECT consumer_group, client_id, CAST(count(DISTINCT host) AS INT) AS expected_host_count
  FROM indexed_files
  GROUP BY consumer_group, client_id
),
connected_client AS (
  SELECT
    consumer_group, client_id,
    TRUE AS is_connected, CAST(coalesce(max(process_count), IF(coalesce(min(connection_count), max(answer_count)) = 1, 1, NULL)) AS INT)
      AS connected_process_count
  FROM (
    SELECT consumer_group, client_id, count(*) AS connection_count, NULL AS process_count, NULL AS answer_count
    FROM silver_consumer_connection {_OF_BROADCAST}
    GROUP BY consumer_group, client_id, broker_name
    UNION ALL
    SELECT consumer_group, client_id, count(*), NULL, NULL FROM silver_proxy_connection {_OF_BROADCAST}
    WHERE {_IS_NO_GRPC}
    GROUP BY consumer_group, client_id, proxy
    UNION ALL
    SELECT consumer_group, client_id, NULL, count(*), NULL FROM silver_client_process {_OF_BROADCAST}
    WHERE state = 'online'
    GROUP BY consumer_group, client_id
    UNION ALL
    SELECT consumer_group, client_id, NULL, NULL, 1 FROM silver_consumer_client {_OF_BROADCAST}
    WHERE state = 'online'
  )
  GROUP BY consumer_group, client_id
),
connection_of_client AS (
  SELECT
    consumer_group, client_id, CAST(size(collect_set(regexp_replace(client_addr, ':[0-9]+$', ''))) AS INT) AS address_count,
    IF(min(client_language IS NULL OR NOT client_language IN {quoted_list(COLLECTED_CLIENT_LANGUAGES)}), max(client_language), NULL)
      AS other_language
  FROM (
    SELECT consumer_group, client_id, client_addr, client_language FROM silver_consumer_connection {_OF_BROADCAST}
    UNION ALL
    SELECT consumer_group, client_id, client_addr, client_language FROM silver_proxy_connection {_OF_BROADCAST} WHERE {_IS_NO_GRPC}
  )
  GROUP BY consumer_group, client_id
),
release_report AS (
  SELECT
    *, IF(client_version IS NULL, NULL, struct(is_own, number)) AS own_rank, IF(client_version IS NULL, NULL, number) AS group_rank
  FROM (
    SELECT *, transform(split(split(client_version, '-')[0], '[.]'), part -> try_cast(part AS INT)) AS number
    FROM (
      SELECT consumer_group, client_id, client_language, client_version, 0 AS is_own FROM silver_consumer_connection
      UNION ALL
      SELECT consumer_group, client_id, client_language, client_version, 0 FROM silver_proxy_connection WHERE {_IS_NO_GRPC}
      UNION ALL
      SELECT consumer_group, client_id, NULL, client_version, 1 FROM silver_consumer_client
    ) {_OF_BROADCAST}
  )
),
release_of_client AS (
  SELECT
    consumer_group, client_id, max(client_language) AS own_language,
    nullif(collect_set(IF(own_rank = best_rank, client_version, NULL)), array()) AS own_versions
  FROM (SELECT *, max(own_rank) OVER (PARTITION BY consumer_group, client_id) AS best_rank FROM release_report)
  GROUP BY consumer_group, client_id
),
release_of_group AS (
  SELECT consumer_group, nullif(collect_set(IF(group_rank = best_rank, client_version, NULL)), array()) AS group_versions
  FROM (SELECT *, max(group_rank) OVER (PARTITION BY consumer_group) AS best_rank FROM release_report)
  GROUP BY consumer_group
),
broadcast_group AS (
  SELECT
    consumer_group, min(model) AS expected_model, max(setting) AS setting_at_brokers, min(consume_type) AS type_at_brokers,
    coalesce(bool_or(is_known_by_topic), bool_and(is_known_by_source))
      AND NOT coalesce(any_value(is_unfound) OR any_value(coalesce(answering_proxy_count, 0) < proxy_count), FALSE) AS is_known
  FROM (
    SELECT
      consumer_group, min(IF(state = 'online', message_model, NULL)) AS model,
      IF(count(DISTINCT IF(state = 'online', consume_from_where, NULL)) = 1, max(IF(state = 'online', consume_from_where, NULL)), NULL) AS setting,
      min(IF(state = 'online', consume_type, NULL)) AS consume_type, bool_and(state <> 'unknown') AS is_known_by_source,
      CAST(NULL AS BOOLEAN) AS is_known_by_topic
    FROM silver_group_presence {_OF_BROADCAST}
    GROUP BY consumer_group
    UNION ALL
    SELECT consumer_group, min(IF(state = 'online', message_model, NULL)), NULL, NULL, bool_and(state <> 'unknown'), NULL
    FROM silver_proxy_presence {_OF_BROADCAST}
    GROUP BY consumer_group
    UNION ALL
    SELECT consumer_group, NULL, NULL, NULL, NULL, bool_or(group_state <> 'unknown')
    FROM gold_assignment_fairness {_OF_BROADCAST}
    GROUP BY consumer_group
  )
  CROSS JOIN proxies LEFT JOIN answer_of_proxy USING (consumer_group)
  GROUP BY consumer_group
),
own_report AS (
  SELECT
    consumer_group, client_id, count(consume_from_where) > 0 AS has_own_setting,
    IF(count(DISTINCT consume_from_where) = 1, max(consume_from_where), NULL) AS own_setting, min(consume_type) AS own_type,
    min(reports_queues) AS reports_queues
  FROM (
    SELECT consumer_group, client_id, state, consume_from_where, consume_type, reports_queues FROM silver_consumer_client {_OF_BROADCAST}
    UNION ALL
    SELECT consumer_group, client_id, state, consume_from_where, consume_type, reports_queues FROM silver_client_process {_OF_BROADCAST}
  )
  WHERE state = 'online'
  GROUP BY consumer_group, client_id
),
read_files AS (
  SELECT
    {_FILES}, bool_and(are_intact) AS are_intact,
    max_by(struct(main_word, bak_word, main_entries, bak_entries, is_readable), moment) AS text,
    array_sort(collect_list(struct(moment, main_word, bak_word, is_readable))) AS words
  FROM offset_file_snapshot
  WHERE NOT is_previous
  GROUP BY {_FILES}
),
previous_files AS (
  SELECT
    {_FILES}, greatest(main.modified_at, bak.modified_at) AS expected_previous_modified_at,
    -- Bytes that are not those of the index are no earlier snapshot.
    IF(are_intact, previous_ds, NULL) AS expected_previous_ds,
    -- Another client wrote the newest files, and its release alone says how they are read.
    IF(newest IS NULL OR is_go <=> newest.is_go, table_entries, NULL) AS previous_entries
  FROM offset_file_snapshot
  LEFT JOIN indexed_files USING ({_FILES})
  WHERE is_previous
),
judged_files AS (
  SELECT *
  FROM (
    SELECT *
    FROM gold_broadcast_offset_file
    LEFT JOIN indexed_files USING ({_FILES})
    LEFT JOIN read_files USING ({_FILES})
    LEFT JOIN previous_files USING ({_FILES})
    LEFT JOIN failed_files USING ({_FILES})
    LEFT JOIN hosts_of_client USING (consumer_group, client_id)
    LEFT JOIN connected_client USING (consumer_group, client_id)
    LEFT JOIN connection_of_client USING (consumer_group, client_id)
    LEFT JOIN release_of_client USING (consumer_group, client_id)
    LEFT JOIN release_of_group USING (consumer_group)
    LEFT JOIN broadcast_group USING (consumer_group)
    -- On a day that is judged without some groups, their files still show that the host landed.
    LEFT JOIN (
      SELECT host, TRUE AS is_host_landed FROM silver_offset_file WHERE state = 'landed'
      UNION SELECT host, TRUE FROM offset_file_content WHERE NOT is_previous
    ) USING (host)
  ) AS files
  LATERAL VIEW inline(array(struct(
    filter(words, w -> w.moment < newest.moment),
    coalesce(failed_moment >= newest.moment, failed_moment IS NOT NULL),
    IF(is_connected, TRUE, IF(is_known, FALSE, NULL)),
    coalesce(text.is_readable, FALSE),
    CASE
      WHEN main_state IN ('offsets', 'undecided') OR main_state = 'no_table' AND client_language <> 'GO' THEN 'main'
      WHEN client_language <> 'GO' AND bak_state IN ('offsets', 'no_table', 'undecided', 'refused') THEN 'bak'
    END))) AS earlier_words, is_failed, expected_is_online, is_read, expected_start_from
  LATERAL VIEW inline(array(struct(
    CASE
      WHEN main_state IS NULL OR expected_start_from = 'main' AND main_state = 'undecided' OR expected_start_from = 'bak' AND bak_state = 'undecided'
        THEN NULL
      WHEN expected_start_from = 'bak' AND bak_state = 'refused' THEN 'fails_to_start'
      WHEN expected_start_from = 'main' AND main_entry_count > 0 OR expected_start_from = 'bak' AND bak_entry_count > 0 THEN 'stored'
      ELSE 'default'
    END))) AS expected_outcome
  LATERAL VIEW inline(array(struct(
    CASE
      WHEN is_failed OR newest IS NULL AND other_language IS NOT NULL THEN 'unknown'
      WHEN newest IS NULL THEN IF(is_host_landed, 'missing', 'unknown')
      WHEN message_model = 'CLUSTERING' THEN 'clustering_group_with_file'
      WHEN NOT is_online AND age_ms > {OFFSET_FILE_ORPHAN_AFTER_MS} THEN 'orphan_dir'
      WHEN expected_outcome = 'fails_to_start' THEN 'corrupt_both'
      WHEN NOT is_online AND rlike(client_id, {quoted(PROCESS_BOUND_CLIENT_ID_PATTERN)}) THEN 'orphan_dir'
      WHEN expected_outcome IS NULL THEN 'unknown'
      WHEN process_count > host_count THEN IF(address_count <= host_count, 'shared_file', 'unknown')
      WHEN expected_outcome = 'default' THEN 'empty'
      WHEN expected_start_from = 'bak' THEN 'recovered_from_bak'
      WHEN is_online AND age_ms > {OFFSET_FILE_STALE_AFTER_MS} THEN 'stale'
      ELSE 'ok'
    END))) AS expected_state
  LATERAL VIEW inline(array(struct(
    coalesce(greatest(newest.main.size_bytes, newest.bak.size_bytes) > {MOST_OFFSET_FILE_BYTES}, FALSE),
    IF(client_language = 'GO', 'offset[.]json', 'offsets[.]json')))) AS is_too_large, file_name
  LATERAL VIEW inline(array(struct(
    {_shortcoming("main")}, {_shortcoming("bak", "[.]bak")}, {_holding("main")}, {_holding("bak", "[.]bak")}))) AS main_lack, bak_lack, main_holds, bak_holds
  LATERAL VIEW inline(array(struct(
    CASE
      WHEN is_failed THEN 'a file could not be read on its host'
      WHEN newest IS NULL AND other_language IS NOT NULL
        THEN concat('the client reports the language ', other_language, ', and only files of Java and Go clients are collected')
      WHEN newest IS NULL AND is_host_landed THEN 'no offset file was found on the host'
      WHEN newest IS NULL THEN IF(host IS NULL, 'no files landed of the client\\'s host', 'nothing landed of this host today')
      WHEN is_too_large THEN 'the (main|bak) file is larger than {MOST_OFFSET_FILE_BYTES} bytes and was not read'
      WHEN expected_state = 'unknown' AND expected_outcome IS NOT NULL THEN concat(
        coalesce(concat('the client id is connected from ', address_count, ' addresses, which are more than the hosts with its files'),
          'no broker and no proxy lists an address of the client id'), ': whether processes share a file is not known')
      WHEN expected_start_from = 'main' THEN main_holds
      WHEN expected_start_from = 'bak' AND bak_state = 'refused' THEN concat(main_lack, ', and offsets[.]json[.]bak cannot be read: .+')
      WHEN expected_start_from = 'bak' THEN concat(main_lack, ', so the client takes the other: ', bak_holds)
      WHEN client_language = 'GO' THEN main_lack
      ELSE concat(main_lack, ', and ', bak_lack)
    END))) AS expected_reason
),
-- Of the file that decides, the queues; null where it has another form.
text_of_start AS (
  SELECT
    {_FILES},
    CASE start_from WHEN 'main' THEN text.main_entries WHEN 'bak' THEN text.bak_entries
      ELSE slice(coalesce(text.main_entries, text.bak_entries, array()), 1, 0) END AS entries
  FROM gold_broadcast_offset_file JOIN read_files USING ({_FILES})
),
earlier_text AS (
  SELECT {_FILES}, bool_and(table_entries IS NOT NULL) AS is_whole, coalesce(flatten(collect_list(table_entries)), array()) AS entries
  FROM offset_file_snapshot
  JOIN (SELECT {_FILES}, newest.moment AS newest_moment FROM indexed_files) USING ({_FILES})
  WHERE NOT is_previous AND moment < newest_moment
  GROUP BY {_FILES}
),
judged_text AS (
  SELECT
    {_FILES}, {_QUEUE}, max(stored_offset) AS stored_offset, max(highest_earlier_offset) AS highest_earlier_offset,
    max(previous_offset) AS previous_offset, max(expected_stored) AS expected_stored, max(expected_highest) AS expected_highest,
    max(expected_previous) AS expected_previous, coalesce(bool_or(is_row), FALSE) AS is_row, bool_or(start.entries IS NOT NULL) AS is_compared,
    coalesce(bool_or(earlier.is_whole), TRUE) AS is_whole,
    coalesce(bool_or(previous_entries IS NOT NULL OR expected_previous_ds IS NULL), TRUE) AS is_previous_whole
  FROM (
    SELECT
      {_FILES}, {_QUEUE}, stored_offset, highest_earlier_offset, previous_offset, NULL AS expected_stored, NULL AS expected_highest,
      NULL AS expected_previous, TRUE AS is_row
    FROM gold_broadcast_offset
    UNION ALL
    SELECT {_FILES}, entry.topic, entry.brokerName, entry.queueId, NULL, NULL, NULL, entry.offset, NULL, NULL, FALSE
    FROM text_of_start LATERAL VIEW explode(entries) AS entry
    UNION ALL
    SELECT {_FILES}, entry.topic, entry.brokerName, entry.queueId, NULL, NULL, NULL, NULL, entry.offset, NULL, FALSE
    FROM earlier_text LATERAL VIEW explode(entries) AS entry
    UNION ALL
    SELECT {_FILES}, entry.topic, entry.brokerName, entry.queueId, NULL, NULL, NULL, NULL, NULL, entry.offset, FALSE
    FROM previous_files LATERAL VIEW explode(previous_entries) AS entry
  )
  LEFT JOIN text_of_start AS start USING ({_FILES})
  LEFT JOIN earlier_text AS earlier USING ({_FILES})
  LEFT JOIN previous_files USING ({_FILES})
  GROUP BY {_FILES}, {_QUEUE}
),
route_answer AS (
  SELECT topic, max(was_answered) AS was_answered, max(route_count) AS route_count
  FROM (
    SELECT topic, bool_or(state = 'payload' OR coalesce(error_code = 17, FALSE)) AS was_answered, NULL AS route_count
    FROM silver_export_record WHERE kind = 'nameserver_route'
    GROUP BY topic
    UNION ALL
    SELECT topic, NULL, count(DISTINCT nameserver) FROM silver_topic_route WHERE is_in_route GROUP BY topic
  )
  GROUP BY topic
),
readable_broker AS (
  SELECT topic, broker_name, collect_list(subscribe_queue_count) AS queue_counts
  FROM silver_topic_route WHERE is_in_route
  GROUP BY topic, broker_name
),
sourced_queue AS (
  SELECT *
  FROM (
    SELECT
      offsets.*, files.start_outcome, files.start_from AS source_of_files, IF(has_own_setting, own_setting, setting_at_brokers) AS reported_setting,
      coalesce(own_type, type_at_brokers) AS consume_type, coalesce(reports_queues, FALSE) AS is_lite_pull,
      files.previous_ds AS previous_ds_of_files, bounds.captured_at AS asked_at, bounds.last_stored_at AS reported_last_stored_at, was_answered, route_count, queue_counts,
      IF(files.start_from <=> 'bak', files.bak_modified_at, files.main_modified_at) AS stored_at, files.client_version
    FROM gold_broadcast_offset AS offsets
    LEFT JOIN gold_broadcast_offset_file AS files USING ({_FILES})
    LEFT JOIN broadcast_group USING (consumer_group)
    LEFT JOIN own_report USING (consumer_group, client_id)
    LEFT JOIN silver_queue_offset AS bounds USING ({_QUEUE})
    LEFT JOIN route_answer USING (topic)
    LEFT JOIN readable_broker USING (topic, broker_name)
  )
  LATERAL VIEW inline(array(struct(
    coalesce(size(filter(queue_counts, c -> queue_id >= 0 AND queue_id < c)), 0),
    coalesce(min_offset >= 0 AND max_offset >= 0, FALSE),
    coalesce(startswith(topic, '%RETRY%'), FALSE),
    greatest(stored_offset, memory_offset, highest_earlier_offset, previous_offset)))) AS readable_count, has_bounds, is_retry, reached
  LATERAL VIEW inline(array(struct(
    CASE
      WHEN state IN ('unused', 'orphan_queue') THEN NULL
      WHEN start_outcome = 'fails_to_start' THEN 'fails_to_start'
      WHEN start_outcome IS NULL THEN 'unknown'
      WHEN stored_offset < -1 THEN 'queue_skipped'
      WHEN stored_offset >= 0 AND NOT has_bounds THEN 'unknown'
      WHEN stored_offset >= 0 AND stored_offset < min_offset THEN 'corrected_by_broker_to_min'
      WHEN stored_offset > max_offset AND NOT coalesce(stored_at > asked_at, FALSE) THEN 'corrected_by_broker_to_max'
      WHEN stored_offset >= 0 THEN 'stored'
      WHEN consume_type <=> 'CONSUME_ACTIVELY' AND (NOT is_lite_pull OR rlike(client_version, '^4[.][0-6][.]')) THEN 'unknown'
      WHEN reported_setting = 'CONSUME_FROM_LAST_OFFSET' THEN 'default_last'
      WHEN reported_setting = 'CONSUME_FROM_FIRST_OFFSET' THEN 'default_first'
      WHEN reported_setting = 'CONSUME_FROM_TIMESTAMP' THEN 'default_timestamp'
      WHEN reported_setting IN {quoted_list(CONSUME_FROM_LAST_SETTINGS)} AND NOT consume_type <=> 'CONSUME_ACTIVELY' THEN 'default_last'
      ELSE 'unknown'
    END))) AS expected_reason
  LATERAL VIEW inline(array(struct(
    CASE expected_reason
      WHEN 'stored' THEN stored_offset
      WHEN 'corrected_by_broker_to_min' THEN min_offset
      WHEN 'corrected_by_broker_to_max' THEN max_offset
      WHEN 'default_last' THEN IF(has_bounds, IF(is_retry, min_offset, max_offset), NULL)
      WHEN 'default_first' THEN IF(has_bounds, min_offset, NULL)
      WHEN 'default_timestamp' THEN IF(has_bounds AND is_retry, max_offset, NULL)
    END))) AS expected_offset
  LATERAL VIEW inline(array(struct(
    expected_offset >= 0 AND reached >= 0 AND expected_reason <> 'corrected_by_broker_to_max'))) AS is_counted
)"""


def _differences(expected: Mapping[str, str]) -> str:
    """Return SQL for the differences between columns and their expected values, an empty text without any."""
    return f"concat_ws('; ', {', '.join(_difference(column, value) for column, value in expected.items())})"


def _difference(column: str, expected: str) -> str:
    return (
        f"IF({column} <=> ({expected}), NULL, concat('{column} is ', {text_or_null(column)}, ', expected ', "
        f"{text_or_null(f'({expected})')}))"
    )


def _word(column: str, side: str) -> str:
    """Return SQL for the expected state of a file: what size and text show, else any that the reader may give."""
    return f"IF(is_read, coalesce(text.{side}_word, IF({column} IN {quoted_list(_STATES_OF_READER)}, {column}, 'the word of a reader')), NULL)"


def _entry_count(side: str) -> str:
    return (
        f"IF({side}_state <=> 'offsets', coalesce(size(text.{side}_entries), {side}_entry_count, -1), NULL)"
    )


_STATES_OF_READER: Final = ("offsets", "no_table", "refused", "undecided")
_WORDS: Final = "|".join(_STATES_OF_READER)
_EARLIER: Final = (
    "transform(coalesce(earlier_words, array()), (w, i) -> concat(w.moment, ': ', IF(w.is_readable, concat("
    f"coalesce(w.main_word, regexp_extract(coalesce(get(earlier_snapshots, i), ''), ' ({_WORDS})/', 1)), '/', "
    f"coalesce(w.bak_word, regexp_extract(coalesce(get(earlier_snapshots, i), ''), '/({_WORDS})$', 1))), 'null/null')))"
)
_CONTENT_COLUMNS: Final = {
    "main_state": _word("main_state", "main"),
    "bak_state": _word("bak_state", "bak"),
    "main_entry_count": _entry_count("main"),
    "bak_entry_count": _entry_count("bak"),
    "earlier_snapshots": _EARLIER,
}
"""Column -> SQL for its value by size and text."""

_OF_FILES: Final = (
    "'host ', coalesce(host, 'unknown host'), ', client ', client_id, ', group ', consumer_group"
)
_OF_QUEUE: Final = (
    f"{_OF_FILES}, ', queue ', coalesce(topic, 'null'), '/', coalesce(broker_name, 'null'), '/', queue_id"
)


def _compared(relation: str, columns: Mapping[Expectation, Mapping[str, str]]) -> str:
    """Return a relation with one more column for each expectation: the differences from the expected values."""
    differences = ",\n    ".join(map(_differences, columns.values()))
    names = ", ".join(expectation.rule for expectation in columns)
    return f"(SELECT * FROM {relation}\n  LATERAL VIEW inline(array(struct(\n    {differences}))) AS {names})"


def _violation(expectation: Expectation, of: str, otherwise: str = "FALSE") -> Violation:
    return Violation(
        expectation, f"{expectation.rule} <> '' OR {otherwise}", f"concat({of}, ': ', {expectation.rule})"
    )


QUERIES: Final = (
    violations_in(
        _compared(
            "judged_files",
            {
                INDEX_EQUALS: _INDEX_COLUMNS,
                CLIENT_EQUALS: _CLIENT_COLUMNS,
                CONTENT_EQUALS: _CONTENT_COLUMNS,
                PREVIOUS_EQUALS: _PREVIOUS_COLUMNS,
                START_FOLLOWS: _START_COLUMNS,
            },
        ),
        (
            _violation(INDEX_EQUALS, _OF_FILES),
            _violation(CLIENT_EQUALS, _OF_FILES),
            _violation(CONTENT_EQUALS, _OF_FILES, "NOT are_intact"),
            _violation(PREVIOUS_EQUALS, _OF_FILES),
            _violation(START_FOLLOWS, _OF_FILES),
        ),
        ("consumer_group",),
    ),
    violations_in(
        "judged_text",
        (
            Violation(
                OFFSET_EQUALS,
                "is_compared AND NOT stored_offset <=> expected_stored OR is_row AND (expected_highest > highest_earlier_offset "
                "OR expected_highest IS NOT NULL AND highest_earlier_offset IS NULL "
                "OR is_whole AND NOT highest_earlier_offset <=> expected_highest "
                "OR is_previous_whole AND NOT previous_offset <=> expected_previous)",
                f"concat({_OF_QUEUE}, ': stored ', {text_or_null('stored_offset')}, ', earlier ', {text_or_null('highest_earlier_offset')}, "
                f"', earlier day ', {text_or_null('previous_offset')}, '; the files have ', {text_or_null('expected_stored')}, ', ', "
                f"{text_or_null('expected_highest')}, ' and ', {text_or_null('expected_previous')})",
            ),
        ),
        ("consumer_group", "topic", "broker_name"),
    ),
    violations_in(
        _compared("sourced_queue", {QUEUE_EQUALS: _QUEUE_COLUMNS, RESTART_RECOMPUTED: _RESTART_COLUMNS}),
        (_violation(QUEUE_EQUALS, _OF_QUEUE), _violation(RESTART_RECOMPUTED, _OF_QUEUE)),
        ("consumer_group", "topic", "broker_name"),
    ),
)
"""Violations of each row."""
