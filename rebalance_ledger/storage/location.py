"""An object store as a place for exports and tables: names in it, and how it is reached.

Everything that differs between stores is in the environment, by the names that Amazon's own tools use: `AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION` (without one `us-east-1`), and `AWS_ENDPOINT_URL` for a store that is
not Amazon's. Spark, delta-rs and Arrow then mean the same store.

Belongs here: names of objects, looking at them and reading them. Does not belong here: what an export is (`manifest`), what
`storage_options` (`rebalance_ledger.storage.engines`).
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyarrow import fs as pafs

_SCHEMES: Final = ("s3a://", "s3://")
_READ_AHEAD_BYTES: Final = 1 << 20


class InvalidLocationError(ValueError):
    """A location is invalid; `str()` is one sentence with the reason and the accepted forms."""


def is_object_store(place: str) -> bool:
    """Return whether a place is in an object store, and not on a disk.

    Raises:
        InvalidLocationError: it is a URI of something else.
    """
    if place.startswith(_SCHEMES):
        return True
    if "://" in place:
        raise InvalidLocationError(f"{place} is neither a folder nor s3a://bucket/…: give one of these.")
    return False


def variables() -> dict[str, str]:
    """Return the object store's `AWS_*` environment variables, always including a region."""
    environment = {name: value for name, value in os.environ.items() if name.startswith("AWS_") and value}
    environment["AWS_REGION"] = (
        environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    )
    return environment


def file_system(overrides: Mapping[str, str] | None = None) -> pafs.FileSystem:
    """Return Arrow's file system for the store; its paths are `bucket/name`.

    Args:
        overrides: `AWS_*` variables that take precedence over those of the environment.
    """
    settings = variables() | dict(overrides or {})
    return _file_system(
        settings.get("AWS_ENDPOINT_URL"),
        settings["AWS_REGION"],
        *(settings.get(f"AWS_{key}") for key in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")),
    )


@lru_cache(maxsize=8)
def _file_system(
    endpoint: str | None,
    region: str,
    access_key: str | None,
    secret_key: str | None,
    session_token: str | None,
) -> pafs.FileSystem:
    from pyarrow import fs as pafs  # noqa: PLC0415  # most exports are on a disk, and need no Arrow to be read

    # Without keys Arrow looks for the role of the machine.
    keys = {"access_key": access_key, "secret_key": secret_key, "session_token": session_token}
    return pafs.S3FileSystem(
        endpoint_override=endpoint, region=region, **(keys if access_key and secret_key else {})
    )


@dataclass(frozen=True, slots=True, order=True)
class ObjectPath:
    """A name in an object store, with what exports need of `pathlib.Path`.

    Attributes:
        key: `bucket/name`, without a slash at its end.
    """

    key: str

    @classmethod
    def of(cls, uri: str) -> ObjectPath:
        """Return the name in a URI (`s3a://…` or `s3://…`)."""
        return cls(uri.partition("://")[2].strip("/"))

    def __str__(self) -> str:
        return f"s3a://{self.key}"

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(f"{self.key}/{name}")

    @property
    def name(self) -> str:
        """Its last part."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        """The name without its last part."""
        return ObjectPath(self.key.rpartition("/")[0])

    def is_file(self) -> bool:
        """Return whether there is an object of this name."""
        return bool(file_system().get_file_info(self.key).is_file)

    def is_dir(self) -> bool:
        """Return whether there are objects below this name."""
        return any(True for _ in self._entries(recursive=False))

    def folders(self) -> Iterator[ObjectPath]:
        """Yield the names just below this one that have objects below them."""
        for entry in self._entries(recursive=False):
            if not entry.is_file:
                yield self / entry.base_name

    def files(self) -> Iterator[str]:
        """Yield the objects below this name, by what their names have beyond it."""
        for entry in self._entries(recursive=True):
            if entry.is_file:
                yield entry.path.removeprefix(f"{self.key}/")

    def open(self) -> io.BufferedReader:
        """Return the bytes of an object.

        Raises:
            OSError: there is none (then a FileNotFoundError), or it cannot be read.
        """
        return io.BufferedReader(file_system().open_input_file(self.key), _READ_AHEAD_BYTES)

    def write(self, content: bytes | Path) -> None:
        """Put an object, from bytes or from a file of a disk; it appears whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        if isinstance(content, Path):
            with (
                content.open("rb") as file,
                file_system().open_output_stream(self.key, compression=None) as out,
            ):
                while piece := file.read(_READ_AHEAD_BYTES):
                    out.write(piece)
            return
        with file_system().open_output_stream(self.key, compression=None) as out:
            out.write(content)

    def remove(self) -> None:
        """Remove the object.

        Raises:
            OSError: there is none, or it cannot be removed.
        """
        file_system().delete_file(self.key)

    def remove_all_below(self) -> None:
        """Remove the objects below this name, if there are any.

        Raises:
            OSError: some cannot be removed.
        """
        for path in self.files():
            file_system().delete_file(f"{self.key}/{path}")

    def _entries(self, *, recursive: bool) -> list[pafs.FileInfo]:
        from pyarrow import fs as pafs  # noqa: PLC0415  # as above

        selector = pafs.FileSelector(self.key, allow_not_found=True, recursive=recursive)
        entries: list[pafs.FileInfo] = file_system().get_file_info(selector)
        return entries


Location = Path | ObjectPath
"""A folder or file of a disk, or its like in an object store."""


def location_of(text: str) -> Location:
    """Return the place that a person named; one on a disk is made absolute, so that every process means the same.

    Raises:
        InvalidLocationError: it is a URI of something that we do not read.
    """
    return ObjectPath.of(text) if is_object_store(text) else Path(text).resolve()
