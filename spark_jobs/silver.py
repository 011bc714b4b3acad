"""From the files of an export to the silver tables.

Each line is parsed once, in parallel, by `topology`; this module moves lines in and typed rows out. What is parsed goes to
disk, a folder for each table: an export is larger than memory, and every table reads its own part (docs/adr/0018).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Observation, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_jobs.session import literal_path, setting_bytes, spark_schema
from spark_jobs.stage import write_work
from tables import OFFSET_FILE, SILVER_TABLES
from tables.silver.export_record import EXPORT_RECORD
from tables.silver.rejected_record import REJECTED_RECORD
from topology.contract import EnvelopeError, parse_envelope
from topology.payloads import PayloadError, error_code, facts, facts_of_unreadable
from topology.redaction import redact_envelope, redact_text, redact_unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import Column, DataFrame, SparkSession

    from tables import Table
    from topology.manifest import Manifest
    from warehouse.layout import Stage

_LINE = ("file_name", "line_number")
_FACT_SCHEMA = "table_name string, file_name string, line_number long, row string"
_ARROW_FACT_SCHEMA = pa.schema(
    [
        ("table_name", pa.string()),
        ("file_name", pa.string()),
        ("line_number", pa.int64()),
        ("row", pa.string()),
    ]
)
_OF_LINES = (EXPORT_RECORD, REJECTED_RECORD)
"""Tables that have every line of the export, also those whose answers do not count."""


def read_silver(
    spark: SparkSession, export_directory: str, manifest: Manifest, stage: Stage
) -> dict[str, DataFrame]:
    """The silver tables of one export, by name. The export is read by now; the tables are not computed yet.

    Args:
        spark: the session.
        export_directory: the directory of the export, as a path or URI that Spark can read.
        manifest: its verified manifest.
        stage: where the parsed lines are put, for as long as the tables are read.
    """
    lines = _read_lines(spark, export_directory, manifest)
    facts_of_lines = lines.mapInArrow(_parse_batches(_kind_by_file(manifest)), _FACT_SCHEMA)
    asked = Observation()
    address = F.when(
        (F.col("table_name") == EXPORT_RECORD.name) & _in_row("broker_addr").isNotNull(),
        F.struct(_in_row("broker_name").alias("broker_name"), _in_row("broker_addr").alias("broker_addr")),
    )
    facts_of_lines = facts_of_lines.observe(asked, F.collect_set(address).alias("addresses"))
    parsed = write_work(spark, stage, "parsed_line", facts_of_lines, folder_by="table_name")
    silver = {table.name: _typed(parsed, table, manifest) for table in SILVER_TABLES}
    address_counts = Counter(address["broker_name"] for address in asked.get["addresses"])
    brokers = [name for name, count in address_counts.items() if count > 1]
    if brokers:
        outvoted = F.broadcast(_outvoted_lines(parsed, brokers))
        counted = parsed.join(outvoted, list(_LINE), "left_anti")
        silver |= {
            table.name: _typed(counted, table, manifest) for table in SILVER_TABLES if table not in _OF_LINES
        }
    return silver


def _outvoted_lines(parsed: DataFrame, brokers: list[str]) -> DataFrame:
    """The lines whose answer does not count, because another address of the same broker was asked the same.

    Name servers that do not know the same master make a collector ask both. An address that answered the question counts
    before one that did not, and of two the one that answered more of what it was asked in the whole export.

    Args:
        parsed: lines as `_parse_batches` gives them.
        brokers: those that were asked at several addresses.

    Returns:
        Columns file_name, line_number.
    """
    parsed = parsed.withColumn("broker_addr", _in_row("broker_addr"))
    records = _rows_of(parsed, EXPORT_RECORD, "broker_addr", *_LINE).where(
        F.col("broker_addr").isNotNull() & F.col("broker_name").isin(brokers)
    )
    of_address = Window.partitionBy("broker_name", "broker_addr")
    question = ("kind", "broker_name", "consumer_group", "topic", "client_id")
    is_answer = (F.col("state") == "payload").cast("int")
    place = F.dense_rank().over(
        Window.partitionBy(*question).orderBy(F.desc("is_answered"), F.desc("answer_count"), "broker_addr")
    )
    return (
        records.withColumn("answer_count", F.sum(is_answer).over(of_address))
        .withColumn("is_answered", F.max(is_answer).over(Window.partitionBy(*question, "broker_addr")))
        .withColumn("place", place)
        .where("place > 1")
        .select(*_LINE)
    )


def _kind_by_file(manifest: Manifest) -> dict[str, str]:
    return {file.path: file.kind for file in manifest.envelope_files}


def _read_lines(spark: SparkSession, export_directory: str, manifest: Manifest) -> DataFrame:
    """Columns `file`, `block_start`, `first_line_number`, `value`: lines in file order within each block."""
    paths = [literal_path(f"{export_directory}/{file}") for file in _kind_by_file(manifest)]
    # Only "\n" ends a line, as in the manifest's counts; Spark would end one at a lone "\r" too.
    lines = (
        spark.read.option("lineSep", "\n")
        .text(paths)
        .select(
            F.col("_metadata.file_name").alias("file"),
            F.col("_metadata.file_block_start").alias("block_start"),
            "value",
        )
    )
    # A file larger than a split is read in blocks; a block's first line number is the count of lines before it.
    largest_bytes = max((file.size_bytes for file in manifest.envelope_files), default=0)
    if largest_bytes <= _never_split_bytes(spark):
        return lines.withColumn("first_line_number", F.lit(1).cast("long"))
    blocks = lines.groupBy("file", "block_start").count().collect()
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    for block in blocks:
        counts[block["file"]][block["block_start"]] = block["count"]
    first_lines = [
        (file, start, 1 + sum(count for other, count in by_start.items() if other < start))
        for file, by_start in counts.items()
        for start in by_start
    ]
    numbered = spark.createDataFrame(first_lines, "file string, block_start long, first_line_number long")
    return lines.join(F.broadcast(numbered), ["file", "block_start"]).select(
        *lines.columns, "first_line_number"
    )


def _never_split_bytes(spark: SparkSession) -> int:
    """The largest file that Spark certainly reads in one task (`FilePartition.maxSplitBytes`)."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    return min(setting_bytes(spark, name) for name in names)


