"""Read the files of exports into the silver tables.

Each line is parsed once, in parallel, by `topology`; this module moves lines in and typed rows out. What is parsed goes to
disk, a folder for each table: an export is larger than memory, and every table reads its own part (docs/adr/0018).
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rebalance_ledger.exports.contract import KIND_BY_NAME, Content, EnvelopeError, parse_envelope
from rebalance_ledger.exports.payloads import (
    CODES_THAT_ANSWER,
    NOT_ONLINE,
    PayloadError,
    error_code,
    facts,
    facts_of_unreadable,
)
from rebalance_ledger.exports.redaction import redact_envelope, redact_text, redact_unreadable
from rebalance_ledger.tables import OFFSET_FILE, SILVER_TABLES
from rebalance_ledger.tables.silver.export_record import EXPORT_RECORD
from rebalance_ledger.tables.silver.rejected_record import REJECTED_RECORD
from spark_jobs.day_key import DAY
from spark_jobs.session import setting_bytes, spark_schema
from spark_jobs.silver.day_export import place_of, read_lines
from spark_jobs.staging import write_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.exports.contract import Envelope
    from rebalance_ledger.tables import Table
    from spark_jobs.silver.day_export import DayExport
    from spark_jobs.staging import DayStages

_LINE = (*DAY, "file_name", "line_number")
_FACT_SCHEMA = "cluster string, ds date, table_name string, file_name string, line_number long, row string, question long, answer long"
_ARROW_FACT_SCHEMA = pa.schema(
    [
        ("cluster", pa.string()),
        ("ds", pa.date32()),
        ("table_name", pa.string()),
        ("file_name", pa.string()),
        ("line_number", pa.int64()),
        ("row", pa.string()),
        ("question", pa.int64()),
        ("answer", pa.int64()),
    ]
)
_OF_LINES = (EXPORT_RECORD, REJECTED_RECORD)
"""Tables that have every line of the export, also those whose answers do not count."""


_ROW_JSON = json.JSONEncoder(ensure_ascii=False, check_circular=False)
_MOST_NAMED_LINES = 5
_HASH_BYTES = 8
_BYTES_PER_TASK = 16 * 1024 * 1024


class _Line(NamedTuple):
    """Which line of which day's export it is."""

    cluster: str
    ds: date
    file: str
    line_number: int


class _Contradiction(NamedTuple):
    """Why a line counts for nothing, and whether it stands for all that contradict each other."""

    reason: str
    is_first: bool


def read_silver(spark: SparkSession, days: Sequence[DayExport], stages: DayStages) -> dict[str, DataFrame]:
    """Return the silver tables of some days, by name. Their exports are read by now; the tables are not computed yet.

    Args:
        spark: the session.
        days: the exports, with their verified manifests.
        stages: where the parsed lines are put, for as long as the tables are read.
    """
    lines = _read_lines(spark, days)
    files = _files_by_place(days)
    facts_of_lines = lines.mapInArrow(_parse_batches(files), _FACT_SCHEMA)
    parsed = write_work(spark, stages, "parsed_line", facts_of_lines, folder_by="table_name")
    if not _has_repeats(parsed):
        return {table.name: _typed(parsed, table) for table in SILVER_TABLES}
    repeats = write_work(spark, stages, "repeated_line", _repeated_lines(parsed))
    contradictions = _contradictions(repeats)
    if contradictions:
        # Read once more: what has become of these lines depends on the others.
        parse = _parse_batches(files, contradictions)
        read = lines.mapInArrow(parse, _FACT_SCHEMA)
        unreadable = write_work(spark, stages, "contradicting_line", read, folder_by="table_name")
        of_lines = _without(parsed, repeats.where("is_contradicted")).unionByName(unreadable)
        counted = _without(parsed, repeats.where("not counts")).unionByName(unreadable)
    else:
        of_lines = parsed
        counted = _without(parsed, repeats.where("not counts"))
    return {
        table.name: _typed(of_lines if table in _OF_LINES else counted, table)
        for table in SILVER_TABLES
        if table is not EXPORT_RECORD
    } | {EXPORT_RECORD.name: _with_counted_lines(_typed(of_lines, EXPORT_RECORD), repeats)}


