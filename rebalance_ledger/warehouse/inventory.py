"""The files of a stage with their hashes, which ensure that the judged rows are published.

The build records every staged file. The gate compares the files with this record before it measures them, and adds the record to its
verdict. Publication compares them again. Hashing bytes costs a tenth of hashing rows, and equal bytes are equal rows.

Belongs here: the record and its comparison. Does not belong here: the choice of the stage (`staging`).
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from rebalance_ledger.storage.engines import file_system_of
from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, SILVER_TABLES
from rebalance_ledger.warehouse.content import content_of
from rebalance_ledger.warehouse.errors import StagingError, one_line
from rebalance_ledger.warehouse.sandbox import connect
from rebalance_ledger.warehouse.staged_files import staged_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.cluster_day import ClusterDay
    from rebalance_ledger.warehouse.layout import StagingArea
    from rebalance_ledger.warehouse.records import Record

_CHUNK_BYTES: Final = 1 << 20
_READERS: Final = 4
"""Files read at a time."""

_FIRST_FILES: Final = 3
"""Files that a sentence names; the others are counted."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """One Parquet file of a stage.

    Attributes:
        name: Path in the folder of its table.
        size_bytes: Size.
        sha256: SHA-256 of the content, hexadecimal.
        row_count: Number of rows, from the file's footer.
    """

    name: str
    size_bytes: int
    sha256: str
    row_count: int


@dataclass(frozen=True, slots=True)
class StagedTable:
    """The files of one staged table, or of the offset files as the build read them.

    Attributes:
        name: Qualified name of the table, or path of the folder in the stage.
        files: Files, sorted by name.
        content_hash: Hash of the rows (`content.Content`); None for rows that are not published, for a table with rows of another
            day, and in records of older releases.
    """

    name: str
    files: tuple[StagedFile, ...]
    content_hash: str | None = None

    @property
    def row_count(self) -> int:
        """Rows in all files."""
        return sum(file.row_count for file in self.files)

    def document(self) -> dict[str, Any]:
        """Return the record as JSON."""
        return asdict(self)

    @classmethod
    def of(cls, record: Record) -> Self:
        """Return what `document` wrote.

        Raises:
            RecordError: a field is missing or of another type.
        """
        return cls(
            record.text("name"),
            tuple(
                StagedFile(
                    file.text("name"), file.count("size_bytes"), file.text("sha256"), file.count("row_count")
                )
                for file in record.records("files")
            ),
            record.text_or_none("content_hash"),
        )


def inventory_of_stage(stage: StagingArea, day: ClusterDay) -> tuple[StagedTable, ...]:
    """Return the files of everything that the gate judges: every staged table, and the offset files as the build read them.

    Raises:
        StagingError: A table is missing, or a file cannot be read as Parquet.
    """
    readings = stage.offset_readings.removeprefix(f"{stage.root}/")
    with (
        connect() as connection,
        ThreadPoolExecutor(_READERS) as pool,
        ThreadPoolExecutor(_READERS) as pool_of_tables,
    ):

        def staged(table: Table) -> StagedTable:
            files = tuple(_staged_files(pool, stage.table(table)))
            with connection.cursor() as cursor:
                content = content_of(cursor, table, staged_rows(stage, table), day)
            is_of_day = content.row_count == sum(file.row_count for file in files)
            return StagedTable(table.qualified_name, files, content.content_hash if is_of_day else None)

        return (
            *pool_of_tables.map(staged, (*SILVER_TABLES, *COMPUTED_GOLD_TABLES)),
            StagedTable(readings, tuple(_staged_files(pool, stage.offset_readings))),
        )


def refuse_changed(stage: StagingArea, recorded: Sequence[StagedTable]) -> None:
    """Raise if the files of a stage differ from the recorded ones.

    Raises:
        StagingError: A file is missing, was added, or has other bytes; the message names the first of them.
    """
    folders = {table.qualified_name: stage.table(table) for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES)}
    with ThreadPoolExecutor(_READERS) as pool:
        problems = [
            problem
            for table in recorded
            for problem in _changes(pool, table, folders.get(table.name, f"{stage.root}/{table.name}"))
        ]
    if problems:
        more = f" and {len(problems) - _FIRST_FILES} more" if len(problems) > _FIRST_FILES else ""
        raise StagingError(
            f"The staging area at {stage.root} is not what the build wrote ({', '.join(problems[:_FIRST_FILES])}{more}); nothing is "
            "published: run the build of this day again."
        )


def _changes(pool: ThreadPoolExecutor, table: StagedTable, folder: str) -> Iterator[str]:
    """Yield a phrase for each difference between the files of a folder and the recorded ones."""
    recorded = {file.name: file for file in table.files}
    sizes = _sizes(folder)
    yield from (f"{table.name}/{name} is missing" for name in sorted(recorded.keys() - sizes.keys()))
    yield from (f"{table.name}/{name} was added" for name in sorted(sizes.keys() - recorded.keys()))
    names = sorted(recorded.keys() & sizes.keys())
    hashes = pool.map(_sha256, [f"{folder}/{name}" for name in names])
    for name, sha256 in zip(names, hashes, strict=True):
        if sha256 != recorded[name].sha256:
            yield f"{table.name}/{name} has changed"


def _staged_files(pool: ThreadPoolExecutor, folder: str) -> Iterator[StagedFile]:
    sizes = sorted(_sizes(folder).items())
    return pool.map(partial(_staged_file, folder), [name for name, _ in sizes], [size for _, size in sizes])


def _staged_file(folder: str, name: str, size_bytes: int) -> StagedFile:
    place = f"{folder}/{name}"
    file_system, path = file_system_of(place)
    try:
        with file_system.open_input_file(path) as file:
            row_count = pq.read_metadata(file).num_rows
    except (pa.ArrowInvalid, OSError) as error:
        raise StagingError(
            f"{place} cannot be read as Parquet ({one_line(str(error))}): run the build of this day again."
        ) from error
    return StagedFile(name, size_bytes, _sha256(place), row_count)


def _sizes(folder: str) -> dict[str, int]:
    """Return the size of each data file below a folder, by its path there.

    Raises:
        StagingError: there is no such folder.
    """
    file_system, path = file_system_of(folder)
    try:
        entries = file_system.get_file_info(pafs.FileSelector(path, recursive=True))
    except FileNotFoundError as error:
        root, _, name = folder.rpartition("/")
        raise StagingError(
            f"The staging area at {root} has no {name}, so another release computed it or it was removed: run the build of this day again."
        ) from error
    return {
        entry.path[len(path) :].lstrip("/"): int(entry.size)
        for entry in entries
        # Spark and Hadoop's file systems leave markers and checksums next to the data.
        if entry.type == pafs.FileType.File and not entry.base_name.startswith(("_", "."))
    }


def _sha256(place: str) -> str:
    file_system, path = file_system_of(place)
    digest = hashlib.sha256()
    with file_system.open_input_stream(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
