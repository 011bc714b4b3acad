"""How delta-rs reaches the place where a warehouse is. Nothing here opens anything."""

from __future__ import annotations

import os

OBJECT_STORE_PREFIXES = ("s3://", "s3a://")
"""Roots that are reached through the `AWS_*` variables of the environment."""


def storage_options(root: str) -> dict[str, str] | None:
    """What delta-rs is told about the storage of a warehouse.

    Args:
        root: the warehouse's root, a local path or a URI.

    Returns:
        The `AWS_*` variables of the environment (keys, region, endpoint) for an object store, so that reading
        the log and reading the data use the same ones; None for a local path.
    """
    if not root.startswith(OBJECT_STORE_PREFIXES):
        return None
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
