"""How the engines reach the place where a warehouse is: delta-rs by options, Arrow by a file system. Nothing here opens a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from rebalance_ledger.storage.location import ObjectPath, file_system, is_object_store, variables

if TYPE_CHECKING:
    from collections.abc import Mapping


def storage_options(place: str) -> dict[str, str] | None:
    """Return the `storage_options` of delta-rs for a warehouse.

    A commit in an object store is a put that succeeds only where there is no such object yet, so of two writers that
    want to make the same version one is refused, reads what the other did, and tries again.

    Args:
        place: a folder, or a URI in an object store.

    Returns:
        The `AWS_*` variables of the environment; None for a folder.
    """
    if not is_object_store(place):
        return None
    options = variables()
    if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return {**options, "AWS_CONDITIONAL_PUT": "etag"}


def file_system_of(place: str, overrides: Mapping[str, str] | None = None) -> tuple[pafs.FileSystem, str]:
    """Return Arrow's file system for a place, and the place's path in it.

    Args:
        place: a folder, or a URI in an object store.
        overrides: `AWS_*` variables that take precedence over those of the environment.
    """
    if is_object_store(place):
        return file_system(overrides), ObjectPath.of(place).key
    return pafs.LocalFileSystem(), place


def folder_names(file_system: pafs.FileSystem, path: str) -> list[str]:
    """Return the sorted names of the folders in a folder; none if it does not exist."""
    entries = file_system.get_file_info(pafs.FileSelector(path, allow_not_found=True))
    return sorted(entry.base_name for entry in entries if entry.type == pafs.FileType.Directory)