def _parse_batches(
    kind_by_file: dict[str, str],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs on the lines: Arrow batches in, rows of `_FACT_SCHEMA` out.

    `row` is a silver row as JSON; one of `export_record` has a `broker_addr` more than its table: the broker's address that was asked.
    """

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lines_seen: dict[tuple[str, int], int] = defaultdict(int)
        for batch in batches:
            found: list[tuple[str, str, int, str]] = []
            columns = (
                batch.column(name).to_pylist()
                for name in ("file", "block_start", "first_line_number", "value")
            )
            for file, block_start, first_line_number, text in zip(*columns, strict=True):
                line_number = first_line_number + lines_seen[file, block_start]
                lines_seen[file, block_start] += 1
                for name, row in _rows_of_line(file, kind_by_file[file], line_number, text):
                    found.append((name, file, line_number, json.dumps(row, ensure_ascii=False)))
            columns_of_facts = zip(*found, strict=True) if found else [[]] * len(_ARROW_FACT_SCHEMA)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(values, field.type)
                    for values, field in zip(columns_of_facts, _ARROW_FACT_SCHEMA, strict=True)
                ],
                schema=_ARROW_FACT_SCHEMA,
            )

    return parse


def _rows_of_line(file: str, kind: str, line_number: int, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(table name, row) for one line: its facts, its `export_record`, and its rejection if it has one."""
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
        "broker_addr": envelope.broker_addr,
    }
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


def _in_row(key: str) -> Column:
    return F.get_json_object("row", f"$.{key}")


def _typed(parsed: DataFrame, table: Table, manifest: Manifest) -> DataFrame:
    """The rows of one table with the table's own schema, from its folder alone."""
    columns = [column.name for column in spark_schema(table).fields[2:]]
    return _rows_of(parsed, table).select(
        F.lit(manifest.cluster).alias("cluster"), F.lit(manifest.ds).alias("ds"), *columns
    )


def _rows_of(parsed: DataFrame, table: Table, *beside: str) -> DataFrame:
    """The columns of one table but cluster and ds, and columns beside them that only parsed lines have."""
    row_schema = StructType(spark_schema(table).fields[2:])
    # FAILFAST: a row that does not fit its schema is a bug of ours and must not become a row of nulls.
    row = F.from_json("row", row_schema, {"mode": "FAILFAST"}).alias("row")
    own = [name for name in beside if name not in row_schema.fieldNames()]
    return parsed.where(F.col("table_name") == table.name).select(*own, row).select(*own, "row.*")
