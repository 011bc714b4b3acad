r"""What must hold of silver tables and the export: their rows are what a second reader finds in the sealed lines.

The build reads the lines with a parser of its own (`topology`). This reads the same text apart from it, in Spark SQL alone: maps whose
keys are queues are cut out by a regular expression and become plain JSON. On both sides each row becomes a number that depends on
all its values, and the numbers of a group, client or topic are added: a lost row, one twice, or another value makes a difference.

Where this reader cannot be sure of a line, it says nothing of the line's group, client or topic: a name with a brace or a backslash, a
reference, several answers to one question, a line that the build rejected. `lines_compared` tells where that is often.

It reads `export_line` (kind string, value string): the lines of the export's files of `KINDS`.

What belongs here: which text becomes which column. What does not: how the build does it, and what a value means.
"""

# ruff: noqa: S608 - the SQL is put together from this package's own constants; no name from outside gets in.
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from expectations.model import Breach, Expectation, Suite, breaches_in, quoted
from expectations.thresholds import MOST_NOT_COMPARED_RATIO
from tables.silver.consume_progress import CONSUME_PROGRESS
from tables.silver.consumer_connection import CONSUMER_CONNECTION
from tables.silver.export_record import EXPORT_RECORD
from tables.silver.observed_owner import OBSERVED_OWNER
from tables.silver.process_owner import PROCESS_OWNER
from tables.silver.queue_offset import QUEUE_OFFSET
from tables.silver.subscription import SUBSCRIPTION

if TYPE_CHECKING:
    from tables import Table

_LAST_MS: Final = 253_402_300_799_999
"""The last instant of the year 9999; a later one is no time of a table, and 0 or less means never."""

_ENVELOPE: Final = "kind string, broker string, `group` string, topic string, client_id string, process string, payload string"

# What RocketMQ's JSON has beside plain JSON, but for maps whose keys are objects. No text of an export is too long.
_JSON_OPTIONS: Final = (
    "map('allowUnquotedFieldNames', 'true', 'allowUnquotedControlChars', 'true', 'maxStringLen', '300000000')"
)

# `{"brokerName":"a","queueId":0,"topic":"t"}:{"maxOffset":5}`: an entry of a map whose keys are queues.
_BETWEEN: Final = r"\}\s*:\s*\{"
_ENTRY: Final = rf"\{{[^{{}}]*{_BETWEEN}[^{{}}]*\}}"

_NUMBERS: Final = (
    "minOffset bigint, maxOffset bigint, lastUpdateTimestamp bigint, brokerOffset bigint, consumerOffset bigint, pullOffset bigint, "
    "lastTimestamp bigint, droped boolean, dropped boolean, commitOffset bigint, lastPullTimestamp bigint, "
    "lastConsumeTimestamp bigint, lastPopTimestamp bigint"
)
_MEMBERS: Final = (
    "connectionSet array<struct<clientId: string, clientAddr: string, language: string, version: int>>, "
    "subscriptionTable map<string, struct<expressionType: string, subString: string>>"
)


@dataclass(frozen=True, slots=True)
class _Reading:
    """How lines of a kind become rows of a table.

    Attributes:
        table: the table.
        kind: of which lines.
        rows: SQL array over a line: one element `r` for each row.
        pairs: for each value that is compared, SQL of it over `r` and the line, and over the table's row.
        total: the number whose sum the sentence tells, of both sides alike; None if only rows are told.
        of: the columns that say whose rows are added: of consumer_group, topic, client_id.
    """

    table: Table
    kind: str
    rows: str
    pairs: tuple[tuple[str, str], ...]
    of: tuple[str, ...]
    total: tuple[str, str] | None = None

    @property
    def expectation(self) -> Expectation:
        return Expectation(
            self.table,
            "equals_export",
            f"The rows of a {_WHOSE[self.of]} are those that a second reader finds in the lines of the export, where it can read them.",
        )


_OF_GROUP: Final = ("consumer_group",)
_OF_CLIENT: Final = ("consumer_group", "client_id")
_OF_TOPIC: Final = ("topic",)
_WHOSE: Final = {_OF_GROUP: "group", _OF_CLIENT: "client of a group", _OF_TOPIC: "topic"}

_QUEUE: Final = (("r.topic", "topic"), ("r.brokerName", "broker_name"), ("r.queueId", "queue_id"))


