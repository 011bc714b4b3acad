"""The Parquet files of a day: reading staged ones, adding them to the published table without a copy, and writing other rows there.

Delta does not check the files of a commit (docs/adr/0026), so the content of the commit is read from the files.

Belongs here: files, their footers and statistics. Does not belong here: which files were judged (`inventory`), and the commit
(`commits`).
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from rebalance_ledger.storage.engines import file_system_of
from rebalance_ledger.storage.location import is_object_store
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.errors import StagingError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.cluster_day import ClusterDay
    from rebalance_ledger.warehouse.content import Content
    from rebalance_ledger.warehouse.layout import StagingArea

_FOLDER: Final = "data"
"""Folder in the published table; paths do not contain the names of clusters."""
_LONGEST_TEXT: Final = 32
"""Maximum length of a text in the statistics; longer ones are omitted, because they would have to be truncated."""
_ROWS_PER_GROUP: Final = 131_072
"""Rows that a writer holds in memory, and among which a reader skips."""
_AT_A_TIME: Final = 4
"""Files that are read, linked or copied at a time."""


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """The rows of a staged table as its files.

    Attributes:
        places: The files that have rows.
        content: Content of the rows.
    """

    places: tuple[str, ...]
    content: Content


def staged_rows(stage: StagingArea, table: Table) -> pads.Dataset:
    """Return the rows of a staged table, of all groups, with the columns `cluster` and `ds`.

    Raises:
        StagingError: The staged day has no such table.
    """
    file_system, path = file_system_of(stage.table(table))
    if file_system.get_file_info(path).type == pafs.FileType.NotFound:
        raise StagingError(
            f"The staging area at {stage.root} has no {table.qualified_name}, so another release computed it: run the build again."
        )
    return pads.dataset(path, schema=arrow_schema(table), format="parquet", filesystem=file_system)


def rows_of_files(places: Sequence[str], table: Table) -> pads.Dataset:
    """Return the rows of files, with the columns `cluster` and `ds`; columns that a file does not have are null."""
    schema = arrow_schema(table)
    if not places:
        return pads.dataset(schema.empty_table())
    file_system, _ = file_system_of(places[0])
    paths = [file_system_of(place)[1] for place in places]
    return pads.dataset(paths, schema=schema, format="parquet", filesystem=file_system)


def footers_of(files: StagedFiles, table_place: str, day: ClusterDay) -> list[pq.FileMetaData]:
    """Read the footers of files.

    Raises:
        OSError: A file cannot be read.
        StagingError: The files have another number of rows than was judged.
    """

    def footer(place: str) -> pq.FileMetaData:
        file_system, path = file_system_of(place)
        return pq.read_metadata(path, filesystem=file_system)

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        footers = list(pool.map(footer, files.places))
    row_count = sum(footer.num_rows for footer in footers)
    if row_count != files.content.row_count:
        raise StagingError(
            f"{table_place} would get {row_count} rows of {day.cluster} {day.ds}, and {files.content.row_count} were judged; nothing "
            "is published: run the build of this day again."
        )
    return footers


def have_types_of(footers: Iterable[pq.FileMetaData], table: Table) -> bool:
    """Return whether files have the columns and types of a table, so that they can become its files."""
    wanted = {field.name: field.type for field in arrow_schema(table)}
    for footer in footers:
        found = {field.name: field.type for field in footer.schema.to_arrow_schema()}
        if found.keys() != wanted.keys() or not all(
            _is_same_type(found[name], wanted[name]) for name in wanted
        ):
            return False
    return True


def _is_same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Compare types, ignoring the nullability of elements."""
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return _is_same_type(found.value_type, wanted.value_type)
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        return [field.name for field in found] == [field.name for field in wanted] and all(
            _is_same_type(one.type, other.type) for one, other in zip(found, wanted, strict=True)
        )
    return bool(found == wanted)


def give_to_table(
    files: StagedFiles, footers: Sequence[pq.FileMetaData], table_place: str, partition: Mapping[str, str]
) -> list[AddAction]:
    """Give files a second name in the folder of a published table, where readers ignore them until they are committed.

    A file on a disk is hard-linked and made read-only, because both names refer to the same file; in an object store, the store copies it.

    Args:
        files: The files.
        footers: Their footers, in the same order.
        table_place: Location of the published table.
        partition: Partition column -> value of all rows.

    Returns:
        The entry of each file in the commit. Paths are relative to the table, and not URL-encoded.

    Raises:
        OSError: A file cannot be read or written.
    """
    if not files.places:
        return []
    file_system, root = file_system_of(table_place)
    folder = None if is_object_store(table_place) else Path(root, _FOLDER)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)

    def give(place: str, footer: pq.FileMetaData) -> AddAction:
        name = f"{_FOLDER}/part-{uuid4()}.parquet"
        _, source = file_system_of(place)
        target = f"{root}/{name}"
        if folder:
            _link(Path(source), Path(target))
        else:
            file_system.copy_file(source, target)
        return _entry(name, file_system.get_file_info(target), footer, partition)

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        actions = list(pool.map(give, files.places, footers))
    if folder:
        _synchronize(folder)
    return actions