def _has_repeats(parsed: DataFrame) -> bool:
    """Return whether any two lines of a day answer the same question. A number for each line comes here."""
    questions = parsed.where((F.col("table_name") == EXPORT_RECORD.name) & F.col("question").isNotNull())
    hashes = questions.select(F.xxhash64(*DAY, "question").alias("question")).toArrow().column("question")
    return len(hashes.unique()) < len(hashes)


def _repeated_lines(parsed: DataFrame) -> DataFrame:
    """Return the lines that answer a question which another line answers too, and which of them counts.

    * Name servers that do not know the same master make a collector ask both. An address that answered the question counts
      before one that did not, and of two the one that answered more of what it was asked in the whole export.
    * Of one address the newest answer counts, before any failure; of those of one instant the first.
    * Payloads of one instant that differ contradict each other: nobody can say which is true, so none counts.

    Args:
        parsed: lines as `_parse_batches` gives them.

    Returns:
        Columns `DAY`, file_name, line_number, counts, is_contradicted, differing_lines (those that contradict each other, where it is
        contradicted), is_of_best_address, counted_line and is_repeat as in `export_record`.
    """
    records = _rows_of(
        parsed.withColumn("broker_addr", F.get_json_object("row", "$.broker_addr")),
        EXPORT_RECORD,
        *DAY,
        "broker_addr",
        "question",
        "answer",
        *_LINE,
    )
    is_payload = F.col("state") == "payload"
    is_reply = (
        is_payload
        | F.coalesce(F.col("error_code").isin(*CODES_THAT_ANSWER), F.lit(col=False))
        | F.coalesce(F.col("error_message").contains(NOT_ONLINE), F.lit(col=False))
    )
    of_question = Window.partitionBy(*DAY, "question")
    at_address = Window.partitionBy(*DAY, "question", "broker_addr")
    address_rank = F.dense_rank().over(
        of_question.orderBy(F.desc("is_answered"), F.desc("answer_count"), "broker_addr")
    )
    best = F.struct(
        is_reply.alias("is_reply"),
        "captured_at",
        is_payload.alias("is_payload"),
        (-F.col("line_number")).alias("order"),
        "answer",
    )
    is_of_instant = (
        is_payload & F.col("best.is_payload") & (F.col("captured_at") == F.col("best.captured_at"))
    )
    is_contradicted = (F.size("differing_answers") > 1) & is_payload
    first_line = -F.col("best.order")
    return (
        records.withColumn(
            "answer_count",
            F.count_if(is_payload).over(Window.partitionBy(*DAY, "broker_name", "broker_addr")),
        )
        .where("question is not null")
        .withColumn("line_count", F.count("*").over(of_question))
        .where("line_count > 1")
        .withColumn("is_answered", F.max(is_payload).over(at_address))
        .withColumn("address_rank", address_rank)
        .withColumn("best", F.max(best).over(at_address))
        .withColumn(
            "differing_answers", F.collect_set(F.when(is_of_instant, F.col("answer"))).over(at_address)
        )
        .withColumn(
            "differing_lines",
            F.array_sort(F.collect_set(F.when(is_of_instant, F.col("line_number"))).over(at_address)),
        )
        .withColumn("is_contradicted", is_contradicted)
        .withColumn(
            "counted_line", F.when(~is_contradicted & (F.col("line_number") != first_line), first_line)
        )
        .select(
            *DAY,
            F.col("file").alias("file_name"),
            "line_number",
            "differing_lines",
            "is_contradicted",
            (F.col("address_rank") == 1).alias("is_of_best_address"),
            "counted_line",
            F.when(F.col("counted_line").isNotNull(), F.col("answer") == F.col("best.answer")).alias(
                "is_repeat"
            ),
            ((F.col("address_rank") == 1) & ~F.col("is_contradicted") & F.col("counted_line").isNull()).alias(
                "counts"
            ),
        )
    )


def _contradictions(repeats: DataFrame) -> dict[_Line, _Contradiction]:
    """Return each line that counts for nothing because another one contradicts it."""
    rows = repeats.where("is_contradicted").collect()
    return {
        _Line(*(row[name] for name in _LINE)): _Contradiction(
            _reason_of_contradiction(row["differing_lines"]),
            is_first=row["is_of_best_address"] and row["line_number"] == row["differing_lines"][0],
        )
        for row in rows
    }