def _time(raw: str, column: str) -> tuple[str, str]:
    return f"IF({raw} > 0 AND {raw} <= {_LAST_MS}, {raw}, NULL)", f"unix_millis({column})"


_OWNER: Final = (
    *_QUEUE,
    ("coalesce(r.isPop, FALSE)", "is_pop"),
    ("coalesce(r.droped, r.dropped)", "is_dropped"),
    ("IF(r.isPop, NULL, r.commitOffset)", "commit_offset"),
    _time("IF(r.isPop, r.lastPopTimestamp, r.lastPullTimestamp)", "last_pull_at"),
    _time("IF(r.isPop, NULL, r.lastConsumeTimestamp)", "last_consumed_at"),
)

_READINGS: Final = (
    _Reading(
        QUEUE_OFFSET,
        "broker_topic_stats",
        "entries",
        (
            *_QUEUE,
            ("r.minOffset", "min_offset"),
            ("r.maxOffset", "max_offset"),
            _time("r.lastUpdateTimestamp", "last_stored_at"),
        ),
        _OF_TOPIC,
        ("r.maxOffset", "max_offset"),
    ),
    _Reading(
        CONSUME_PROGRESS,
        "consume_stats",
        "entries",
        (
            *_QUEUE,
            ("r.brokerOffset", "broker_offset"),
            ("r.consumerOffset", "consumer_offset"),
            ("r.pullOffset", "pull_offset"),
            _time("r.lastTimestamp", "last_consumed_at"),
        ),
        _OF_GROUP,
        ("r.consumerOffset", "consumer_offset"),
    ),
    _Reading(OBSERVED_OWNER, "consumer_running_info", "entries", _OWNER, _OF_CLIENT),
    _Reading(PROCESS_OWNER, "process_assignment", "entries", (*_OWNER, ("process", "process")), _OF_CLIENT),
    _Reading(
        CONSUMER_CONNECTION,
        "consumer_connection",
        "members.connectionSet",
        (
            ("broker_name", "broker_name"),
            ("r.clientId", "client_id"),
            ("r.clientAddr", "client_addr"),
            ("r.language", "client_language"),
            ("r.version", "client_version_ordinal"),
        ),
        _OF_GROUP,
    ),
    _Reading(
        SUBSCRIPTION,
        "consumer_connection",
        "map_entries(members.subscriptionTable)",
        (
            ("broker_name", "broker_name"),
            ("r.key", "topic"),
            ("r.value.expressionType", "expression_type"),
            ("r.value.subString", "expression"),
        ),
        _OF_GROUP,
    ),
)

KINDS: Final = tuple(dict.fromkeys(reading.kind for reading in _READINGS))
"""The kinds of lines that are read here; the others are not held against the export."""

LINES_COMPARED: Final = Expectation(
    EXPORT_RECORD,
    "lines_compared",
    "Of the answers that tables are held against, the second reader can read most.",
    severity="warn",
    threshold_max=MOST_NOT_COMPARED_RATIO,
)

SUITE: Final = Suite("export_comparison", (*(reading.expectation for reading in _READINGS), LINES_COMPARED))


def _replaced(text: str, pattern: str, replacement: str) -> str:
    return f"regexp_replace({text}, {quoted(pattern)}, {quoted(replacement)})"


def _cut(text: str, join: str) -> str:
    """SQL for the entries of the maps in a text whose keys are queues: of each one object with the fields of key and value."""
    found = f"array_join(regexp_extract_all({text}, {quoted(_ENTRY)}, 0), ',')"
    return _replaced(found, _BETWEEN, join)


def _part(begin: str, other: str) -> str:
    """SQL for the payload from one place on, up to the other one if that comes behind; nothing without the place."""
    return (
        f"CASE WHEN {begin} = 0 THEN '' WHEN {other} > {begin} "
        f"THEN substring(payload, {begin}, {other} - {begin}) ELSE substring(payload, {begin}) END"
    )


def _number_of_row(values: tuple[str, ...]) -> str:
    """SQL for the number of a row: 32 bits, so that no sum of rows is too large. A null counts as a value of its own."""
    texts = ", ".join(f"coalesce(CAST({value} AS STRING), '(null)')" for value in values)
    return f"(xxhash64({texts}) & 4294967295L)"


_SUBJECT: Final = ("consumer_group", "topic", "client_id")


def _whose(reading: _Reading) -> str:
    return ", ".join(name if name in reading.of else f"CAST(NULL AS STRING) AS {name}" for name in _SUBJECT)


