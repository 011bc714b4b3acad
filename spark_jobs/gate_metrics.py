"""Measuring a staged day for the gate, over the files as they were written. No rows pass through Spark.

What belongs here: which rows the gate's statements are shown, and where their numbers are written. What does not: the statements
(`expectations.suites`).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from expectations.measurement import METRIC_SCHEMA, GateDatabase, gate_database
from expectations.suites.configured_rule import CONFIGURED_RULE_SCHEMA, configured_rules
from rebalance_ledger.exports.contract import KIND_BY_NAME
from rebalance_ledger.storage.engines import file_system_of
from rebalance_ledger.storage.location import ObjectPath, is_object_store
from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, SILVER_TABLES
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.exclude_groups import without_groups
from rebalance_ledger.warehouse.publish import staged_rows
from rebalance_ledger.warehouse.sandbox import SANDBOX_CONFIG
from rebalance_ledger.warehouse.staging import write_excluded_groups
from spark_jobs.baseline import COMPARED_TABLES
from spark_jobs.progress import logged
from spark_jobs.silver.offset_file_snapshots import OFFSET_FILE_KIND, READINGS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rebalance_ledger.exports.catalog import EarlierExport
    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.settings import ClusterSettings
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.baseline import EarlierDay
    from rebalance_ledger.warehouse.layout import StagingArea

EXPORT_LINES: Final = "export_line"
"""Name of the intermediate result with the lines of the export's files of envelopes."""

_LINE_SCHEMA: Final = pa.schema([("kind", pa.string()), ("value", pa.string())])
_BATCH_BYTES: Final = 1024 * 1024
"""Text that a thread of the comparison with the export has at once; it needs about a hundred times as much memory."""
_MEMORY_LIMIT: Final = "1200MB"
"""Of the database; the driver's process has its own memory beside it."""
_MOST_THREADS: Final = 4
"""Of the database: its memory is shared by them."""
OFFSET_FILES_QUERY: Final = """
SELECT host, client_id, consumer_group, role = 'previous' AS is_previous, moment, side, content
FROM (SELECT *, unnest(['main', 'bak']) AS side, unnest([main_content, bak_content]) AS content FROM offset_reading)
WHERE content IS NOT NULL"""


def write_metrics(
    stage: StagingArea,
    export_directory: Location,
    manifest: Manifest,
    earlier: Sequence[EarlierExport],
    before: EarlierDay | None,
    settings: ClusterSettings,
) -> list[dict[str, Any]]:
    """Measure the rows as they were written, write the numbers beside them, and return them.

    Args:
        stage: The staged day, with the intermediate results of its computation.
        export_directory: The directory of its export.
        manifest: The export's manifest.
        earlier: The earlier exports whose offset files the day was compared with.
        before: The earlier published day that the build read, if there is one.
        settings: The settings of the cluster.

    Returns:
        Rows of `expectations.measurement.METRIC_SCHEMA`.
    """
    _write_lines(stage, export_directory, manifest)
    with _database(stage) as database:
        show_day(database, stage, manifest, earlier, before, settings)
        return _measured(database, stage, (), stage.gate_metric)


def write_metrics_without_quarantined(
    stage: StagingArea,
    manifest: Manifest,
    earlier: Sequence[EarlierExport],
    before: EarlierDay | None,
    settings: ClusterSettings,
    excluded_groups: Collection[str],
) -> None:
    """Measure the same rows once more as if some groups were not there, after `write_metrics`."""
    with _database(stage) as database:
        show_day(database, stage, manifest, earlier, before, settings)
        _measured(database, stage, excluded_groups, stage.gate_metric_without_quarantined)
    write_excluded_groups(stage, excluded_groups)


@contextmanager
def _database(stage: StagingArea) -> Iterator[GateDatabase]:
    """Open a database that reads the stage, and writes to disk what does not fit into its memory."""
    with (
        TemporaryDirectory(prefix="rebalance-ledger-gate-") as folder,
        gate_database(
            {
                **SANDBOX_CONFIG,
                "temp_directory": folder,
                "memory_limit": _MEMORY_LIMIT,
                "threads": str(min(_MOST_THREADS, os.cpu_count() or 1)),
            },
            _readable_folders(stage),
        ) as database,
    ):
        yield database


def _readable_folders(stage: StagingArea) -> list[str]:
    """Return the folder of the stage if DuckDB can read it: on a disk, and without characters of its patterns in the path."""
    return (
        []
        if is_object_store(stage.root) or set(stage.root) & set("*?[")
        else [str(Path(stage.root).absolute())]
    )


def _show_staged(database: GateDatabase, stage: StagingArea, name: str, rows: pads.Dataset) -> None:
    """Show rows of the stage; Arrow reads those that DuckDB cannot."""
    if rows.files and _readable_folders(stage):
        database.show_files(name, [str(Path(file).absolute()) for file in rows.files])
    else:
        database.show(name, rows)


