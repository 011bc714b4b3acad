"""The input of one day (its export and earlier ones), and how the lines of their files are read, by Spark or in the driver."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from rebalance_ledger.exports.export_files import open_regular, printable
from rebalance_ledger.exports.manifest import ExportError
from spark_jobs.session import literal_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

    from rebalance_ledger.exports.catalog import EarlierExport
    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.storage.location import Location

_BATCH_BYTES: Final = 4 * 1024 * 1024


class DayExport(NamedTuple):
    """The export of a cluster's day.

    Attributes:
        directory: Location of the export.
        manifest: Its manifest.
        earlier: Earlier exports with an index of offset files, the newest first.
    """

    directory: Location
    manifest: Manifest
    earlier: tuple[EarlierExport, ...] = ()

    @property
    def key(self) -> tuple[str, date]:
        """The values of `DAY`."""
        return self.manifest.cluster, self.manifest.ds

    @property
    def size_bytes(self) -> int:
        """Size of all files of the export."""
        return self.manifest.size_bytes


def export_file_key(directory: Location, file_name: str) -> str:
    """Return `<cluster>/<ds>/<file>`, which identifies a file among all exports."""
    return "/".join([*str(directory).split("/")[-2:], file_name])


def read_lines(spark: SparkSession, files: Iterable[tuple[Location, str]]) -> DataFrame:
    """Return the lines of files, in file order within each block.

    One scan reads the files of all days, because planning a union of scans takes longer than reading many small days.

    Args:
        spark: The session.
        files: Directory of the export and name of each file.

    Returns:
        Columns file_key (see `export_file_key`), block_start (byte offset of the block in the file) and value (the line).
    """
    paths = [literal_path(f"{directory}/{name}") for directory, name in files]
    # Spark returns paths as URLs, and url_decode() would decode a plus sign to a space.
    path = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    # Only "\n" ends a line, as in the line counts of the manifest. By default, Spark splits lines at a lone "\r" too.
    return (
        spark.read.option("lineSep", "\n")
        .text(paths)
        .select(
            F.substring_index(path, "/", -3).alias("file_key"),
            F.col("_metadata.file_block_start").alias("block_start"),
            "value",
        )
    )


def batches_of_lines(files: Iterable[tuple[Location, str]]) -> Iterator[pa.RecordBatch]:
    """Yield the lines that `read_lines` returns, read by this process, and first_line_number, the number of the block's first line.

    A file is one block. For a small day, starting Spark's Python workers takes longer than to read and parse its lines here.

    Raises:
        ExportError: A file is missing.
        OSError: A file cannot be read.
    """
    for directory, name in files:
        file_key = export_file_key(directory, name)
        try:
            file = open_regular(directory / name)
        except FileNotFoundError as error:
            problem = f"{printable(name)} is missing; export the day again"
            raise ExportError(f"{directory} has changed while it was read", [problem]) from error
        with file:
            prefix = BOM_UTF8
            while lines := file.readlines(_BATCH_BYTES):
                lines[0] = lines[0].removeprefix(prefix)
                prefix = b""
                values = [line.removesuffix(b"\n").decode(errors="replace") for line in lines]
                yield pa.RecordBatch.from_pydict(
                    {
                        "file_key": [file_key] * len(values),
                        "block_start": [0] * len(values),
                        "first_line_number": [1] * len(values),
                        "value": values,
                    }
                )