def _told_by_line(reading: _Reading) -> str:
    """What a line has of a table."""
    number = _number_of_row(tuple(raw for raw, _ in reading.pairs))
    total = (
        f"coalesce(aggregate({reading.rows}, 0D, (done, r) -> done + coalesce(CAST({reading.total[0]} AS DOUBLE), 0D)), 0D)"
        if reading.total
        else "0D"
    )
    return f"""struct(
    {quoted(reading.table.name)} AS table_name, {_whose(reading)}, CAST(coalesce(size({reading.rows}), 0) AS BIGINT) AS line_row_count,
    coalesce(aggregate({reading.rows}, 0L, (done, r) -> done + {number}), 0L) AS number, {total} AS line_total,
    to_json(struct(broker_name, topic, process)) AS question, is_sure)"""


_NOTHING: Final = ", ".join(f"CAST(NULL AS STRING) AS {name}" for name in _SUBJECT)
_ALL_LINES: Final = "lines"
"""In place of a table: how many lines there are, and as their number, how many of them the second reader cannot read."""

_TOLD_BY_LINES: Final = "\n".join(
    f"WHEN {quoted(kind)} THEN array({', '.join(_told_by_line(reading) for reading in _READINGS if reading.kind == kind)})"
    for kind in KINDS
)


def _told_by_table(reading: _Reading) -> str:
    """What a table has: a row for each row. Its numbers count below zero, so that equal sides add up to nothing."""
    number = _number_of_row(tuple(value for _, value in reading.pairs))
    total = f"coalesce(CAST({reading.total[1]} AS DOUBLE), 0D)" if reading.total else "0D"
    return f"""SELECT
  {quoted(reading.table.name)} AS table_name, {_whose(reading)}, 0L AS line_row_count, 1L AS table_row_count, -{number} AS number,
  0D AS line_total, {total} AS table_total, CAST(NULL AS STRING) AS question, TRUE AS is_sure
FROM {reading.table.layer}_{reading.table.name}"""


_REJECTED_OF: Final = " ".join(
    f"WHEN {quoted(kind)} THEN array("
    + ", ".join(
        f"struct({quoted(reading.table.name)} AS table_name, {_whose(reading)})"
        for reading in _READINGS
        if reading.kind == kind
    )
    + ")"
    for kind in KINDS
)
_TOLD: Final = "\nUNION ALL\n".join(
    (
        *map(_told_by_table, _READINGS),
        f"""SELECT
  told.table_name, told.consumer_group, told.topic, told.client_id, told.line_row_count, 0L, told.number, told.line_total, 0D,
  told.question, told.is_sure
FROM read_line
LATERAL VIEW explode(concat(
  CASE kind {_TOLD_BY_LINES} END,
  array(struct({quoted(_ALL_LINES)} AS table_name, {_NOTHING}, 1L AS line_row_count, IF(is_sure, 0L, 1L) AS number, 0D AS line_total,
    CAST(NULL AS STRING) AS question, FALSE AS is_sure)))) AS told""",
        # Lines that the build could not read: of whom they are, nothing can be said.
        f"""SELECT
  told.table_name, told.consumer_group, told.topic, told.client_id, 0L, 0L, 0L, 0D, 0D, CAST(NULL AS STRING), FALSE
FROM silver_export_record
LATERAL VIEW explode(CASE kind {_REJECTED_OF} END) AS told
WHERE state = 'rejected'""",
    )
)
_KIND_OF_TABLE: Final = " ".join(
    f"WHEN {quoted(reading.table.name)} THEN {quoted(reading.kind)}" for reading in _READINGS
)
_QUEUE_ID: Final = r'"queueId"\s*:'
_ENTRY_COUNT: Final = f"regexp_count(payload, {quoted(_BETWEEN)})"
_QUEUE_COUNT: Final = f"regexp_count(payload, {quoted(_QUEUE_ID)})"

