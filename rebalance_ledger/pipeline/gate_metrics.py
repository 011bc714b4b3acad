"""Measure a staged day for the gate, from the written files and the input of the build.

Belongs here: the tables and files that the gate's statements can read. Does not belong here: the statements (`expectations.suites`), and the
evaluation of their numbers (`gate_input`).
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from expectations.measurement import GateDatabase, gate_database
from expectations.suites.configured_rule import CONFIGURED_RULE_SCHEMA, configured_rules
from rebalance_ledger.exports.contract import KIND_BY_NAME, OFFSET_FILE_KIND
from rebalance_ledger.progress import logged
from rebalance_ledger.storage.engines import file_system_of
from rebalance_ledger.storage.location import ObjectPath, is_object_store
from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, SILVER_TABLES
from rebalance_ledger.warehouse.baseline import COMPARED_TABLES
from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.exclude_groups import without_groups
from rebalance_ledger.warehouse.sandbox import SANDBOX_CONFIG
from rebalance_ledger.warehouse.staged_files import rows_of_files, staged_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rebalance_ledger.exports.catalog import EarlierExport
    from rebalance_ledger.settings import ClusterSettings
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.baseline import EarlierDay
    from rebalance_ledger.warehouse.layout import StagingArea

_LINE_SCHEMA: Final = pa.schema([("kind", pa.string()), ("value", pa.string())])
_BATCH_BYTES: Final = 1024 * 1024
"""Text of the export that a thread reads at a time; it needs about a hundred times as much memory."""
_FOLDER_PREFIX: Final = "rebalance-ledger-gate-"
_MEMORY_VARIABLE: Final = "LEDGER_GATE_MEMORY"
_MEMORY_LIMIT: Final = "1200MB"
"""Default memory limit of the database, without other memory of the process."""
_SMALL_EXPORT_BYTES: Final = 20_000_000
"""For smaller exports, rows are kept in memory and statements are not optimized, which takes two thirds of the time even for 27 MB."""
_MOST_THREADS: Final = 4
"""Threads of the database, which share its memory."""
OFFSET_FILES_QUERY: Final = """
SELECT host, client_id, consumer_group, role = 'previous' AS is_previous, moment, side, content
FROM (SELECT *, unnest(['main', 'bak']) AS side, unnest([main_content, bak_content]) AS content FROM offset_reading)
WHERE content IS NOT NULL"""


class _WaitingDatabase(NamedTuple):
    """A database for small days that no day uses.

    Attributes:
        database: The database, without rows.
        opened: What closing it closes.
    """

    database: GateDatabase
    opened: ExitStack


_waiting_databases: Final[dict[str, _WaitingDatabase]] = {}
"""Memory limit -> a database that waits for the next small day of this process."""


class Sources(NamedTuple):
    """The input of a staged day, against which it is measured.

    Attributes:
        export: The export of the day.
        earlier: The earlier exports with whose offset files the day was compared.
        before: The baseline that the build read; None if there was none.
        settings: The settings of the cluster.
    """

    export: EarlierExport
    earlier: Sequence[EarlierExport]
    before: EarlierDay | None
    settings: ClusterSettings


@contextmanager
def gate_database_of(stage: StagingArea, sources: Sources) -> Iterator[GateDatabase]:
    """Open a database with everything that the statements read, except the staged tables, which `measure` adds.

    Data beyond its memory limit goes to a temporary folder, as far as the statement allows.

    Raises:
        StagingError: The memory limit is no size, or the statements of the block need more.
    """
    memory_limit = os.environ.get(_MEMORY_VARIABLE) or _MEMORY_LIMIT
    if not re.fullmatch(r"[1-9]\d*(\.\d+)?[MGT]i?B", memory_limit):
        raise StagingError(
            f"{_MEMORY_VARIABLE} is {memory_limit!r}: write a size, for example {_MEMORY_LIMIT} or 4GB."
        )
    opened = (
        _small_database(memory_limit)
        if sources.export.manifest.size_bytes <= _SMALL_EXPORT_BYTES
        else _large_database(memory_limit, stage, sources.export)
    )
    with opened as database:
        try:
            if database.is_small:
                database.show(
                    "export_line", pa.Table.from_batches(_line_batches(sources.export), _LINE_SCHEMA)
                )
            _show_sources(database, stage, sources)
            yield database
        except duckdb.OutOfMemoryException as error:
            raise StagingError(
                f"The gate of {stage.root} needs more than {memory_limit} of memory, and nothing is published: set {_MEMORY_VARIABLE} "
                "to a larger size and run the gate again."
            ) from error


@contextmanager
def _large_database(memory_limit: str, stage: StagingArea, export: EarlierExport) -> Iterator[GateDatabase]:
    """Open a database that reads files of a stage and of an export."""
    with TemporaryDirectory(prefix=_FOLDER_PREFIX) as folder:
        lines = Path(folder, "export_line.parquet")
        with pq.ParquetWriter(lines, _LINE_SCHEMA) as writer:  # Compressed, and read in batches.
            for batch in _line_batches(export):
                writer.write_batch(batch)
        with gate_database(_config(folder, memory_limit), [folder, *_readable_folders(stage)]) as database:
            database.show_files("export_line", [str(lines)])
            yield database


@contextmanager
def _small_database(memory_limit: str) -> Iterator[GateDatabase]:
    """Lend the database of an earlier small day of this process, or a new one; after an error it is closed."""
    waiting = _waiting_databases.pop(memory_limit, None)
    with ExitStack() as opened:
        if waiting is None:
            folder = opened.enter_context(TemporaryDirectory(prefix=_FOLDER_PREFIX))
            database = opened.enter_context(
                gate_database(_config(folder, memory_limit), [folder], is_small=True)
            )
        else:
            database = waiting.database
            opened.push(waiting.opened)
        yield database
        database.clear()
        if (
            memory_limit not in _waiting_databases
        ):  # Another one waits if two days were measured at the same time.
            _waiting_databases[memory_limit] = _WaitingDatabase(database, opened.pop_all())


def _config(folder: str, memory_limit: str) -> dict[str, str]:
    return {
        **SANDBOX_CONFIG,
        "temp_directory": folder,
        "memory_limit": memory_limit,
        "threads": str(min(_MOST_THREADS, os.cpu_count() or 1)),
    }


def measure(
    database: GateDatabase, stage: StagingArea, excluded_groups: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Measure a staged day without the rows of the given groups.

    Returns:
        Rows of `expectations.measurement.METRIC_SCHEMA`.
    """
    show_tables(database, stage, excluded_groups)
    with logged("metrics of the gate"):
        return database.metrics()