def _reason_of_contradiction(lines: list[int]) -> str:
    numbers = [str(number) for number in lines[:_MOST_NAMED_LINES]]
    more = f" and {len(lines) - len(numbers)} more" if len(lines) > len(numbers) else ""
    return f"lines {', '.join(numbers)}{more} answer one question at one instant and differ, so none of them counts"


def _without(parsed: DataFrame, lines: DataFrame) -> DataFrame:
    return parsed.join(F.broadcast(lines.select(*_LINE)), list(_LINE), "left_anti")


def _with_counted_lines(records: DataFrame, repeats: DataFrame) -> DataFrame:
    """Return the rows of `export_record` with the lines that count instead of some."""
    known = repeats.select(*DAY, F.col("file_name").alias("file"), "line_number", "counted_line", "is_repeat")
    columns = records.columns
    return (
        records.drop("counted_line", "is_repeat")
        .join(F.broadcast(known), [*DAY, "file", "line_number"], "left")
        .select(*columns)
    )


def _read_lines(spark: SparkSession, days: Sequence[DayExport]) -> DataFrame:
    """Return columns `place`, `block_start`, `first_line_number`, `value`: lines in file order within each block."""
    files = [(day.directory, file) for day in days for file in day.manifest.envelope_files]
    lines = read_lines(spark, [(directory, file.path) for directory, file in files])
    if len(days) > 1:
        # Spark plans a small file as if it had four megabytes, so a task would have a handful of those of many days.
        size_bytes = sum(file.size_bytes for _, file in files)
        lines = lines.coalesce(max(spark.sparkContext.defaultParallelism, size_bytes // _BYTES_PER_TASK))
    # A file larger than a split is read in blocks; a block's first line number is the count of lines before it.
    if max((file.size_bytes for _, file in files), default=0) <= _never_split_bytes(spark):
        return lines.withColumn("first_line_number", F.lit(1).cast("long"))
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    for block in lines.groupBy("place", "block_start").count().collect():
        counts[block["place"]][block["block_start"]] = block["count"]
    first_lines = [
        (place, start, 1 + sum(count for other, count in by_start.items() if other < start))
        for place, by_start in counts.items()
        for start in by_start
    ]
    numbered = spark.createDataFrame(first_lines, "place string, block_start long, first_line_number long")
    return lines.join(F.broadcast(numbered), ["place", "block_start"]).select(
        *lines.columns, "first_line_number"
    )


class _File(NamedTuple):
    """A file of a day's export, and what its lines are of."""

    cluster: str
    ds: date
    name: str
    kind: str


def _files_by_place(days: Sequence[DayExport]) -> dict[str, _File]:
    return {
        place_of(day.directory, file.path): _File(*day.key, file.path, file.kind)
        for day in days
        for file in day.manifest.envelope_files
    }


def _never_split_bytes(spark: SparkSession) -> int:
    """Return the largest file that Spark certainly reads in one task (`FilePartition.maxSplitBytes`)."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    return min(setting_bytes(spark, name) for name in names)


def _parse_batches(
    files: Mapping[str, _File], contradictions: Mapping[_Line, _Contradiction] | None = None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Yield the function that Spark runs on the lines: Arrow batches in, rows of `_FACT_SCHEMA` out.

    `row` is a silver row as JSON; one of `export_record` has a `broker_addr` more than its table: the broker's address that was asked.
    `question` and `answer` are hashes of what was asked and of what came, in rows of `export_record` alone.

    Args:
        files: the files by their place.
        contradictions: the lines that are read, as unreadable ones; None for all lines as they are.
    """

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lines_seen: dict[tuple[str, int], int] = defaultdict(int)
        for batch in batches:
            found: list[tuple[str, date, str, str, int, str, int | None, int | None]] = []
            columns = (
                batch.column(name).to_pylist()
                for name in ("place", "block_start", "first_line_number", "value")
            )
            for place, block_start, first_line_number, text in zip(*columns, strict=True):
                cluster, ds, file, kind = files[place]
                line_number = first_line_number + lines_seen[place, block_start]
                lines_seen[place, block_start] += 1
                line = _Line(cluster, ds, file, line_number)
                contradiction = contradictions.get(line) if contradictions else None
                if contradictions and contradiction is None:
                    continue
                for name, row in _rows_of_line(file, kind, line_number, text, contradiction):
                    hashes = row.pop("question", None), row.pop("answer", None)
                    found.append((cluster, ds, name, file, line_number, _ROW_JSON.encode(row), *hashes))
            columns_of_facts = zip(*found, strict=True) if found else [[]] * len(_ARROW_FACT_SCHEMA)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(values, field.type)
                    for values, field in zip(columns_of_facts, _ARROW_FACT_SCHEMA, strict=True)
                ],
                schema=_ARROW_FACT_SCHEMA,
            )

    return parse


