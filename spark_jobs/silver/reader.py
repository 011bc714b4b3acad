"""Read the files of exports into the staged silver tables.

Each line is parsed once, in parallel. The parsed rows are written to disk, in files of one table, because an export may be larger than
memory (docs/adr/0018).

Belongs here: which lines count. Does not belong here: the rows of one line (`line_parsing`) and their files (`parsed_lines`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.dataset as pads
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from rebalance_ledger.driver_options import LARGE_EXPORT_BYTES
from rebalance_ledger.exports.payloads import CODES_THAT_ANSWER, NOT_ONLINE
from rebalance_ledger.tables import SILVER_TABLES
from rebalance_ledger.tables.silver.export_record import EXPORT_RECORD
from rebalance_ledger.tables.silver.rejected_record import REJECTED_RECORD
from spark_jobs.day_key import DAY
from spark_jobs.rows import from_rows, no_rows, read_files, read_parquet
from spark_jobs.session import is_small, setting_bytes, thread_pool
from spark_jobs.silver.day_export import batches_of_lines, export_file_key, read_lines
from spark_jobs.silver.line_parsing import LINE_FIELDS, QUESTION_FIELDS, Contradiction, ExportFile, Line
from spark_jobs.silver.parsed_lines import WRITTEN_SCHEMA, Parser
from spark_jobs.staging import first_stage, stage_files, staged_schema, write_tables, write_work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.tables import Table
    from spark_jobs.silver.day_export import DayExport
    from spark_jobs.staging import DayStages

_LINE_KEY = tuple(field.name for field in LINE_FIELDS)
_TABLES_OF_ALL_LINES = (EXPORT_RECORD, REJECTED_RECORD)
"""Tables with rows of every line, including lines whose answers are ignored."""

_FIRST_LINES = pa.schema(
    [("file_key", pa.string()), ("block_start", pa.int64()), ("first_line_number", pa.int64())]
)
_MOST_NAMED_LINES = 5
_BYTES_PER_TASK = 16 * 1024 * 1024


class _Parsed(NamedTuple):
    """The rows of parsed lines: the files of each table, and their schemas."""

    files: Mapping[str, Sequence[str]]
    schemas: Mapping[str, pa.Schema]

    def rows(self, spark: SparkSession, table: Table) -> DataFrame:
        """Return the rows of one table, from its files alone."""
        schema = from_arrow_schema(self.schemas[table.name])
        files = self.files.get(table.name)
        return read_parquet(spark, schema, *files) if files else no_rows(spark, schema)


def stage_silver(spark: SparkSession, days: Sequence[DayExport], stages: DayStages) -> dict[str, DataFrame]:
    """Stage the silver tables of several days, and return them by name as they were written.

    Args:
        spark: The session.
        days: The exports, with their verified manifests.
        stages: The days' stages; the parsed lines are written to the first one and must exist as long as the tables are read.
    """
    parsed = _parse(spark, days, stages, "parsed_line")
    if _has_repeats(parsed):
        return write_tables(spark, stages, SILVER_TABLES, _counted(spark, days, stages, parsed))
    if sum(day.size_bytes for day in days) >= LARGE_EXPORT_BYTES:
        every_row = {table.name: parsed.rows(spark, table) for table in SILVER_TABLES}
        return write_tables(spark, stages, SILVER_TABLES, every_row)
    # The files have the rows of the tables already, and a Spark job for each table would take longer than to copy them.
    with thread_pool(spark) as pool:
        staged = {
            table.name: pool.submit(stage_files, spark, stages, table, parsed.files.get(table.name, ()))
            for table in SILVER_TABLES
        }
        return {name: done.result() for name, done in staged.items()}


def _counted(
    spark: SparkSession, days: Sequence[DayExport], stages: DayStages, parsed: _Parsed
) -> dict[str, DataFrame]:
    """Return the rows of each silver table without those of lines that do not count."""
    repeats = write_work(spark, stages, "repeated_line", _repeated_lines(parsed.rows(spark, EXPORT_RECORD)))
    contradictions = _contradictions(repeats)
    # Parse contradicting lines again, as unreadable ones. Only the set of all lines shows which lines these are.
    unreadable = _parse(spark, days, stages, "contradicting_line", contradictions) if contradictions else None

    def counted(table: Table) -> DataFrame:
        is_ignored = "is_contradicted" if table in _TABLES_OF_ALL_LINES else "not counts"
        rows = parsed.rows(spark, table)
        if table not in _TABLES_OF_ALL_LINES or unreadable:
            rows = _without(rows, repeats.where(is_ignored))
        return rows.unionByName(unreadable.rows(spark, table)) if unreadable else rows

    tables = {table.name: counted(table) for table in SILVER_TABLES}
    return tables | {EXPORT_RECORD.name: _with_counted_lines(tables[EXPORT_RECORD.name], repeats)}


def _parse(
    spark: SparkSession,
    days: Sequence[DayExport],
    stages: DayStages,
    name: str,
    contradictions: Mapping[Line, Contradiction] | None = None,
) -> _Parsed:
    """Parse the lines of the days' exports and write their rows; see `parse_batches`."""
    folder = first_stage(stages).work(name)
    schemas = {table.name: _schema(table) for table in SILVER_TABLES}
    parser = Parser(folder, _files_by_key(days), schemas, contradictions)
    if len(days) == 1 and is_small(spark):
        written = list(parser.write(batches_of_lines(_envelope_files(days))))
    else:
        tasks = _read_lines(spark, days).mapInArrow(parser.write_in_task(), from_arrow_schema(WRITTEN_SCHEMA))
        written = sorted((row["table_name"], row["file_name"]) for row in tasks.collect())
    files: dict[str, list[str]] = defaultdict(list)
    for table_name, file_name in written:
        files[table_name].append(f"{folder}/{file_name}")
    return _Parsed(files, schemas)