def _readable_folders(stage: StagingArea) -> list[str]:
    """Return the folder of the stage if DuckDB can read it: on a disk, and without wildcard characters in the path."""
    return (
        []
        if is_object_store(stage.root) or set(stage.root) & set("*?[")
        else [str(Path(stage.root).absolute())]
    )


def _show_staged(database: GateDatabase, stage: StagingArea, name: str, rows: pads.Dataset) -> None:
    """Register rows of the stage; Arrow reads the few rows of a small day, and files that DuckDB cannot read."""
    if rows.files and _readable_folders(stage) and not database.is_small:
        database.show_files(name, [str(Path(file).absolute()) for file in rows.files])
    else:
        database.show(name, rows)


def show_tables(database: GateDatabase, stage: StagingArea, excluded_groups: Collection[str] = ()) -> None:
    """Register the staged tables without the rows of the given groups."""
    groups = [{"consumer_group": group} for group in excluded_groups]
    database.show_records("excluded_group", "consumer_group string", groups)
    for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES):
        name, rows = f"{table.layer}_{table.name}", staged_rows(stage, table)
        if excluded_groups:
            database.show(name, without_groups(rows, table, excluded_groups))
        else:
            _show_staged(database, stage, name, rows)


def _show_sources(database: GateDatabase, stage: StagingArea, sources: Sources) -> None:
    manifest, before = sources.export.manifest, sources.before
    for table in COMPARED_TABLES:
        rows = rows_of_files(before.files(table) if before else (), table)
        if before:
            # A file may have other days too; one of an early release has no `ds`, and a single day.
            ds = pads.field("ds")
            rows = rows.filter((ds == pa.scalar(before.ds)) | ds.is_null())
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
    database.show_records("configured_rule", CONFIGURED_RULE_SCHEMA, configured_rules(sources.settings))
    _show_offset_files(database, stage, sources.earlier)


def _show_offset_files(database: GateDatabase, stage: StagingArea, earlier: Sequence[EarlierExport]) -> None:
    """Register the content of offset files as the build read them, and the lines of the indexes of earlier exports."""
    file_system, path = file_system_of(stage.offset_readings)
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


def _line_batches(export: EarlierExport) -> Iterator[pa.RecordBatch]:
    """Yield the lines of an export."""
    for file in export.manifest.envelope_files:
        for lines in _batches(_lines(export.directory / file.path)):
            kinds = pa.array([file.kind] * len(lines), pa.string())
            yield pa.record_batch([kinds, pa.array(lines, pa.string())], schema=_LINE_SCHEMA)


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
