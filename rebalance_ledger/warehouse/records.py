"""The small JSON files of a stage: atomic writes, and reads that check the type of every value.

A power loss, a full disk or a person may damage these files. A reader gets a value of the requested type, or an error with the file, the
problem and the solution.

Belongs here: files, JSON and types. Does not belong here: the meaning of the files (`staging`, `inventory`).
"""

from __future__ import annotations

import json
import secrets
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.fs as pafs

from rebalance_ledger.storage.engines import file_system_of
from rebalance_ledger.storage.location import is_object_store
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.errors import StagingError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rebalance_ledger.tables import Table

BUILD_AGAIN: Final = "run the build of this day again"
GATE_AGAIN: Final = "run the gate of this day again"


class RecordError(ValueError):
    """A file does not have the requested value; the message is a clause without the file's name."""


class Record:
    """The fields of one JSON object, with typed access."""

    def __init__(self, document: object) -> None:
        if not isinstance(document, dict):
            raise RecordError("it holds no JSON object")
        self._fields: dict[str, object] = document

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def text(self, name: str) -> str:
        """Return a text that is not empty."""
        value = self._fields.get(name)
        if not isinstance(value, str) or not value:
            raise RecordError(f"{name!r} is not a text")
        return value

    def text_or_none(self, name: str) -> str | None:
        """Return a text that is not empty; None for null or a missing field."""
        return None if self._fields.get(name) is None else self.text(name)

    def count(self, name: str) -> int:
        """Return a whole number, 0 or more."""
        value = self._fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise RecordError(f"{name!r} is not a count")
        return value

    def day_or_none(self, name: str) -> date | None:
        """Return a day; None for null or a missing field."""
        return None if self._fields.get(name) is None else _day(name, self._fields[name])

    def texts_or_none(self, name: str) -> list[str] | None:
        """Return a list of texts; None for null or a missing field."""
        return None if self._fields.get(name) is None else self.texts(name)

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise RecordError(f"{name!r} is not a list of texts")
        return [str(value) for value in values]

    def records(self, name: str) -> list[Record]:
        """Return a list of JSON objects."""
        return [Record(value) for value in self._list(name)]

    def rows(self, name: str, table: Table) -> list[dict[str, Any]]:
        """Return rows of a table without cluster and ds, in the types of its columns."""
        own = {column.name: column for column in table.columns}
        schema = pa.schema([field for field in arrow_schema(table) if field.name in own])
        days = [field.name for field in schema if pa.types.is_date(field.type)]
        values = self._list(name)
        for value in values:
            if not isinstance(value, dict):
                raise RecordError(f"{name!r} is not a list of rows of {table.qualified_name}")
        try:
            rows: list[dict[str, Any]] = pa.Table.from_pylist(
                [row | {day: row.get(day) and _day(day, row[day]) for day in days} for row in values],
                schema=schema,
            ).to_pylist()
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise RecordError(f"{name!r} holds no rows of {table.qualified_name}") from error
        for row in rows:
            for column, value in row.items():
                has_null = isinstance(value, list) and None in value
                if has_null or (value is None and not own[column].nullable):
                    raise RecordError(f"{name!r} has a row of {table.qualified_name} without {column}")
        return rows

    def _list(self, name: str) -> list[Any]:
        value = self._fields.get(name)
        if not isinstance(value, list):
            raise RecordError(f"{name!r} is not a list")
        return value


@contextmanager
def decoding(place: str, remedy: str) -> Iterator[None]:
    """Raise an error that names the file and the fix if a field in the block is invalid.

    Raises:
        StagingError: a field is missing or of another type.
    """
    try:
        yield
    except RecordError as error:
        raise StagingError(f"{place} is damaged ({error}): {remedy}.") from error


def read_record(place: str, remedy: str) -> Record | None:
    """Return the JSON object in a file; None if there is no file.

    Args:
        place: The file.
        remedy: End of the error message, with the solution for a damaged file.

    Raises:
        StagingError: The file cannot be read, or is not a JSON object.
    """
    file_system, path = file_system_of(place)
    try:
        if not exists(place):
            return None
        with file_system.open_input_stream(path) as file:
            content: bytes = file.read()
    except OSError as error:
        raise StagingError(f"{place} cannot be read ({one_line(str(error))}): {remedy}.") from error
    with decoding(place, remedy):
        try:
            # Decoded here, because json.loads() may take some bytes for UTF-16.
            return Record(json.loads(content.decode()))
        except UnicodeDecodeError as error:
            raise RecordError("it is not UTF-8 text") from error
        except RecordError:
            raise
        except (ValueError, RecursionError) as error:
            raise RecordError("it is empty" if not content else "it is not JSON; it may be cut") from error


def write_record(place: str, document: Mapping[str, Any]) -> None:
    """Write a small file atomically: a reader sees the old file or the new one, never a part."""
    write_file(place, json.dumps(document, default=date.isoformat).encode())


def write_file(place: str, content: bytes) -> None:
    """Write a file atomically, into an existing folder or an object store.

    Raises:
        OSError: The file cannot be written.
    """
    if is_object_store(place):  # An object appears when it is whole.
        file_system, path = file_system_of(place)
        with file_system.open_output_stream(path) as out:
            out.write(content)
        return
    growing = Path(f"{place}.{secrets.token_hex(8)}.partial")
    try:
        growing.write_bytes(content)
        growing.replace(place)
    finally:
        growing.unlink(missing_ok=True)


def exists(place: str) -> bool:
    """Return whether there is a file or a folder.

    Raises:
        OSError: that cannot be determined, for example because of permissions.
    """
    file_system, path = file_system_of(place)
    exists: bool = file_system.get_file_info(path).type != pafs.FileType.NotFound
    return exists


def _day(name: str, value: object) -> date:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise RecordError(f"{name!r} is not a day") from None