def write_to_table(
    batches: pa.RecordBatchReader, table_place: str, partition: Mapping[str, str], *, is_change: bool = True
) -> list[AddAction]:
    """Write rows to a file in the folder of a published table, where readers ignore it until it is committed.

    `write_deltalake` would start a query engine, whose memory is a tenth of that of a small publication.

    Args:
        batches: The rows, with the columns `cluster` and `ds`.
        table_place: Location of the published table.
        partition: Partition column -> value of all rows.
        is_change: Whether the table does not have these rows yet.

    Returns:
        The entry of the file in the commit; none if there are no rows. The path is relative to the table.

    Raises:
        OSError: The file cannot be written.
        ArrowException: A row has null in a column that must have a value.
    """
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return []
    file_system, root = file_system_of(table_place)
    written: list[pads.WrittenFile] = []
    pads.write_dataset(
        pa.RecordBatchReader.from_batches(batches.schema, chain([first], filled)),
        f"{root}/{_FOLDER}",
        basename_template=f"part-{uuid4()}-{{i}}.parquet",
        format="parquet",
        filesystem=file_system,
        file_visitor=written.append,
        existing_data_behavior="overwrite_or_ignore",
        preserve_order=True,
        min_rows_per_group=_ROWS_PER_GROUP,
        max_rows_per_group=_ROWS_PER_GROUP,
    )
    if not is_object_store(table_place):
        _synchronize(Path(root, _FOLDER))
    return [
        _entry(
            f"{_FOLDER}/{Path(file.path).name}",
            file_system.get_file_info(file.path),
            file.metadata,
            partition,
            is_change=is_change,
        )
        for file in written
    ]


def _entry(
    name: str,
    info: pafs.FileInfo,
    footer: pq.FileMetaData,
    partition: Mapping[str, str],
    *,
    is_change: bool = True,
) -> AddAction:
    """Return the entry of a file in a commit."""
    return AddAction(
        path=name,
        size=info.size,
        partition_values=partition,
        modification_time=int(info.mtime.timestamp() * 1000),
        data_change=is_change,
        stats=statistics(footer, partition),
    )


def _link(source: Path, target: Path) -> None:
    """Hard-link a file, or copy it if the target is on another disk or does not support links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
    with suppress(PermissionError):  # of a file that another user has staged
        target.chmod(stat.S_IMODE(target.stat().st_mode) & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def _synchronize(folder: Path) -> None:
    """Sync a folder to disk before its files are committed."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def statistics(metadata: pq.FileMetaData, partition_columns: Collection[str] = ()) -> str:
    """Return Delta's statistics of a file as JSON, from its footer, for columns that are neither lists nor structs.

    Partition columns are omitted. Columns without exact bounds have none, and neither have floating-point numbers, because the bounds in a
    footer ignore NaN. Bounds of instants are in milliseconds, rounded down and up (Delta protocol, per-file statistics).
    """
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    null_counts: dict[str, int] = {}
    for column in range(metadata.num_columns):
        name = metadata.schema.column(column).path
        if name in partition_columns:
            continue
        chunks = [metadata.row_group(group).column(column) for group in range(metadata.num_row_groups)]
        of_chunks = [chunk.statistics for chunk in chunks]
        if "." in name or any(of_chunk is None or not of_chunk.has_null_count for of_chunk in of_chunks):
            continue
        null_counts[name] = sum(of_chunk.null_count for of_chunk in of_chunks)
        with_values = [
            of_chunk
            for chunk, of_chunk in zip(chunks, of_chunks, strict=True)
            if of_chunk.null_count < chunk.num_values
        ]
        bounds = _bounds(with_values) if all(of_chunk.has_min_max for of_chunk in with_values) else None
        if bounds is not None:
            lowest[name], highest[name] = bounds
    return json.dumps(
        {
            "numRecords": metadata.num_rows,
            "minValues": lowest,
            "maxValues": highest,
            "nullCount": null_counts,
        }
    )


def _bounds(of_chunks: Sequence[pq.Statistics]) -> tuple[Any, Any] | None:
    """Return the smallest and the largest value as JSON values; None if there is none, or not an exact one."""
    if not of_chunks:
        return None
    least, greatest = _extreme(of_chunks)
    match least, greatest:
        case (bool(), _):
            return None
        case (int(), int()):
            return least, greatest
        case (str(), str()):
            return (least, greatest) if max(len(least), len(greatest)) <= _LONGEST_TEXT else None
        case (datetime(), datetime()):
            return _instant(least), _instant(greatest + timedelta(microseconds=999))
        case (date(), date()):
            return least.isoformat(), greatest.isoformat()
        case _:
            return None


def _extreme(of_chunks: Iterable[pq.Statistics]) -> tuple[Any, Any]:
    bounds = [(of_chunk.min, of_chunk.max) for of_chunk in of_chunks]

    def order(value: Any) -> Any:  # noqa: ANN401  # of any column
        return value.encode(errors="surrogatepass") if isinstance(value, str) else value

    return min((low for low, _ in bounds), key=order), max((high for _, high in bounds), key=order)


def _instant(value: datetime) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"
