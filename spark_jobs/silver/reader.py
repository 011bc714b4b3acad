"""Read the files of exports into the silver tables.

Each line is parsed once, in parallel. The parsed rows are written to disk, one folder per table, because an export may be larger than
memory (docs/adr/0018).

Belongs here: which lines count, and typed rows. Does not belong here: the meaning of a line
(`rebalance_ledger.exports.contract`, `rebalance_ledger.exports.payloads`).
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
from spark_jobs.silver.day_export import export_file_key, read_lines
from spark_jobs.staging import write_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.exports.contract import Envelope
    from rebalance_ledger.tables import Table
    from spark_jobs.silver.day_export import DayExport
    from spark_jobs.staging import DayStages

_LINE_KEY = (*DAY, "file_name", "line_number")
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
_TABLES_OF_ALL_LINES = (EXPORT_RECORD, REJECTED_RECORD)
"""Tables with rows of every line, including lines whose answers are ignored."""

_ROW_JSON = json.JSONEncoder(ensure_ascii=False, check_circular=False)
_MOST_NAMED_LINES = 5
_HASH_BYTES = 8
_BYTES_PER_TASK = 16 * 1024 * 1024


class _Line(NamedTuple):
    """Identity of a line among the exports of all days."""

    cluster: str
    ds: date
    file: str
    line_number: int


class _Contradiction(NamedTuple):
    """A line that contradicts another line.

    Attributes:
        reason: Reason of the rejection.
        is_first: Whether the line represents all lines that contradict each other.
    """

    reason: str
    is_first: bool


def read_silver(spark: SparkSession, days: Sequence[DayExport], stages: DayStages) -> dict[str, DataFrame]:
    """Return the silver tables of several days, by name. The exports have been read; the tables are computed on demand.

    Args:
        spark: The session.
        days: The exports, with their verified manifests.
        stages: The days' stages; the parsed lines are written to the first one and must exist as long as the tables are read.
    """
    lines = _read_lines(spark, days)
    files = _files_by_key(days)
    facts_of_lines = lines.mapInArrow(_parse_batches(files), _FACT_SCHEMA)
    parsed = write_work(spark, stages, "parsed_line", facts_of_lines, folder_by="table_name")
    if not _has_repeats(parsed):
        return {table.name: _typed(parsed, table) for table in SILVER_TABLES}
    repeats = write_work(spark, stages, "repeated_line", _repeated_lines(parsed))
    contradictions = _contradictions(repeats)
    if contradictions:
        # Parse contradicting lines again, as unreadable ones. Only the set of all lines shows which lines these are.
        parse = _parse_batches(files, contradictions)
        read = lines.mapInArrow(parse, _FACT_SCHEMA)
        unreadable = write_work(spark, stages, "contradicting_line", read, folder_by="table_name")
        all_lines = _without(parsed, repeats.where("is_contradicted")).unionByName(unreadable)
        counted = _without(parsed, repeats.where("not counts")).unionByName(unreadable)
    else:
        all_lines = parsed
        counted = _without(parsed, repeats.where("not counts"))
    return {
        table.name: _typed(all_lines if table in _TABLES_OF_ALL_LINES else counted, table)
        for table in SILVER_TABLES
        if table is not EXPORT_RECORD
    } | {EXPORT_RECORD.name: _with_counted_lines(_typed(all_lines, EXPORT_RECORD), repeats)}


def _has_repeats(parsed: DataFrame) -> bool:
    """Return whether two lines of a day answer the same question; collect a hash of each line's question for this."""
    questions = parsed.where((F.col("table_name") == EXPORT_RECORD.name) & F.col("question").isNotNull())
    hashes = questions.select(F.xxhash64(*DAY, "question").alias("question")).toArrow().column("question")
    return len(hashes.unique()) < len(hashes)