def _rows_of_line(
    file: str, kind: str, line_number: int, text: str, contradiction: _Contradiction | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (table name, row) for one line: its facts, its `export_record`, and its rejection if it has one."""
    where = {"kind": kind, "file": file, "line_number": line_number}
    try:
        envelope = parse_envelope(text, kind)
    except EnvelopeError as error:
        yield (
            "rejected_record",
            where | {"reason": redact_text(str(error)), "text": redact_unreadable(kind, text)},
        )
        yield "export_record", where | {"state": "rejected"}
        return
    # An export of a release that did not redact may hold secrets; tables never do.
    envelope = redact_envelope(envelope)
    record = where | {
        "captured_at": envelope.captured_at.isoformat(),
        "nameserver": envelope.nameserver,
        "broker_name": envelope.broker,
        "consumer_group": envelope.group,
        "topic": envelope.topic,
        "client_id": envelope.client_id,
        "broker_addr": envelope.broker_addr if "broker_addr" in KIND_BY_NAME[kind].keys else None,
        "question": _question(envelope),
        "answer": _hash(envelope.payload, envelope.error),
    }
    if contradiction is not None:
        payload = redact_text(envelope.payload or "")
        yield "rejected_record", where | {"reason": contradiction.reason, "text": payload}
        yield "export_record", record | {"state": "rejected"}
        if contradiction.is_first:
            yield from facts_of_unreadable(envelope)
        return
    try:
        # All or nothing: half a record must not stand in silver beside its rejection.
        rows = list(facts(envelope))
    except PayloadError as error:
        payload = redact_text(envelope.payload or "")
        yield "rejected_record", where | {"reason": redact_text(str(error)), "text": payload}
        yield "export_record", record | {"state": "rejected"}
        yield from facts_of_unreadable(envelope)
        return
    for table, row in rows:
        # A file that failed to land has no path: its line is all that tells it from another.
        yield table, row | {"line_number": line_number} if table == OFFSET_FILE.name else row
    if envelope.error is None:
        yield "export_record", record | {"state": "payload"}
    else:
        yield (
            "export_record",
            record
            | {
                "state": "error",
                "error_type": envelope.error.type,
                "error_code": error_code(envelope.error.message),
                "error_message": envelope.error.message,
            },
        )


def _question(envelope: Envelope) -> int | None:
    """Return a hash of what was asked, whichever of a broker's addresses it was; None where a line is no answer."""
    kind = KIND_BY_NAME[envelope.kind]
    if kind.content not in {Content.ROCKETMQ_JSON, Content.PROPERTIES} or kind.name == "capture_attempt":
        return None
    names = set(kind.keys) - {"broker_addr"}
    if kind.name == "consumer_status" and envelope.client_id is not None:
        # One member's offsets, whichever broker passed the question on.
        names = names - {"broker"} | {"client_id"}
    return _hash(kind.name, *(f"{name}={getattr(envelope, name)}" for name in sorted(names)))


def _hash(*parts: object) -> int:
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, signed=True)


def _typed(parsed: DataFrame, table: Table) -> DataFrame:
    """Return the rows of one table with the table's own schema, from its folder alone."""
    return _rows_of(parsed, table, *DAY)


def _rows_of(parsed: DataFrame, table: Table, *beside: str) -> DataFrame:
    """Return columns that parsed lines have, and after them those of one table but cluster and ds."""
    row_schema = StructType(spark_schema(table).fields[len(DAY) :])
    # FAILFAST: a row that does not fit its schema is a bug of ours and must not become a row of nulls.
    row = F.from_json("row", row_schema, {"mode": "FAILFAST"}).alias("row")
    own = [name for name in beside if name not in row_schema.fieldNames()]
    return parsed.where(F.col("table_name") == table.name).select(*own, row).select(*own, "row.*")
