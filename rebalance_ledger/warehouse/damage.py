"""Find the published file that cannot be read, and say what is wrong with it and what to do.

Engines report "corrupt Snappy data", seldom with the file name. After an error the files are opened one by one until one fails;
a successful query costs nothing extra.

Belongs here: errors of files under published tables. Does not belong here: errors of a query (`query`), files of a stage
(`staging`, `inventory`).
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from rebalance_ledger.warehouse.errors import QueryError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ENGINE_ERRORS: Final = (duckdb.Error, pa.ArrowException, DeltaError, OSError, ValueError, KeyError)
"""Errors of the engines for missing, truncated or changed files; Arrow also raises ValueError and KeyError."""

_SEARCH_S: Final = 30.0
"""Time limit of the search for the file."""


@contextmanager
def naming_damage(place: str, rows: Iterable[pads.Dataset] = ()) -> Iterator[None]:
    """Replace read errors of the block by an error that names the file.

    Args:
        place: The table, or the warehouse for several tables.
        rows: The rows that the block reads.

    Raises:
        QueryError: The block failed to read.
    """
    try:
        yield
    except ENGINE_ERRORS as error:
        raise QueryError(damage_sentence(*(find_damage(rows) or (place, str(error))))) from error


def damage_sentence(place: str, reason: str) -> str:
    """Return one sentence with the file, the reason and the solution."""
    return (
        f"{place} cannot be read ({_short(reason)}). Bring it back from a copy, or publish the days of this table again "
        "(`ledger backfill`); `ledger verify` says which days are affected."
    )


def find_damage(rows: Iterable[pads.Dataset]) -> tuple[str, str] | None:
    """Return the first file that cannot be read and the reason; None if all can be read, or after the time limit.

    Footers are read before pages, because this is fast and most damaged files are truncated or missing.
    """
    deadline = time.monotonic() + _SEARCH_S
    files = [
        (dataset.filesystem, path)
        for dataset in rows
        if isinstance(dataset, pads.FileSystemDataset)  # A filtered one has files, but no fragments.
        for path in dataset.files
    ]
    for is_whole in (False, True):
        for file_system, path in files:
            if time.monotonic() > deadline:
                return None
            try:
                with file_system.open_input_file(path) as file:
                    parquet = pq.ParquetFile(file)
                    for group in range(parquet.num_row_groups if is_whole else 0):
                        parquet.read_row_group(group)
            except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
                return f"{getattr(file_system, 'base_path', '')}{path}", str(error)
    return None


def _short(reason: str) -> str:
    """Return the engine's message without the Python traceback that follows it."""
    return one_line(reason.split(". Detail:", maxsplit=1)[0].split("\n\n", maxsplit=1)[0])