def _repeated_lines(parsed: DataFrame) -> DataFrame:
    """Return the lines whose question another line answers too, with the line that counts.

    * If name servers know different masters of a broker, a collector asks both addresses. An address that answered the question takes
      precedence; then the address that answered more questions of the whole export.
    * For one address, the newest answer takes precedence over older answers and over failures; then the first line.
    * Different payloads from the same address and instant contradict each other, so none of them counts.

    Args:
        parsed: See `_parse_batches`.

    Returns:
        `DAY`; file_name, line_number; counts; is_contradicted; differing_lines: the lines that contradict each other;
        is_of_best_address; counted_line and is_repeat as in `export_record`.
    """
    records = _rows_of(
        parsed.withColumn("broker_addr", F.get_json_object("row", "$.broker_addr")),
        EXPORT_RECORD,
        *DAY,
        "broker_addr",
        "question",
        "answer",
        *_LINE_KEY,
    )
    is_payload = F.col("state") == "payload"
    is_reply = (
        is_payload
        | F.coalesce(F.col("error_code").isin(*CODES_THAT_ANSWER), F.lit(col=False))
        | F.coalesce(F.col("error_message").contains(NOT_ONLINE), F.lit(col=False))
    )
    by_question = Window.partitionBy(*DAY, "question")
    by_address = Window.partitionBy(*DAY, "question", "broker_addr")
    address_rank = F.dense_rank().over(
        by_question.orderBy(F.desc("is_answered"), F.desc("answer_count"), "broker_addr")
    )
    best = F.struct(
        is_reply.alias("is_reply"),
        "captured_at",
        is_payload.alias("is_payload"),
        (-F.col("line_number")).alias("order"),
        "answer",
    )
    is_newest_payload = (
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
        .withColumn("line_count", F.count("*").over(by_question))
        .where("line_count > 1")
        .withColumn("is_answered", F.max(is_payload).over(by_address))
        .withColumn("address_rank", address_rank)
        .withColumn("best", F.max(best).over(by_address))
        .withColumn(
            "differing_answers", F.collect_set(F.when(is_newest_payload, F.col("answer"))).over(by_address)
        )
        .withColumn(
            "differing_lines",
            F.array_sort(F.collect_set(F.when(is_newest_payload, F.col("line_number"))).over(by_address)),
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
    """Return the contradicted lines, none of which counts."""
    rows = repeats.where("is_contradicted").collect()
    return {
        _Line(*(row[name] for name in _LINE_KEY)): _Contradiction(
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
    return parsed.join(F.broadcast(lines.select(*_LINE_KEY)), list(_LINE_KEY), "left_anti")


def _with_counted_lines(records: DataFrame, repeats: DataFrame) -> DataFrame:
    """Return the rows of `export_record` with counted_line and is_repeat."""
    known = repeats.select(*DAY, F.col("file_name").alias("file"), "line_number", "counted_line", "is_repeat")
    columns = records.columns
    return (
        records.drop("counted_line", "is_repeat")
        .join(F.broadcast(known), [*DAY, "file", "line_number"], "left")
        .select(*columns)
    )


def _read_lines(spark: SparkSession, days: Sequence[DayExport]) -> DataFrame:
    """Return the columns of `read_lines`, and first_line_number, the number of the block's first line."""
    files = [(day.directory, file) for day in days for file in day.manifest.envelope_files]
    lines = read_lines(spark, [(directory, file.path) for directory, file in files])
    if len(days) > 1:
        # Spark plans at least four megabytes for each file (`openCostInBytes`), which makes too many tasks for many small files.
        size_bytes = sum(file.size_bytes for _, file in files)
        lines = lines.coalesce(max(spark.sparkContext.defaultParallelism, size_bytes // _BYTES_PER_TASK))
    # A file larger than a split is read in blocks, so the lines of the earlier blocks are counted.
    if max((file.size_bytes for _, file in files), default=0) <= _never_split_bytes(spark):
        return lines.withColumn("first_line_number", F.lit(1).cast("long"))
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    for block in lines.groupBy("file_key", "block_start").count().collect():
        counts[block["file_key"]][block["block_start"]] = block["count"]
    first_lines = [
        (file_key, start, 1 + sum(count for other, count in by_start.items() if other < start))
        for file_key, by_start in counts.items()
        for start in by_start
    ]
    numbered = spark.createDataFrame(first_lines, "file_key string, block_start long, first_line_number long")
    return lines.join(F.broadcast(numbered), ["file_key", "block_start"]).select(
        *lines.columns, "first_line_number"
    )


class _File(NamedTuple):
    """A file of a day's export, with the kind of its lines."""

    cluster: str
    ds: date
    name: str
    kind: str


def _files_by_key(days: Sequence[DayExport]) -> dict[str, _File]:
    return {
        export_file_key(day.directory, file.path): _File(*day.key, file.path, file.kind)
        for day in days
        for file in day.manifest.envelope_files
    }


def _never_split_bytes(spark: SparkSession) -> int:
    """Return the size up to which Spark never splits a file (`FilePartition.maxSplitBytes`)."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    return min(setting_bytes(spark, name) for name in names)


def _parse_batches(
    files: Mapping[str, _File], contradictions: Mapping[_Line, _Contradiction] | None = None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for `mapInArrow` that parses lines into rows of `_FACT_SCHEMA`.

    In these rows, `row` is a silver row as JSON. A row of `export_record` also has `broker_addr`, the address of the broker that was
    asked, and the columns `question` and `answer` are hashes of the question and of the answer; other rows have null there.

    Args:
        files: File key (see `export_file_key`) -> file.
        contradictions: Parse only these lines, and treat them as unreadable; None to parse all lines.
    """

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lines_read: dict[tuple[str, int], int] = defaultdict(int)
        for batch in batches:
            facts_of_batch: list[tuple[str, date, str, str, int, str, int | None, int | None]] = []
            columns = (
                batch.column(name).to_pylist()
                for name in ("file_key", "block_start", "first_line_number", "value")
            )
            for file_key, block_start, first_line_number, text in zip(*columns, strict=True):
                cluster, ds, file, kind = files[file_key]
                line_number = first_line_number + lines_read[file_key, block_start]
                lines_read[file_key, block_start] += 1
                line = _Line(cluster, ds, file, line_number)
                contradiction = contradictions.get(line) if contradictions else None
                if contradictions and contradiction is None:
                    continue
                for name, row in _rows_of_line(file, kind, line_number, text, contradiction):
                    hashes = row.pop("question", None), row.pop("answer", None)
                    facts_of_batch.append(
                        (cluster, ds, name, file, line_number, _ROW_JSON.encode(row), *hashes)
                    )
            columns_of_facts = (
                zip(*facts_of_batch, strict=True) if facts_of_batch else [[]] * len(_ARROW_FACT_SCHEMA)
            )
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
    """Yield the silver rows of one line with the names of their tables: facts, its `export_record`, and its rejection if any."""
    line = {"kind": kind, "file": file, "line_number": line_number}
    try:
        envelope = parse_envelope(text, kind)
    except EnvelopeError as error:
        yield (
            "rejected_record",
            line | {"reason": redact_text(str(error)), "text": redact_unreadable(kind, text)},
        )
        yield "export_record", line | {"state": "rejected"}
        return
    # Exports of releases without redaction may contain secrets, which must not get into a table.
    envelope = redact_envelope(envelope)
    record = line | {
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
        yield "rejected_record", line | {"reason": contradiction.reason, "text": payload}
        yield "export_record", record | {"state": "rejected"}
        if contradiction.is_first:
            yield from facts_of_unreadable(envelope)
        return
    try:
        # A record that can be read only in part gives no facts.
        rows = list(facts(envelope))
    except PayloadError as error:
        payload = redact_text(envelope.payload or "")
        yield "rejected_record", line | {"reason": redact_text(str(error)), "text": payload}
        yield "export_record", record | {"state": "rejected"}
        yield from facts_of_unreadable(envelope)
        return
    for table, row in rows:
        # An offset file that failed to land has no path, so its line number identifies it.
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
    """Return a hash of the question, without the address of the broker; None if the line is no answer to a question."""
    kind = KIND_BY_NAME[envelope.kind]
    if kind.content not in {Content.ROCKETMQ_JSON, Content.PROPERTIES} or kind.name == "capture_attempt":
        return None
    names = set(kind.keys) - {"broker_addr"}
    if kind.name == "consumer_status" and envelope.client_id is not None:
        # The offsets of one member are the same, whichever broker forwards the request.
        names = names - {"broker"} | {"client_id"}
    return _hash(kind.name, *(f"{name}={getattr(envelope, name)}" for name in sorted(names)))


def _hash(*parts: object) -> int:
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, signed=True)


def _typed(parsed: DataFrame, table: Table) -> DataFrame:
    """Return the rows of one table with the table's own schema, from its folder alone."""
    return _rows_of(parsed, table, *DAY)


def _rows_of(parsed: DataFrame, table: Table, *line_columns: str) -> DataFrame:
    """Return the rows of one table: columns of the parsed lines, then the table's columns without `DAY`."""
    row_schema = StructType(spark_schema(table).fields[len(DAY) :])
    # FAILFAST: a row that does not match its schema is a bug, and must not become a row of nulls.
    row = F.from_json("row", row_schema, {"mode": "FAILFAST"}).alias("row")
    own = [name for name in line_columns if name not in row_schema.fieldNames()]
    return parsed.where(F.col("table_name") == table.name).select(*own, row).select(*own, "row.*")
