"""Opening the files of an export, and naming them in messages.

Belongs here: what every reader of a directory needs before it knows what a file says. Does not belong here: walking a directory
(`survey`) and reading manifests (`manifest`).
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from rebalance_ledger.storage.location import Location, ObjectPath

if TYPE_CHECKING:
    from io import BufferedReader


def open_regular(path: Location) -> BufferedReader:
    """Open an object or a regular file; refuse links, pipes and devices, even if swapped after the listing."""
    if isinstance(path, ObjectPath):
        return path.open()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "not a regular file")
    return os.fdopen(descriptor, "rb")


def reason_of(error: OSError) -> str:
    """Return the message of an operating system or an object store, on one line."""
    return error.strerror or " ".join(str(error).split())


def printable(path: str) -> str:
    """Return a path for a message: on one line, and without control characters."""
    return path if path.isprintable() else repr(path)