def _schema(table: Table) -> pa.Schema:
    """Return the schema of a table's parsed rows; see `parse_batches`."""
    line_fields = [*LINE_FIELDS, *(QUESTION_FIELDS if table is EXPORT_RECORD else ())]
    names = {field.name for field in line_fields}
    return pa.schema([*line_fields, *(field for field in staged_schema(table) if field.name not in names)])


def _envelope_files(days: Sequence[DayExport]) -> list[tuple[Location, str]]:
    return [(day.directory, file.path) for day in days for file in day.manifest.envelope_files]


def _has_repeats(parsed: _Parsed) -> bool:
    """Return whether two lines of a day answer the same question; this process reads a hash of each line's question."""
    files = parsed.files.get(EXPORT_RECORD.name)
    if not files:
        return False
    questions = read_files(files, [*DAY, "question"], pads.field("question").is_valid())
    return bool(questions.group_by([*DAY, "question"]).aggregate([]).num_rows < questions.num_rows)


def _repeated_lines(records: DataFrame) -> DataFrame:
    """Return the lines whose question another line answers too, with the line that counts.

    * If name servers know different masters of a broker, a collector asks both addresses. An address that answered the question takes
      precedence; then the address that answered more questions of the whole export.
    * For one address, the newest answer takes precedence over older answers and over failures; then the first line.
    * Different payloads from the same address and instant contradict each other, so none of them counts.

    Args:
        records: The parsed rows of `export_record`, with `QUESTION_FIELDS`.

    Returns:
        `DAY`; file_name, line_number; counts; is_contradicted; differing_lines: the lines that contradict each other;
        is_of_best_address; counted_line and is_repeat as in `export_record`.
    """
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
            "file_name",
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


def _contradictions(repeats: DataFrame) -> dict[Line, Contradiction]:
    """Return the contradicted lines, none of which counts."""
    rows = repeats.where("is_contradicted").collect()
    return {
        Line(*(row[name] for name in _LINE_KEY)): Contradiction(
            _reason_of_contradiction(row["differing_lines"]),
            is_first=row["is_of_best_address"] and row["line_number"] == row["differing_lines"][0],
        )
        for row in rows
    }


def _reason_of_contradiction(lines: list[int]) -> str:
    numbers = [str(number) for number in lines[:_MOST_NAMED_LINES]]
    more = f" and {len(lines) - len(numbers)} more" if len(lines) > len(numbers) else ""
    return f"lines {', '.join(numbers)}{more} answer one question at one instant and differ, so none of them counts"


def _without(rows: DataFrame, lines: DataFrame) -> DataFrame:
    return rows.join(F.broadcast(lines.select(*_LINE_KEY)), list(_LINE_KEY), "left_anti")


def _with_counted_lines(records: DataFrame, repeats: DataFrame) -> DataFrame:
    """Return the rows of `export_record` with counted_line and is_repeat."""
    known = repeats.select(*_LINE_KEY, "counted_line", "is_repeat")
    return records.drop("counted_line", "is_repeat").join(F.broadcast(known), list(_LINE_KEY), "left")


def _read_lines(spark: SparkSession, days: Sequence[DayExport]) -> DataFrame:
    """Return the columns of `read_lines`, and first_line_number, the number of the block's first line."""
    lines = read_lines(spark, _envelope_files(days))
    sizes_bytes = [file.size_bytes for day in days for file in day.manifest.envelope_files]
    if len(days) > 1:
        # Spark plans at least four megabytes for each file (`openCostInBytes`), which makes too many tasks for many small files.
        lines = lines.coalesce(
            max(spark.sparkContext.defaultParallelism, sum(sizes_bytes) // _BYTES_PER_TASK)
        )
    # A file larger than a split is read in blocks, so the lines of the earlier blocks are counted.
    if max(sizes_bytes, default=0) <= _never_split_bytes(spark):
        return lines.withColumn("first_line_number", F.lit(1).cast("long"))
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    for block in lines.groupBy("file_key", "block_start").count().collect():
        counts[block["file_key"]][block["block_start"]] = block["count"]
    first_lines = [
        (file_key, start, 1 + sum(count for other, count in by_start.items() if other < start))
        for file_key, by_start in counts.items()
        for start in by_start
    ]
    numbered = from_rows(spark, _FIRST_LINES, first_lines)
    return lines.join(F.broadcast(numbered), ["file_key", "block_start"]).select(
        *lines.columns, "first_line_number"
    )


def _files_by_key(days: Sequence[DayExport]) -> dict[str, ExportFile]:
    return {
        export_file_key(day.directory, file.path): ExportFile(*day.key, file.path, file.kind)
        for day in days
        for file in day.manifest.envelope_files
    }


def _never_split_bytes(spark: SparkSession) -> int:
    """Return the size up to which Spark never splits a file (`FilePartition.maxSplitBytes`)."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    return min(setting_bytes(spark, name) for name in names)