COMMON_TABLES: Final = f"""
line AS (
  SELECT
    kind, said.broker AS broker_name, said.`group` AS consumer_group, said.topic AS topic, said.client_id AS client_id,
    said.process AS process, said.payload AS payload, contains(value, '\\\\ud') OR contains(value, '\\\\uD') AS has_surrogate,
    locate('"mqTable"', said.payload) AS table_at, locate('"mqPopTable"', said.payload) AS pop_at
  FROM (SELECT kind, value, from_json(value, {quoted(_ENVELOPE)}, {_JSON_OPTIONS}) AS said FROM export_line)
  WHERE said.payload IS NOT NULL AND said.kind = kind AND coalesce(said.`group`, '') NOT IN (SELECT consumer_group FROM left_out_group)
),
cut_line AS (
  SELECT
    *,
    CASE
      WHEN kind = 'consumer_connection' THEN NULL
      WHEN kind IN ('consumer_running_info', 'process_assignment') THEN concat_ws(',',
        nullif({_cut(_part("table_at", "pop_at"), ",")}, ''), nullif({_cut(_part("pop_at", "table_at"), ',"isPop":true,')}, ''))
      ELSE {_cut("payload", ",")}
    END AS cut
  FROM line
),
parsed_line AS (
  SELECT
    *,
    from_json(concat('[', cut, ']'),
      'array<struct<brokerName: string, topic: string, queueId: int, isPop: boolean, {_NUMBERS}>>', {_JSON_OPTIONS}) AS entries,
    IF(kind = 'consumer_connection', from_json(payload, {quoted(_MEMBERS)}, {_JSON_OPTIONS}), NULL) AS members
  FROM cut_line
),
read_line AS (
  SELECT
    *,
    coalesce(NOT has_surrogate AND NOT contains(payload, '$ref') AND CASE
      WHEN kind = 'consumer_connection' THEN members.connectionSet IS NOT NULL
        AND coalesce(size(members.subscriptionTable) = size(array_distinct(map_keys(members.subscriptionTable))), TRUE)
      ELSE NOT contains(cut, '\\\\') AND size(entries) = {_QUEUE_COUNT} AND size(entries) = {_ENTRY_COUNT}
        AND forall(entries, r -> r.brokerName IS NOT NULL AND r.topic IS NOT NULL AND r.queueId IS NOT NULL)
        AND (kind <> 'broker_topic_stats' OR forall(entries, r -> r.topic = topic))
    END, FALSE) AS is_sure
  FROM parsed_line
),
told AS (
{_TOLD}
),
compared AS (
  SELECT
    table_name, consumer_group, topic, client_id,
    sum(line_row_count) AS line_row_count, sum(table_row_count) AS table_row_count, sum(number) AS difference,
    sum(line_total) AS line_total, sum(table_total) AS table_total,
    bool_and(is_sure) AND count(question) = size(collect_set(question)) AS is_sure
  FROM told
  GROUP BY table_name, consumer_group, topic, client_id
),
compared_with_rest AS (
  SELECT compared.*, CASE table_name {_KIND_OF_TABLE} END IN (
    SELECT kind FROM silver_export_record
    WHERE state = 'rejected' AND consumer_group IS NULL AND topic IS NULL
  ) AS may_be_rejected
  FROM compared
)"""
"""`may_be_rejected`: a line of the kind was rejected, and nobody knows whose it is: an answer may be missing as a whole."""

_ROWS: Final = (
    "concat('group ', consumer_group), concat('topic ', topic), concat('client ', client_id), "
    "concat(table_row_count, ' rows, the export has ', line_row_count), "
    "IF(line_row_count = table_row_count, 'other values', NULL)"
)


def _example(reading: _Reading) -> str:
    if reading.total is None:
        return f"concat_ws(', ', {_ROWS})"
    _, column = reading.total
    table_total, line_total = (f"CAST({name} AS DECIMAL(38, 0))" for name in ("table_total", "line_total"))
    return (
        f"concat_ws(', ', {_ROWS}, IF(line_total <> table_total, "
        f"concat({quoted(column)}, ' in all ', {table_total}, ', the export has ', {line_total}), NULL))"
    )


QUERY: Final = breaches_in(
    "compared_with_rest",
    (
        *(
            Breach(
                reading.expectation,
                f"table_name = {quoted(reading.table.name)} AND is_sure "
                "AND (difference <> 0 OR line_row_count <> table_row_count) "
                "AND NOT (coalesce(may_be_rejected, FALSE) AND table_row_count = 0)",
                _example(reading),
            )
            for reading in _READINGS
        ),
        Breach(
            LINES_COMPARED,
            f"table_name = {quoted(_ALL_LINES)} AND difference > 0",
            "concat(difference, ' of ', line_row_count, ' answers')",
            "difference / line_row_count",
        ),
    ),
    ("consumer_group", "topic"),
)