def _measured(
    database: GateDatabase, stage: StagingArea, excluded_groups: Collection[str], place: str
) -> list[dict[str, Any]]:
    show_tables(database, stage, excluded_groups)
    rows = database.metrics(logged=logged)
    with _writer(place, METRIC_SCHEMA) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=METRIC_SCHEMA))
    return rows


def show_tables(database: GateDatabase, stage: StagingArea, excluded_groups: Collection[str] = ()) -> None:
    """Show the staged tables without the rows of some groups."""
    groups = [{"consumer_group": group} for group in excluded_groups]
    database.show_records("excluded_group", "consumer_group string", groups)
    for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES):
        name, rows = f"{table.layer}_{table.name}", staged_rows(stage, table)
        if excluded_groups:
            database.show(name, without_groups(rows, table, excluded_groups))
        else:
            _show_staged(database, stage, name, rows)


def show_day(
    database: GateDatabase,
    stage: StagingArea,
    manifest: Manifest,
    earlier: Sequence[EarlierExport],
    before: EarlierDay | None,
    settings: ClusterSettings,
) -> None:
    """Show what the statements read beside the staged tables, after `write_metrics` has written the lines of the export."""
    for table in COMPARED_TABLES:
        schema = arrow_schema(table)
        files = before.files[table] if before else ()
        rows = schema.empty_table() if not files else _rows_of(files, schema)
        database.show(f"baseline_{table.name}", rows)
    run = {
        "cluster": manifest.cluster,
        "ds": manifest.ds.isoformat(),
        "baseline_ds": before.ds.isoformat() if before else None,
    }
    database.show_records("run", "cluster string, ds date, baseline_ds date", [run])
    database.show_records(
        "manifest_file",
        "path string, kind string, line_count bigint, error_count bigint",
        [
            {
                "path": file.path,
                "kind": file.kind,
                "line_count": file.line_count,
                "error_count": file.error_count,
            }
            for file in manifest.envelope_files
        ],
    )
    database.show_records("configured_rule", CONFIGURED_RULE_SCHEMA, configured_rules(settings))
    _show_staged(database, stage, "export_line", _rows_of([stage.work(EXPORT_LINES)], _LINE_SCHEMA))
    _show_offset_files(database, stage, earlier)


def _show_offset_files(database: GateDatabase, stage: StagingArea, earlier: Sequence[EarlierExport]) -> None:
    """Show the bytes of offset files, as the build read them, and the lines of the indexes of earlier exports."""
    file_system, path = file_system_of(stage.work(READINGS))
    _show_staged(
        database, stage, "offset_reading", pads.dataset(path, format="parquet", filesystem=file_system)
    )
    database.show_query("offset_file_content", OFFSET_FILES_QUERY)
    name = KIND_BY_NAME[OFFSET_FILE_KIND].file_name
    lines = [
        {"ds": export.manifest.ds, "value": line}
        for export in earlier
        for line in _lines(export.directory / name)
    ]
    schema = pa.schema([("ds", pa.date32()), ("value", pa.string())])
    database.show("earlier_index_line", pa.Table.from_pylist(lines, schema=schema))


def _writer(folder: str, schema: pa.Schema) -> pq.ParquetWriter:
    """Open the one Parquet file of a folder."""
    file_system, path = file_system_of(folder)
    if not is_object_store(folder):
        file_system.create_dir(path)
    return pq.ParquetWriter(f"{path}/part-0.parquet", schema, filesystem=file_system)


def _rows_of(places: Sequence[str], schema: pa.Schema) -> pads.Dataset:
    """Return the rows of Parquet files, or of a folder of them. Columns that a file does not have are null."""
    file_system, _ = file_system_of(places[0])
    paths = [file_system_of(place)[1] for place in places]
    return pads.dataset(
        paths[0] if len(paths) == 1 else paths, schema=schema, format="parquet", filesystem=file_system
    )


def _write_lines(stage: StagingArea, export_directory: Location, manifest: Manifest) -> None:
    """Write the lines of an export as Parquet: compressed, and read in batches."""
    with _writer(stage.work(EXPORT_LINES), _LINE_SCHEMA) as writer:
        for file in manifest.envelope_files:
            for lines in _batches(_lines(export_directory / file.path)):
                kinds = pa.array([file.kind] * len(lines), pa.string())
                writer.write_batch(
                    pa.record_batch([kinds, pa.array(lines, pa.string())], schema=_LINE_SCHEMA)
                )


def _lines(file: Location) -> Iterator[str]:
    r"""Yield the lines of a file. Only `\n` ends a line, as in the manifest's counts."""
    with file.open() if isinstance(file, ObjectPath) else file.open("rb") as stream:
        for line in stream:
            yield line.removesuffix(b"\n").decode("utf-8", "replace")


def _batches(lines: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size_bytes = 0
    for line in lines:
        batch.append(line)
        size_bytes += len(line)
        if size_bytes >= _BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch
