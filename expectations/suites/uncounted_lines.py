"""Comparison of uncounted lines with the export: those that do not count, because another line answers the same, and those that were rejected.

The build numbers lines and decides which answer counts. This module reads the same lines again, in Spark SQL, without their numbers: for
each request it finds the answer that counts, how many lines repeat it, and whether a rejected text is that of a line. It reads the files
with such lines only, of the view `export_line` (kind string, value string).

Belongs here: lines that do not count, and rejected lines. Does not belong here: the values of other lines (`export_comparison`), and
the words of the build's parser.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.model import Expectation, Suite, Violation, quoted, violations_in
from expectations.suites.thresholds import CODES_OF_ANSWERS, NOT_ONLINE_TEXT, SUSPICIOUS_PATTERN
from rebalance_ledger.tables.silver.export_record import EXPORT_RECORD
from rebalance_ledger.tables.silver.rejected_record import REJECTED_RECORD

REPEATS_EQUAL: Final = Expectation(
    EXPORT_RECORD,
    "repeats_equal_export",
    "Of the lines that answer one request, the newest answer counts, and as many of the others are repeats as have its content.",
    judges=("is_repeat",),
)
TEXT_EQUALS: Final = Expectation(
    REJECTED_RECORD,
    "text_equals_export",
    "Every rejected text is that of a line of the same kind, or of its payload, except where a secret was removed.",
    judges=("text",),
)

REASON_FITS_TEXT: Final = Expectation(
    REJECTED_RECORD,
    "reason_fits_text",
    "Every reason is a sentence of the parser, names only fields and places that the rejected text has, and of contradicting lines its own.",
    severity="warn",
    judges=("reason",),
)

SUITE: Final = Suite("uncounted_lines", (REPEATS_EQUAL, TEXT_EQUALS, REASON_FITS_TEXT))

_ENVELOPE: Final = (
    "nameserver string, broker string, `group` string, topic string, client_id string, process string, proxy string, "
    "broker_addr string, captured_at timestamp, payload string, error struct<type: string, message: string>"
)
_REDACTED: Final = "<redacted>"
_REPLACEMENT: Final = "\ufffd"
"""What decoders write for bytes that are no text."""
_SUBJECT: Final = "kind, nameserver, asked_broker, consumer_group, topic, client_id"
# One member's answer is the same, whichever broker passed the request on.
_ASKED_BROKER: Final = "IF(client_id IS NULL, broker_name, NULL) AS asked_broker"
_ERROR_CODE: Final = (
    "try_cast(regexp_extract(error.message, '^CODE: ([0-9]{1,9})([^0-9A-Za-z_]|$)', 1) AS INT)"
)
_IS_REPLY: Final = (
    f"payload IS NOT NULL OR coalesce({_ERROR_CODE} IN ({', '.join(map(str, CODES_OF_ANSWERS))}), FALSE) "
    f"OR coalesce(contains(error.message, {quoted(NOT_ONLINE_TEXT)}), FALSE)"
)

_REASON_PATTERN: Final = (
    r"^(line [0-9]+, column [0-9]+: |(a key of )?the payload|lines [0-9, ]+( and [0-9]+ more)? answer one question at one instant"
    r"|not JSON |not a JSON object; |the line is empty; |byte [0-9]+ is not UTF-8; |(kind is|cluster|neither|path) |['\"]|[A-Za-z-]+ is not JSON)"
)
"""How the sentences begin of `EnvelopeError`, `PayloadError`, `RocketMQJsonError` and of contradicting lines."""
_PATH: Final = "regexp_extract(reason, '^(a key of )?(the payload[^ ]*)', 2)"
# The parser reads a map of queues or groups as a field of that name.
_NAMES_OF_PARSER: Final = "array('queues', 'groups')"
_NAMED: Final = f"array_except(regexp_extract_all({_PATH}, '[.]([A-Za-z]{{2,}})', 1), {_NAMES_OF_PARSER})"
_LAST_NAME: Final = "regexp_extract(reason, '[.]([A-Za-z]+) is missing$', 1)"
_HAS_UNKNOWN_NAME: Final = rf"NOT contains(text, {quoted(chr(92))}) AND exists({_NAMED}, name -> name <> {_LAST_NAME} AND NOT contains(text, name))"
_IS_BEYOND_TEXT: Final = (
    "coalesce(try_cast(regexp_extract(reason, '^line ([0-9]+), column ', 1) AS INT) > size(split(text, '\n')), FALSE) "
    "OR coalesce(try_cast(regexp_extract(reason, '^not JSON at column ([0-9]+): ', 1) AS INT) > length(text) + 1, FALSE)"
)
_CONTRADICTING: Final = "regexp_extract(reason, '^lines ([0-9]+(, [0-9]+)*) answer one question', 1)"
_IS_OF_OTHER_LINES: Final = f"{_CONTRADICTING} <> '' AND NOT array_contains(split({_CONTRADICTING}, ', '), CAST(line_number AS STRING))"

COMMON_TABLES: Final = f"""
envelope_line AS (
  SELECT
    kind, value, nameserver, {_ASKED_BROKER}, consumer_group, topic, client_id, process, proxy, broker_addr, payload,
    struct(captured_at, payload IS NOT NULL AS is_payload) AS moment, {_IS_REPLY} AS is_reply, xxhash64(payload, error) AS answer,
    kind <> 'broker_config' AND NOT rlike(value, {quoted(SUSPICIOUS_PATTERN)}) AS is_plain
  FROM (
    SELECT kind, value FROM export_line
    WHERE kind IN (SELECT kind FROM silver_export_record WHERE state = 'rejected' OR counted_line IS NOT NULL)
  )
  LATERAL VIEW inline(array(from_json(value, {quoted(_ENVELOPE)})))
    AS nameserver, broker_name, consumer_group, topic, client_id, process, proxy, broker_addr, captured_at, payload, error
),
answered_request AS (
  SELECT
    {_SUBJECT}, count(*) AS line_count, max(moment) AS moment, count_if(answer = counted_answer) - 1 AS same_count,
    -- Of a broker with several addresses one counts before the other; and of two failures of one instant the first line.
    bool_and(is_plain) AS is_plain, count(DISTINCT coalesce(broker_addr, '')) = 1 AND count(DISTINCT IF(is_counted, answer, NULL)) = 1 AS is_sure
  FROM (
    SELECT *, max(IF(is_counted, answer, NULL)) OVER (PARTITION BY {_SUBJECT}, process, proxy) AS counted_answer
    FROM (
      SELECT *, struct(is_reply, moment) = max(struct(is_reply, moment)) OVER (PARTITION BY {_SUBJECT}, process, proxy) AS is_counted
      FROM envelope_line
      WHERE moment.captured_at IS NOT NULL
    )
  )
  GROUP BY {_SUBJECT}, process, proxy
),
expected_repeats AS (
  SELECT
    {_SUBJECT}, sum(line_count) AS line_count, sum(same_count) AS same_count, bool_and(is_plain) AS is_plain, bool_and(is_sure) AS is_sure
  FROM answered_request
  GROUP BY {_SUBJECT}
),
judged_repeats AS (
  SELECT seen.*, line_count, same_count, is_plain, is_sure
  FROM (
    SELECT
      {_SUBJECT}, count(*) AS record_count, count_if(is_repeat) AS repeat_count, bool_or(state = 'rejected') AS has_rejected,
      min(struct(file, line_number)) AS first_record
    FROM (SELECT *, {_ASKED_BROKER} FROM silver_export_record)
    GROUP BY {_SUBJECT}
    HAVING bool_or(counted_line IS NOT NULL)
  ) AS seen
  JOIN expected_repeats AS expected
    ON {" AND ".join(f"seen.{name.strip()} <=> expected.{name.strip()}" for name in _SUBJECT.split(","))}
),
judged_rejection AS (
  SELECT file, line_number, reason, rejected.text, rejected.kind, is_found
  FROM silver_rejected_record AS rejected
  LEFT JOIN (
    SELECT DISTINCT kind, text, TRUE AS is_found
    FROM envelope_line
    LATERAL VIEW explode(array_compact(array(value, payload))) AS text
    WHERE text IN (SELECT text FROM silver_rejected_record)
  ) USING (kind, text)
)"""

QUERIES: Final = (
    violations_in(
        "judged_repeats",
        (
            Violation(
                REPEATS_EQUAL,
                "is_sure AND NOT has_rejected AND record_count = line_count "
                "AND (repeat_count < same_count OR is_plain AND repeat_count > same_count)",
                "concat('file ', first_record.file, ', line ', first_record.line_number, ': ', repeat_count, ' of ', record_count, "
                "' lines repeat the one that counts, in the export ', same_count)",
            ),
        ),
        ("consumer_group", "topic"),
    ),
    violations_in(
        "judged_rejection",
        (
            Violation(
                TEXT_EQUALS,
                f"is_found IS NULL AND NOT contains(text, {quoted(_REDACTED)}) AND NOT contains(text, '{_REPLACEMENT}')",
                "concat('file ', file, ', line ', line_number)",
            ),
            Violation(
                REASON_FITS_TEXT,
                f"NOT rlike(reason, {quoted(_REASON_PATTERN)}) OR NOT contains(text, {quoted(_REDACTED)}) "
                f"AND ({_HAS_UNKNOWN_NAME} OR {_IS_BEYOND_TEXT} OR {_IS_OF_OTHER_LINES})",
                "concat('file ', file, ', line ', line_number, ': ', reason)",
            ),
        ),
    ),
)
