"""From the files of an export to the silver tables.

Each line is parsed once, in parallel, by `topology`; this module moves lines in and typed rows out. What is parsed goes to
disk, a folder for each table: an export is larger than memory, and every table reads its own part (docs/adr/0018).
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_jobs.session import literal_path, setting_bytes, spark_schema
from spark_jobs.stage import write_work
from tables import OFFSET_FILE, SILVER_TABLES
from topology.contract import EnvelopeError, parse_envelope
from topology.payloads import PayloadError, error_code, facts, facts_of_unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from tables import Table
    from topology.manifest import Manifest
    from warehouse.layout import Stage

_FACT_SCHEMA = "table_name string, row string"
_ARROW_FACT_SCHEMA = pa.schema([("table_name", pa.string()), ("row", pa.string())])


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
    parsed = write_work(spark, stage, "parsed_line", facts_of_lines, folder_by="table_name")
    return {table.name: _typed(parsed, table, manifest) for table in SILVER_TABLES}


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
    """The function that Spark runs on the lines: Arrow batches in, (table_name, row as JSON) out."""

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lines_seen: dict[tuple[str, int], int] = defaultdict(int)
        for batch in batches:
            names: list[str] = []
            rows: list[str] = []
            columns = (
                batch.column(name).to_pylist()
                for name in ("file", "block_start", "first_line_number", "value")
            )
            for file, block_start, first_line_number, text in zip(*columns, strict=True):
                line_number = first_line_number + lines_seen[file, block_start]
                lines_seen[file, block_start] += 1
                for name, row in _rows_of_line(file, kind_by_file[file], line_number, text):
                    names.append(name)
                    rows.append(json.dumps(row, ensure_ascii=False))
            yield pa.RecordBatch.from_arrays(
                [pa.array(names, pa.string()), pa.array(rows, pa.string())], schema=_ARROW_FACT_SCHEMA
            )

    return parse


def _rows_of_line(file: str, kind: str, line_number: int, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(table name, row) for one line: its facts, its `export_record`, and its rejection if it has one."""
    where = {"kind": kind, "file": file, "line_number": line_number}
    try:
        envelope = parse_envelope(text, kind)
    except EnvelopeError as error:
        yield "rejected_record", where | {"reason": str(error), "text": text}
        yield "export_record", where | {"state": "rejected"}
        return
    record = where | {
        "captured_at": envelope.captured_at.isoformat(),
        "nameserver": envelope.nameserver,
        "broker_name": envelope.broker,
        "consumer_group": envelope.group,
        "topic": envelope.topic,
        "client_id": envelope.client_id,
    }
    try:
        # All or nothing: half a record must not stand in silver beside its rejection.
        rows = list(facts(envelope))
    except PayloadError as error:
        yield "rejected_record", where | {"reason": str(error), "text": envelope.payload or ""}
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


def _typed(parsed: DataFrame, table: Table, manifest: Manifest) -> DataFrame:
    """The rows of one table with the table's own schema, from its folder alone."""
    schema = spark_schema(table)
    row_schema = StructType(schema.fields[2:])
    rows = parsed.where(F.col("table_name") == table.name)
    # FAILFAST: a row that does not fit its schema is a bug of ours and must not become a row of nulls.
    typed = rows.select(F.from_json("row", row_schema, {"mode": "FAILFAST"}).alias("row")).select("row.*")
    return typed.select(
        F.lit(manifest.cluster).alias("cluster"), F.lit(manifest.ds).alias("ds"), *row_schema.fieldNames()
    )
