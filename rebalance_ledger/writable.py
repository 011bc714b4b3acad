"""Whether this process may write to a folder or a file, found out before work that would be lost.

Belongs here: looking. Does not belong here: writing, and object stores.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def why_not_writable(folder: Path) -> str | None:
    """Return why this process cannot write to a folder, or create it with its parents; None if it can."""
    existing = next(path for path in (folder, *folder.parents) if os.access(path, os.F_OK))
    if not existing.is_dir():
        return f"{existing} is not a folder"
    if not os.access(existing, os.W_OK | os.X_OK):
        return f"{existing} is read-only for this user"
    return None


def why_file_not_writable(file: Path) -> str | None:
    """Return why this process cannot write a file, or create it with its folders; None if it can."""
    if not os.access(file, os.F_OK):
        return why_not_writable(file.parent)
    return None if os.access(file, os.W_OK) else f"{file} is read-only for this user"
