"""The rows of parsed lines as Parquet files, one set for each table, written by the process that parses the lines.

A row goes from Python to its file without the JVM, and has the types of its table. A task that Spark repeats writes other files, so
the files of a successful task are those that it names.

Belongs here: writing these files, in a task of Spark or in the driver. Does not belong here: the rows (`line_parsing`), and which of
them count (`reader`).
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_ledger.storage.engines import file_system_of
from spark_jobs.silver.line_parsing import parse_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from spark_jobs.silver.line_parsing import Contradiction, ExportFile, Line

WRITTEN_SCHEMA: Final = pa.schema([("table_name", pa.string()), ("file_name", pa.string())])
"""What a task returns: the files that it wrote."""


class Parser(NamedTuple):
    """Parameters of `line_parsing.parse_batches`, and the folder for the rows."""

    folder: str
    files: Mapping[str, ExportFile]
    schemas: Mapping[str, pa.Schema]
    contradictions: Mapping[Line, Contradiction] | None

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, str]]:
        """Parse lines and write their rows.

        Yields:
            The name of a table, and the path of its file in the folder.
        """
        file_system, root = file_system_of(self.folder)
        writers: dict[str, pq.ParquetWriter] = {}
        written: list[tuple[str, str]] = []
        with ExitStack() as open_files:
            for table, rows in parse_batches(batches, self.files, self.schemas, self.contradictions):
                if table not in writers:
                    file_system.create_dir(f"{root}/{table}")
                    written.append((table, f"{table}/part-{uuid4()}.parquet"))
                    writer = pq.ParquetWriter(f"{root}/{written[-1][1]}", rows.schema, filesystem=file_system)
                    writers[table] = open_files.enter_context(writer)
                writers[table].write_batch(rows)
        yield from written

    def write_in_task(self) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return `write` as a function for `mapInArrow`, with rows of `WRITTEN_SCHEMA`."""

        def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            columns = list(zip(*self.write(batches), strict=True)) or [(), ()]
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, pa.string()) for column in columns], schema=WRITTEN_SCHEMA
            )

        return write
