"""Expectations for the silver tables together: no line of the export is lost on the way in.

Belongs here: counts compared with the export's manifest, and facts that must have a source. Does not belong here: the integrity of the
export itself, which the hashes in its manifest prove before anything is read.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.model import Expectation, Suite, Violation, quoted, subject_columns, violations_in
from expectations.suites.thresholds import MOST_REJECTED_RATIO
from rebalance_ledger.tables.silver.export_record import EXPORT_RECORD
from rebalance_ledger.tables.silver.group_presence import GROUP_PRESENCE
from rebalance_ledger.tables.silver.observed_owner import OBSERVED_OWNER
from rebalance_ledger.tables.silver.rejected_record import REJECTED_RECORD

LINES_EQUAL_MANIFEST: Final = Expectation(
    EXPORT_RECORD,
    "lines_equal_manifest",
    "Every file of the manifest has as many lines in the table as the manifest states, numbered from 1; "
    "no other file has lines.",
    judges=("file", "line_number"),
)
ERRORS_EQUAL_MANIFEST: Final = Expectation(
    EXPORT_RECORD,
    "errors_equal_manifest",
    "Every file of the manifest has as many failed sources in the table as the manifest states.",
)
REJECTED_HAS_TEXT: Final = Expectation(
    EXPORT_RECORD,
    "rejected_has_text",
    "Every unreadable line is in rejected_record with its text.",
)
COUNTED_LINE_ANSWERS: Final = Expectation(
    EXPORT_RECORD,
    "counted_line_answers",
    "Every line that does not count names another line of its file, which answers the same "
    "request and names none itself.",
    judges=("counted_line", "is_repeat"),
)
REJECTED_IS_LINE: Final = Expectation(
    REJECTED_RECORD,
    "is_line_of_export",
    "Every rejected record is a line in export_record of the same kind, which could not be read.",
    judges=(
        "kind",
        "file",
        "line_number",
    ),
)
REJECTED_ARE_FEW: Final = Expectation(
    REJECTED_RECORD,
    "count_within_limit",
    "The share of unreadable export lines is within the limit.",
    severity="warn",
    threshold_max=MOST_REJECTED_RATIO,
)
OWNER_ANSWERED: Final = Expectation(
    OBSERVED_OWNER,
    "client_answered",
    "Every client that was observed to own a queue is one that answered.",
    judges=(
        "consumer_client.consumer_group",
        "consumer_client.client_id",
    ),
)
SOME_GROUP_ONLINE: Final = Expectation(
    GROUP_PRESENCE,
    "some_online",
    "At least one group is online.",
    severity="warn",
    threshold_min=1.0,
    threshold_max=None,
)

SUITE: Final = Suite(
    "export",
    (
        LINES_EQUAL_MANIFEST,
        ERRORS_EQUAL_MANIFEST,
        REJECTED_HAS_TEXT,
        COUNTED_LINE_ANSWERS,
        REJECTED_IS_LINE,
        REJECTED_ARE_FEW,
        OWNER_ANSWERED,
        SOME_GROUP_ONLINE,
    ),
)

_LINES_AGAINST_MANIFEST = """(
  SELECT
    coalesce(file, path) AS file, path, line_count AS expected_line_count, error_count AS expected_error_count,
    coalesce(seen_line_count, 0) AS seen_line_count, coalesce(seen_error_count, 0) AS seen_error_count,
    first_line, last_line
  FROM (
    SELECT
      file, count(*) AS seen_line_count, count_if(state = 'error') AS seen_error_count,
      min(line_number) AS first_line, max(line_number) AS last_line
    FROM silver_export_record
    GROUP BY file
  )
  FULL OUTER JOIN manifest_file ON path = file
)"""

QUERIES: Final = (
    violations_in(
        _LINES_AGAINST_MANIFEST,
        (
            Violation(
                LINES_EQUAL_MANIFEST,
                "path IS NULL OR seen_line_count <> expected_line_count OR first_line <> 1 OR last_line <> expected_line_count",
                "concat('file ', file, ': ', seen_line_count, ' lines', coalesce(concat(' from ', first_line, ' to ', last_line), ''), "
                "', manifest: ', coalesce(CAST(expected_line_count AS STRING), 'none'))",
            ),
            Violation(
                ERRORS_EQUAL_MANIFEST,
                "seen_error_count <> expected_error_count",
                "concat('file ', file, ': ', seen_error_count, ' failed sources, manifest: ', "
                "expected_error_count)",
            ),
        ),
    ),
    violations_in(
        """(
  SELECT * FROM silver_export_record
  LEFT ANTI JOIN silver_rejected_record USING (file, line_number)
  WHERE state = 'rejected'
)""",
        [Violation(REJECTED_HAS_TEXT, "TRUE", "concat('file ', file, ', line ', line_number)")],
    ),
    violations_in(
        """(
  SELECT repeat.file, repeat.line_number, repeat.counted_line
  FROM silver_export_record AS repeat
  LEFT ANTI JOIN silver_export_record AS line
    ON line.file = repeat.file AND line.line_number = repeat.counted_line
    AND repeat.is_repeat IS NOT NULL AND line.line_number <> repeat.line_number AND line.counted_line IS NULL AND line.kind = repeat.kind
    AND line.nameserver <=> repeat.nameserver AND line.consumer_group <=> repeat.consumer_group
    AND line.topic <=> repeat.topic AND line.client_id <=> repeat.client_id
    AND (line.broker_name <=> repeat.broker_name OR line.client_id IS NOT NULL)
  WHERE repeat.counted_line IS NOT NULL OR repeat.is_repeat IS NOT NULL
)""",
        [
            Violation(
                COUNTED_LINE_ANSWERS,
                "TRUE",
                "concat('file ', file, ', line ', line_number, ': line ', coalesce(CAST(counted_line AS STRING), 'null'))",
            )
        ],
    ),
    violations_in(
        """(
  SELECT * FROM silver_rejected_record
  LEFT ANTI JOIN (SELECT kind, file, line_number FROM silver_export_record WHERE state = 'rejected') USING (kind, file, line_number)
)""",
        [Violation(REJECTED_IS_LINE, "TRUE", "concat('file ', file, ', line ', line_number, ': ', reason)")],
    ),
    violations_in(
        """(
  SELECT * FROM (SELECT DISTINCT consumer_group, client_id FROM silver_observed_owner)
  LEFT ANTI JOIN (SELECT * FROM silver_consumer_client WHERE state = 'online') USING (consumer_group, client_id)
)""",
        [Violation(OWNER_ANSWERED, "TRUE", "concat('group ', consumer_group, ', client ', client_id)")],
        ("consumer_group",),
    ),
    f"""
SELECT
  {quoted(REJECTED_ARE_FEW.expectation_id)} AS expectation_id,
  1 / (SELECT count(*) FROM silver_export_record) AS amount,
  concat('file ', file, ', line ', line_number, ': ', reason) AS example,
  {subject_columns()}
FROM (SELECT file, line_number, min(reason) AS reason FROM silver_rejected_record GROUP BY file, line_number)""",
    f"""
SELECT DISTINCT
  {quoted(SOME_GROUP_ONLINE.expectation_id)} AS expectation_id, 1D AS amount, concat('group ', consumer_group) AS example,
  {subject_columns()}
FROM silver_group_presence
WHERE state = 'online'""",
)
"""The queries of this suite; the last two return a share and a count instead of violations."""
