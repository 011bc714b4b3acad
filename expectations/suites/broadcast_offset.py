"""Expectations for the offset files of broadcasting clients: every landed file once, and every number has a source.

Belongs here: the expectations of `broadcast_offset_file` and `broadcast_offset`, recomputed from silver and from the rows' own
columns. Does not belong here: the content of a file, which only the reader of its client library determines.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.finding_sources import first_texts
from expectations.suites.model import Expectation, Suite, Violation, quoted_list, text_or_null, violations_in
from expectations.suites.presence import USERS_GROUP
from expectations.suites.thresholds import (
    BROADCAST_FINDING_KINDS,
    BROADCAST_OFFSET_STATES,
    OFFSET_FILE_FINDING_KINDS,
    OFFSET_FILE_ORPHAN_AFTER_MS,
    OFFSET_FILE_STATES,
    RESTARTS_WITH_STORED_OFFSET,
    RESTARTS_WITHOUT_STORED_OFFSET,
    UNDECIDED_OFFSET_FILE_KIND,
    UNREAD_OFFSET_FILE_STATES,
)
from rebalance_ledger.tables import BROADCAST_OFFSET, BROADCAST_OFFSET_FILE, FINDING, OFFSET_FILE

LINES_ACCOUNTED: Final = Expectation(
    OFFSET_FILE,
    "lines_accounted",
    "Every readable line of the offset file index has exactly one row; there are no other rows.",
    judges=(
        "line_number",
        "state",
    ),
)
FILES_ACCOUNTED: Final = Expectation(
    BROADCAST_OFFSET_FILE,
    "files_accounted",
    "Every landed file, and every file that failed to land, is counted in exactly one row: that "
    "of its host, client and group.",
    judges=(
        "host",
        "client_id",
        "consumer_group",
        "landed_file_count",
        "failed_file_count",
        "offset_file.host",
        "offset_file.client_id",
        "offset_file.consumer_group",
    ),
)
FILE_STATE_KNOWN: Final = Expectation(
    BROADCAST_OFFSET_FILE,
    "state_known",
    "The state is from the closed list.",
    judges=("state",),
)
FILE_STATE_FOLLOWS: Final = Expectation(
    BROADCAST_OFFSET_FILE,
    "state_follows_evidence",
    "The state follows from the row's own evidence: the content of the files, processes, hosts and age.",
)
OFFSET_STATE_KNOWN: Final = Expectation(
    BROADCAST_OFFSET, "state_known", "The state is from the closed list.", judges=("state",)
)
OFFSET_HAS_FILE: Final = Expectation(
    BROADCAST_OFFSET,
    "offset_has_file",
    "Every queue has a row of the same host, client and group in broadcast_offset_file; every "
    "offset has a file as its source.",
    judges=(
        "host",
        "client_id",
        "consumer_group",
        "file_state",
    ),
)
BOUNDS_EQUAL_BROKER: Final = Expectation(
    BROADCAST_OFFSET,
    "bounds_equal_broker",
    "Minimum and maximum offset equal those of the queue's broker, and are null where the broker "
    "reported none.",
    judges=(
        "topic",
        "broker_name",
        "queue_id",
        "min_offset",
        "max_offset",
    ),
)
MEMORY_EQUALS_CLIENT: Final = Expectation(
    BROADCAST_OFFSET,
    "memory_equals_client",
    "The offset in memory equals the client's report, and is null where the client reported none.",
    judges=("memory_offset",),
)
NUMBERS_FOLLOW: Final = Expectation(
    BROADCAST_OFFSET,
    "lag_consistent_with_bounds",
    "Lag and lost messages follow from offset and bounds; no number is negative, except the lag "
    "of `ahead_of_max`.",
    judges=(
        "lag_message_count",
        "lost_message_count",
    ),
)
STATE_FOLLOWS_OFFSETS: Final = Expectation(
    BROADCAST_OFFSET,
    "state_follows_offsets",
    "No offset with state `ok` is missing, outside of the log, gone back or without a bound to compare with.",
)
RESTART_FOLLOWS: Final = Expectation(
    BROADCAST_OFFSET,
    "restart_follows",
    "The restart is from the closed list and matches the stored offset, and its skipped and "
    "repeated messages follow from the offsets.",
)
QUEUES_COMPLETE: Final = Expectation(
    BROADCAST_OFFSET,
    "queues_complete",
    "Every readable queue of the topics to which a broadcasting group subscribes has a row for each of its clients whose files are read.",
)
BROADCAST_REPORTED: Final = Expectation(
    FINDING,
    "broadcast_has_finding",
    "Every client with a problem in its offset files or queues has a finding of it, with the number of queues and processes, and the "
    "first hosts, reasons and queues; no other client has one.",
    judges=("queue_count", "process_count", "seen_values", "examples"),
)

SUITE: Final = Suite(
    "broadcast_offset",
    (
        LINES_ACCOUNTED,
        FILES_ACCOUNTED,
        FILE_STATE_KNOWN,
        FILE_STATE_FOLLOWS,
        OFFSET_STATE_KNOWN,
        OFFSET_HAS_FILE,
        BOUNDS_EQUAL_BROKER,
        MEMORY_EQUALS_CLIENT,
        NUMBERS_FOLLOW,
        STATE_FOLLOWS_OFFSETS,
        RESTART_FOLLOWS,
        QUEUES_COMPLETE,
        BROADCAST_REPORTED,
    ),
)

_FILES = "coalesce(host, 'unknown host'), ', client ', client_id, ', group ', consumer_group"
_FILE_NAME = f"concat('host ', {_FILES})"
_QUEUE_NAME = f"concat('host ', {_FILES}, ', queue ', coalesce(topic, 'null'), '/', coalesce(broker_name, 'null'), '/', queue_id)"

# State -> SQL boolean over a row of `broadcast_offset_file` for its evidence.
_EVIDENCE: Final = {
    "ok": "start_outcome = 'stored' AND start_from = 'main' AND process_count <= host_count IS NOT FALSE",
    "recovered_from_bak": "start_outcome = 'stored' AND start_from = 'bak'",
    "corrupt_both": "start_outcome = 'fails_to_start'",
    "empty": "start_outcome = 'default' AND (main_state <> 'missing' OR bak_state <> 'missing')",
    "missing": "start_outcome = 'default' AND coalesce(main_state, 'missing') = 'missing' "
    "AND coalesce(bak_state, 'missing') = 'missing' AND host IS NOT NULL",
    "stale": "start_outcome = 'stored' AND is_online AND age_ms > 3600000",
    "orphan_dir": "is_online = FALSE AND moment IS NOT NULL "
    f"AND (NOT start_outcome <=> 'fails_to_start' OR age_ms > {OFFSET_FILE_ORPHAN_AFTER_MS})",
    "shared_file": "process_count > host_count AND moment IS NOT NULL AND start_outcome <> 'fails_to_start'",
    "clustering_group_with_file": "message_model = 'CLUSTERING' AND start_outcome IS NULL",
    "unknown": "start_outcome IS NULL AND reason IS NOT NULL",
}
_FOLLOWS = " ".join(f"WHEN '{state}' THEN {evidence}" for state, evidence in _EVIDENCE.items())

_KIND_OF_FILES = (
    f"CASE WHEN state = 'unknown' AND 'undecided' IN (main_state, bak_state) THEN '{UNDECIDED_OFFSET_FILE_KIND}' "
    + " ".join(f"WHEN state = '{state}' THEN '{kind}'" for state, kind in OFFSET_FILE_FINDING_KINDS.items())
    + " END"
)
_KIND_OF_QUEUES = " ".join(f"WHEN '{state}' THEN '{kind}'" for state, kind in BROADCAST_FINDING_KINDS.items())
_KINDS = (
    *dict.fromkeys(OFFSET_FILE_FINDING_KINDS.values()),
    UNDECIDED_OFFSET_FILE_KIND,
    *BROADCAST_FINDING_KINDS.values(),
)

COMMON_TABLES: Final = f"""
file_of_index AS (
  SELECT host, client_id, consumer_group, count_if(state = 'landed') AS landed, count_if(state = 'failed') AS failed
  FROM silver_offset_file
  WHERE {USERS_GROUP}
  GROUP BY host, client_id, consumer_group
),
counted_file AS (
  SELECT
    host, client_id, consumer_group,
    coalesce(landed, 0) AS landed, coalesce(failed, 0) AS failed,
    coalesce(given_landed, 0) AS given_landed, coalesce(given_failed, 0) AS given_failed
  FROM file_of_index
  FULL OUTER JOIN (
    SELECT
      host, client_id, consumer_group, sum(landed_file_count) AS given_landed, sum(failed_file_count) AS given_failed
    FROM gold_broadcast_offset_file
    WHERE host IS NOT NULL
    GROUP BY host, client_id, consumer_group
  ) USING (host, client_id, consumer_group)
),
indexed_line AS (
  SELECT
    line_number, coalesce(there, 0) AS there, coalesce(given, 0) AS given, state, given_state,
    coalesce(consumer_group, given_group) AS consumer_group
  FROM (
    SELECT line_number, consumer_group, 1 AS there, IF(state = 'error', 'failed', 'landed') AS state
    -- The table of export lines stays complete on a day that is judged without some groups.
    FROM silver_export_record LEFT ANTI JOIN excluded_group USING (consumer_group)
    WHERE kind = 'offset_file' AND state <> 'rejected'
  )
  FULL OUTER JOIN (
    SELECT line_number, count(*) AS given, min(state) AS given_state, min(consumer_group) AS given_group
    FROM silver_offset_file
    GROUP BY line_number
  ) USING (line_number)
),
judged_offset AS (
  SELECT
    o.*,
    f.state AS state_of_files,
    f.start_from AS source_of_files,
    b.min_offset AS reported_min,
    b.max_offset AS reported_max,
    m.memory_offset AS reported_memory,
    greatest(o.highest_earlier_offset, o.previous_offset) AS before,
    greatest(o.stored_offset, o.memory_offset, o.highest_earlier_offset, o.previous_offset) AS reached
  FROM gold_broadcast_offset AS o
  LEFT JOIN gold_broadcast_offset_file AS f USING (host, client_id, consumer_group)
  LEFT JOIN silver_queue_offset AS b
    ON o.topic = b.topic AND o.broker_name = b.broker_name AND o.queue_id = b.queue_id
  LEFT JOIN silver_memory_offset AS m
    ON o.consumer_group = m.consumer_group AND o.client_id = m.client_id
    AND o.topic = m.topic AND o.broker_name = m.broker_name AND o.queue_id = m.queue_id
),
reported_broadcast AS (
  SELECT
    consumer_group, client_id, topic, kind, max(is_there) AS is_there, max(is_reported) AS is_reported,
    to_json(struct(
      nullif(sum(queue_count), 0) AS queue_count, max(process_count) AS process_count,
      IF(size(collect_set(reason)) = 0 AND topic IS NOT NULL, NULL, {first_texts("collect_set(reason)")}) AS seen_values,
      {first_texts("collect_set(example)")} AS examples
    )) AS measures,
    max(measures) AS reported_measures
  FROM (
    SELECT
      consumer_group, client_id, CAST(NULL AS STRING) AS topic, {_KIND_OF_FILES} AS kind,
      TRUE AS is_there, FALSE AS is_reported, CAST(0 AS BIGINT) AS queue_count,
      CAST(nullif(greatest(process_count, 0), 0) AS BIGINT) AS process_count, reason, coalesce(host, 'unknown host') AS example,
      CAST(NULL AS STRING) AS measures
    FROM gold_broadcast_offset_file
    UNION ALL
    SELECT
      consumer_group, client_id, topic, CASE state {_KIND_OF_QUEUES} END, TRUE, FALSE, 1, CAST(NULL AS BIGINT), CAST(NULL AS STRING),
      concat(broker_name, '/', CAST(queue_id AS STRING)), CAST(NULL AS STRING)
    FROM gold_broadcast_offset
    UNION ALL
    SELECT
      consumer_group, client_id, topic, kind, FALSE, TRUE, 0, CAST(NULL AS BIGINT), CAST(NULL AS STRING), CAST(NULL AS STRING),
      to_json(struct(
        CAST(queue_count AS BIGINT) AS queue_count, CAST(process_count AS BIGINT) AS process_count, seen_values, examples
      ))
    FROM gold_finding
    WHERE kind IN {quoted_list(_KINDS)}
  )
  WHERE kind IS NOT NULL
  GROUP BY consumer_group, client_id, topic, kind
)"""

_HAS_STORED = f"restart_reason IN {quoted_list(RESTARTS_WITH_STORED_OFFSET)}"
_HAS_NONE = f"restart_reason IN {quoted_list(RESTARTS_WITHOUT_STORED_OFFSET)}"
_LAG = "try_subtract(max_offset, stored_offset)"

QUERIES: Final = (
    violations_in(
        "indexed_line",
        (
            Violation(
                LINES_ACCOUNTED,
                "there <> given OR state <> given_state",
                "concat('line ', line_number, ', group ', consumer_group, ': ', given, ' rows, expected ', there)",
            ),
        ),
        ("consumer_group",),
    ),
    violations_in(
        "counted_file",
        (
            Violation(
                FILES_ACCOUNTED,
                "landed <> given_landed OR failed <> given_failed",
                f"concat({_FILE_NAME}, ': ', given_landed, ' files and ', given_failed, ' failures are counted, expected ', "
                "landed, ' and ', failed)",
            ),
        ),
        ("consumer_group",),
    ),
    violations_in(
        "gold_broadcast_offset_file",
        (
            Violation(
                FILE_STATE_KNOWN,
                f"NOT coalesce(state, '') IN {quoted_list(OFFSET_FILE_STATES)}",
                f"concat({_FILE_NAME}, ': ', {text_or_null('state')})",
            ),
            Violation(
                FILE_STATE_FOLLOWS,
                f"NOT coalesce(CASE state {_FOLLOWS} ELSE TRUE END, FALSE)",
                f"concat({_FILE_NAME}, ' is ', state, ', starts ', {text_or_null('start_outcome')}, ' from ', "
                f"{text_or_null('start_from')}, ', files are ', {text_or_null('main_state')}, ' and ', "
                f"{text_or_null('bak_state')})",
            ),
        ),
        ("consumer_group",),
    ),
    violations_in(
        "judged_offset",
        (
            Violation(
                OFFSET_STATE_KNOWN,
                f"NOT coalesce(state, '') IN {quoted_list(BROADCAST_OFFSET_STATES)}",
                f"concat({_QUEUE_NAME}, ': ', {text_or_null('state')})",
            ),
            Violation(
                OFFSET_HAS_FILE,
                "state_of_files IS NULL OR NOT state_of_files <=> file_state "
                "OR (stored_offset IS NOT NULL AND source_of_files IS NULL) "
                f"OR (state = 'unused') <> (state_of_files IN {quoted_list(UNREAD_OFFSET_FILE_STATES)})",
                f"concat({_QUEUE_NAME}, ': offset ', {text_or_null('stored_offset')}, ', files ', "
                f"{text_or_null('state_of_files')}, ' read from ', {text_or_null('source_of_files')})",
            ),
            Violation(
                BOUNDS_EQUAL_BROKER,
                "NOT min_offset <=> reported_min OR NOT max_offset <=> reported_max",
                f"concat({_QUEUE_NAME}, ': ', {text_or_null('min_offset')}, ' to ', {text_or_null('max_offset')}, "
                f"', the broker reports ', {text_or_null('reported_min')}, ' to ', {text_or_null('reported_max')})",
            ),
            Violation(
                MEMORY_EQUALS_CLIENT,
                "NOT memory_offset <=> reported_memory",
                f"concat({_QUEUE_NAME}, ': ', {text_or_null('memory_offset')}, ', the client reports ', "
                f"{text_or_null('reported_memory')})",
            ),
            Violation(
                NUMBERS_FOLLOW,
                f"(lag_message_count < 0 AND state <> 'ahead_of_max') OR lag_message_count <> {_LAG} "
                f"OR (lag_message_count IS NULL AND {_LAG} >= 0 AND stored_offset >= 0) "
                "OR NOT lost_message_count <=> "
                "IF(stored_offset >= 0 AND min_offset IS NOT NULL, greatest(try_subtract(min_offset, stored_offset), 0), NULL) "
                "OR lag_message_count IS NOT NULL AND (max_offset IS NULL OR coalesce(stored_offset, -1) < 0)",
                f"concat({_QUEUE_NAME}, ': lag ', {text_or_null('lag_message_count')}, ', lost ', "
                f"{text_or_null('lost_message_count')}, ' at offset ', {text_or_null('stored_offset')})",
            ),
            Violation(
                STATE_FOLLOWS_OFFSETS,
                "NOT coalesce(CASE state "
                "WHEN 'ok' THEN stored_offset >= min_offset AND max_offset IS NOT NULL AND NOT stored_offset < before IS TRUE "
                "AND is_routed IS NOT FALSE "
                "WHEN 'behind_min' THEN stored_offset < min_offset "
                "WHEN 'ahead_of_max' THEN stored_offset > max_offset "
                "WHEN 'regressed' THEN stored_offset < before "
                "WHEN 'stale' THEN stored_offset = previous_offset AND stored_offset < max_offset "
                "AND NOT memory_offset > stored_offset IS TRUE "
                "WHEN 'no_offset' THEN coalesce(stored_offset, -1) < 0 "
                "WHEN 'orphan_queue' THEN NOT is_routed "
                "ELSE TRUE END, FALSE)",
                f"concat({_QUEUE_NAME}, ' is ', state, ' at offset ', {text_or_null('stored_offset')})",
            ),
            Violation(
                RESTART_FOLLOWS,
                f"NOT ({_HAS_STORED} OR {_HAS_NONE} OR restart_reason = 'unknown' "
                "OR (restart_reason IS NULL AND state IN ('unused', 'orphan_queue'))) IS TRUE "
                f"OR ({_HAS_STORED} AND stored_offset IS NULL) OR ({_HAS_NONE} AND stored_offset >= 0) "
                "OR (restart_reason = 'stored' AND restart_offset <> stored_offset) "
                "OR (restart_reason = 'corrected_by_broker_to_min' AND restart_offset <> min_offset) "
                "OR (restart_reason = 'corrected_by_broker_to_max' AND restart_offset <> max_offset) "
                "OR (restart_reason = 'fails_to_start' AND file_state <> 'corrupt_both') "
                "OR skipped_message_count < 0 OR repeated_message_count < 0 "
                "OR skipped_message_count - repeated_message_count <> try_subtract(restart_offset, reached)",
                f"concat({_QUEUE_NAME}, ': ', {text_or_null('restart_reason')} , ' at ', {text_or_null('restart_offset')}, "
                f"', skips ', {text_or_null('skipped_message_count')}, ', repeats ', {text_or_null('repeated_message_count')})",
            ),
        ),
        ("consumer_group", "topic", "broker_name"),
    ),
    violations_in(
        f"""(
  SELECT host, client_id, consumer_group, topic, broker_name, queue_id
  FROM gold_broadcast_offset_file
  JOIN (
    SELECT consumer_group, topic, broker_name, queue_id
    FROM gold_ownership_drift
    WHERE group_state = 'broadcasting' AND route_state = 'known' AND is_routed AND NOT startswith(topic, '%RETRY%')
  ) USING (consumer_group)
  LEFT ANTI JOIN gold_broadcast_offset USING (host, client_id, consumer_group, topic, broker_name, queue_id)
  WHERE host IS NOT NULL AND NOT state IN {quoted_list(("unknown", *UNREAD_OFFSET_FILE_STATES))}
)""",
        (Violation(QUEUES_COMPLETE, "TRUE", f"concat({_QUEUE_NAME}, ' has no row')"),),
        ("consumer_group", "topic", "broker_name"),
    ),
    violations_in(
        "reported_broadcast",
        (
            Violation(
                BROADCAST_REPORTED,
                "is_there <> is_reported",
                "concat('group ', consumer_group, ', client ', client_id, coalesce(concat(', topic ', topic), ''), ': ', kind, "
                "IF(is_reported, ' has a finding but no evidence', ' has no finding'))",
            ),
            Violation(
                BROADCAST_REPORTED,
                "is_there AND is_reported AND NOT measures <=> reported_measures",
                "concat('group ', consumer_group, ', client ', client_id, coalesce(concat(', topic ', topic), ''), ': ', kind, ' has ', "
                f"{text_or_null('reported_measures')}, ', the tables have ', measures)",
            ),
        ),
        ("consumer_group", "topic"),
    ),
)
"""Violations of each table."""
